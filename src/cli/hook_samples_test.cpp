#include "cli/hook_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kFailure = HookKind::on_failure;
constexpr auto kEnqueue = HookKind::on_enqueue;

std::vector<std::string> samples_in(std::string_view text) {
  auto samples = parse_hook_samples(text, kFailure);
  EXPECT_TRUE(samples) << samples.error().detail;
  return samples ? *samples : std::vector<std::string>();
}

std::string problem_of(std::string_view text) {
  const auto samples = parse_hook_samples(text, kFailure);
  EXPECT_FALSE(samples);
  return samples ? std::string() : samples.error().detail;
}

TEST(HookSamples, OneOrAnArrayOrOneInEachLine) {
  EXPECT_THAT(samples_in("{\n \"error\": \"x\"\n}\n"), ElementsAre(R"({"error":"x"})"));
  EXPECT_THAT(samples_in(R"([{"error":"x"}, {}])"), ElementsAre(R"({"error":"x"})", "{}"));
  EXPECT_THAT(samples_in("{\"error\":\"x\"}\r\n\n  {}\n"), ElementsAre(R"({"error":"x"})", "{}"));
}

TEST(HookSamples, WhatCommandsPrintIsTaken) {
  EXPECT_THAT(
      samples_in(R"({"jobs":[{"id":"A","token":"t","payload":1.0,"attempts":1,"failures":0}]})"),
      ElementsAre(R"({"id":"A","payload":1.0,"attempts":1,"failures":1})"));
  EXPECT_THAT(samples_in(R"({"jobs":[{"payload":1}],"cursor":null})"),
              ElementsAre(R"({"payload":1})"));
}

TEST(HookSamples, PayloadsKeepTheirBytes) {
  EXPECT_THAT(samples_in(R"({"payload":{"a": 1.00, "b":1e2},"headers":{"x":"\u0041"}})"),
              ElementsAre(R"({"payload":{"a": 1.00, "b":1e2},"headers":{"x":"\u0041"}})"));
}

TEST(HookSamples, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(problem_of("{\"a\":1}\n{\"a\" 1}\n"), HasSubstr("line 2: not valid JSON"));
  EXPECT_THAT(problem_of("{\n \"a\" 1\n}"), HasSubstr("at line 2, column"));
  EXPECT_EQ(problem_of("[{}, 5]"), "sample 1 is no object");
  EXPECT_EQ(problem_of("7"), "sample 0 is no object");
  for (const char* nothing : {"", " \n\n", "[]", R"({"jobs":[]})"}) {
    EXPECT_EQ(problem_of(nothing), "there is no sample in it") << nothing;
  }
}

TEST(HookSamples, FieldsThatAHookIsNotToldAreLeftOut) {
  const JsonView job(
      R"({"id":"A","queue":"q","namespace":"n","status":"dead","lane":"retry","payload":null,)"
      R"("headers":{},"priority":5,"key":null,"fairness_key":"a","weight":2,"throttle_keys":[],)"
      R"("attempts":3,"failures":2,"generation":1,"pushed_at":"…","due_at":null,)"
      R"("expires_at":null,"lease_expires_at":null,"ended_at":"…","worker":null,)"
      R"("last_error":"boom\n","last_error_type":"Net","reason":"final","origin_queue":null,)"
      R"("history":[],"dead_letter":{}})");
  EXPECT_EQ(hook_sample(job, kFailure),
            R"({"id":"A","payload":null,"headers":{},"attempts":3,"failures":2,)"
            R"("error":"boom\n","error_type":"Net"})");
  EXPECT_EQ(hook_sample(job, kEnqueue),
            R"({"payload":null,"headers":{},"priority":5,"fairness_key":"a","weight":2,)"
            R"("throttle_keys":[]})");
}

TEST(HookSamples, AJobThatHasNotFailedCountsAsFailingNow) {
  const auto counted = [](const char* job) { return hook_sample(JsonView(job), kFailure); };
  EXPECT_EQ(counted(R"({"status":"pending","attempts":0,"failures":0})"),
            R"({"attempts":1,"failures":1})");
  EXPECT_EQ(counted(R"({"status":"active","attempts":2,"failures":1})"),
            R"({"attempts":2,"failures":2})");
  EXPECT_EQ(counted(R"({"status":"failed","attempts":2,"failures":1})"),
            R"({"attempts":2,"failures":1})");
}

TEST(HookSamples, ANameThatNobodyKnowsIsLeftToTheServer) {
  EXPECT_THAT(samples_in(R"({"eror":"x","attempts":2})"),
              ElementsAre(R"({"eror":"x","attempts":2})"));
}

}  // namespace
}  // namespace reprise::cli
