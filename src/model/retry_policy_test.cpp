#include "model/retry_policy.h"

#include <gtest/gtest.h>

#include <string>

namespace reprise {
namespace {

using namespace std::chrono_literals;

RetryPolicy applied(const std::string& text, RetryPolicy policy = {}) {
  const auto json = Json::parse(text);
  EXPECT_TRUE(json) << text;
  const Status status = apply_retry_json(policy, *json);
  EXPECT_TRUE(status) << text << ": " << status.error().detail;
  return policy;
}

std::string refused(const std::string& text) {
  RetryPolicy policy{.attempts = 7};
  const Status status = apply_retry_json(policy, *Json::parse(text));
  EXPECT_EQ(policy, RetryPolicy{.attempts = 7}) << text << " changed the policy";
  return status ? "accepted" : status.error().detail;
}

std::string written(const RetryPolicy& policy) {
  JsonWriter out;
  write_retry_json(out, policy);
  return out.take();
}

TEST(RetryPolicy, NothingConfiguredEndsAtTheFirstFailure) {
  EXPECT_TRUE(RetryPolicy{}.is_last(1));
  EXPECT_TRUE(applied(R"({"attempts":1})").is_last(1));
}

TEST(RetryPolicy, AttemptsCountFailures) {
  const RetryPolicy policy = applied(R"({"attempts":3})");
  EXPECT_FALSE(policy.is_last(2));
  EXPECT_TRUE(policy.is_last(3));
  EXPECT_EQ(nominal_wait(policy, 1), 0s);
}

TEST(RetryPolicy, MaxRetriesIsOneAttemptMoreWithTheDefaultBackoff) {
  const RetryPolicy policy = applied(R"({"max_retries":3})");
  EXPECT_FALSE(policy.is_last(3));
  EXPECT_TRUE(policy.is_last(4));
  EXPECT_EQ(nominal_wait(policy, 1), 1s);
  EXPECT_EQ(nominal_wait(policy, 2), 4s);
  EXPECT_EQ(nominal_wait(policy, 3), 16s);
}

TEST(RetryPolicy, UnlimitedNeverEnds) {
  for (const char* text : {R"({"attempts":"unlimited"})", R"({"max_retries":"unlimited"})"}) {
    EXPECT_FALSE(applied(text).is_last(4'000'000'000U)) << text;
  }
}

TEST(RetryPolicy, WaitsStopGrowingAtTheirMaximumHoweverOftenItFails) {
  const RetryPolicy policy = applied(R"({"attempts":9,"backoff":{"base":"2s","max":"1m"}})");
  EXPECT_EQ(nominal_wait(policy, 3), 32s);
  EXPECT_EQ(nominal_wait(policy, 4), 60s);
  EXPECT_EQ(nominal_wait(policy, 4'000'000'000U), 60s);
}

TEST(RetryPolicy, JitterStaysWithinItsShare) {
  EXPECT_EQ(apply_jitter(10s, 0.2, 0), 8s);
  EXPECT_EQ(apply_jitter(10s, 0.2, 0.5), 10s);
  EXPECT_EQ(apply_jitter(10s, 0.2, 1), 12s);
  EXPECT_EQ(apply_jitter(10s, 1, 0), 0s);
  EXPECT_EQ(apply_jitter(Duration::max(), 1, 1), Duration::max());
}

TEST(RetryPolicy, RefusalsNameTheField) {
  struct Case {
    const char* json;
    const char* says;
  };
  for (const Case& c : {
           Case{R"({"attempts":2,"max_retries":2})", "retry.max_retries"},
           Case{R"({"cooldown":"1s","backoff":{}})", "retry.backoff"},
           Case{R"({"cooldown":"1x"})", "retry.cooldown"},
           Case{R"({"cooldown":"-1s"})", "retry.cooldown"},
           Case{R"({"cooldown":-1})", "retry.cooldown"},
           Case{R"({"attempts":-1})", "retry.attempts"},
           Case{R"({"attempts":"many"})", "retry.attempts"},
           Case{R"({"attempts":1.5})", "retry.attempts"},
           Case{R"({"max_retries":4294967295})", "retry.max_retries"},
           Case{R"({"backoff":{"base":"2h"}})", "retry.backoff.base"},
           Case{R"({"backoff":{"max":"1x"}})", "retry.backoff.max"},
           Case{R"({"backoff":{"factor":0.9}})", "retry.backoff.factor"},
           Case{R"({"backoff":{"jitter":1.1}})", "retry.backoff.jitter"},
           Case{R"({"backoff":{"jitter":-0.1}})", "retry.backoff.jitter"},
           Case{R"({"backoff":{"cap":"1s"}})", "retry.backoff.cap"},
           Case{R"({"backoff":3})", "retry.backoff"},
           Case{R"({"retries":3})", "retry.retries"},
       }) {
    EXPECT_NE(refused(c.json).find(c.says), std::string::npos) << c.json << ": " << refused(c.json);
  }
}

TEST(RetryPolicy, AnEditReplacesTheOtherOfAPair) {
  const RetryPolicy before = applied(R"({"attempts":3,"cooldown":"30s"})");
  const RetryPolicy retries = applied(R"({"max_retries":3})", before);
  EXPECT_EQ(retries.attempts, 4U);
  EXPECT_EQ(nominal_wait(retries, 1), 30s);
  const RetryPolicy backoff = applied(R"({"backoff":{"factor":2}})", before);
  EXPECT_EQ(backoff.attempts, 3U);
  EXPECT_EQ(nominal_wait(backoff, 2), 2s);
  EXPECT_EQ(nominal_wait(applied(R"({"backoff":{"base":"3s"}})", backoff), 2), 6s);
}

TEST(RetryPolicy, NullPutsBackDefaults) {
  const RetryPolicy policy = applied(R"({"max_retries":3,"backoff":{"base":"9s"}})");
  EXPECT_EQ(applied("null", policy), RetryPolicy{});
  EXPECT_EQ(nominal_wait(applied(R"({"backoff":null})", policy), 1), 1s);
  EXPECT_TRUE(applied(R"({"max_retries":null})", policy).is_last(1));
}

TEST(RetryPolicy, IsReadBackAsItIsWritten) {
  for (const char* text :
       {"{}", R"({"attempts":3,"cooldown":"30s"})", R"({"attempts":"unlimited","cooldown":"1s"})",
        R"({"max_retries":0})", R"({"max_retries":3,"cooldown":"0s"})",
        R"({"attempts":5,"backoff":{"base":"1500ms","factor":1.7,"max":"2h","jitter":0.25}})",
        R"({"max_retries":"unlimited"})"}) {
    const RetryPolicy policy = applied(text);
    EXPECT_EQ(applied(written(policy)), policy) << written(policy);
  }
  EXPECT_EQ(written(applied(R"({"max_retries":3})")),
            R"({"max_retries":3,"backoff":{"base":"1s","factor":4,"max":"1h","jitter":0}})");
}

}  // namespace
}  // namespace reprise
