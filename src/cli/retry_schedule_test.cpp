#include "cli/retry_schedule.h"

#include <gtest/gtest.h>

#include "base/json_writer.h"

namespace reprise::cli {
namespace {

using namespace std::chrono_literals;

RetryPolicy policy_of(const char* json) {
  RetryPolicy policy;
  EXPECT_TRUE(apply_retry_json(policy, *Json::parse(json))) << json;
  return policy;
}

std::vector<std::string> waits(const RetrySchedule& schedule) {
  std::vector<std::string> texts;
  for (const auto& attempt : schedule.attempts) texts.push_back(wait_text(attempt));
  return texts;
}

TEST(RetrySchedule, EachWaitAndTheirSum) {
  const auto schedule = retry_schedule(policy_of(R"({"max_retries":3})"), 20);
  EXPECT_EQ(waits(schedule), (std::vector<std::string>{"", "1s", "4s", "16s"}));
  EXPECT_EQ(schedule.attempts[2].after, 5s);
  EXPECT_EQ(schedule.attempts[3].after, 21s);
  EXPECT_FALSE(schedule.attempts[2].dead_if_it_fails);
  EXPECT_TRUE(schedule.attempts[3].dead_if_it_fails);
  EXPECT_TRUE(schedule.complete);
}

TEST(RetrySchedule, NothingConfiguredIsOneAttempt) {
  for (const char* json : {"{}", R"({"attempts":1})"}) {
    const auto schedule = retry_schedule(policy_of(json), 20);
    ASSERT_EQ(schedule.attempts.size(), 1U) << json;
    EXPECT_TRUE(schedule.attempts[0].dead_if_it_fails);
  }
}

TEST(RetrySchedule, JitterMakesARange) {
  const auto schedule = retry_schedule(
      policy_of(R"({"attempts":2,"backoff":{"base":"10s","max":"1m","jitter":0.2}})"), 20);
  EXPECT_EQ(waits(schedule), (std::vector<std::string>{"", "8s to 12s"}));
  EXPECT_EQ(schedule.attempts[1].after, 10s);
}

TEST(RetrySchedule, EndsAtTheLimitAndSaysSo) {
  EXPECT_FALSE(retry_schedule(policy_of(R"({"attempts":"unlimited"})"), 5).complete);
  const auto policy = policy_of(R"({"attempts":5,"cooldown":"1s"})");
  EXPECT_FALSE(retry_schedule(policy, 4).complete);
  EXPECT_TRUE(retry_schedule(policy, 5).complete);
  EXPECT_EQ(retry_schedule(policy, 4).attempts.size(), 4U);
}

TEST(RetrySchedule, SumsNeverOverflow) {
  const auto policy = policy_of(R"({"attempts":"unlimited","cooldown":"36500d"})");
  const auto schedule = retry_schedule(policy, 10'000);
  EXPECT_EQ(schedule.attempts.back().after, Duration::max());
}

TEST(RetrySchedule, AsJson) {
  JsonWriter json;
  const auto policy = policy_of(R"({"attempts":2,"cooldown":"1500ms"})");
  json.begin_object();
  write_schedule_members(json, policy, retry_schedule(policy, 20));
  json.end_object();
  EXPECT_EQ(
      json.take(),
      R"({"attempts":2,"schedule":[)"
      R"({"attempt":1,"wait":0,"wait_min":0,"wait_max":0,"after":0,"if_it_fails":"retry"},)"
      R"({"attempt":2,"wait":1.5,"wait_min":1.5,"wait_max":1.5,"after":1.5,"if_it_fails":"dead"}],)"
      R"("complete":true})");
}

}  // namespace
}  // namespace reprise::cli
