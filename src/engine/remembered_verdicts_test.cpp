#include "engine/remembered_verdicts.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

JobRecord job_of(const std::string& tenant) { return {.headers = {{"tenant", tenant}}}; }

EnqueueVerdict weighs(std::uint32_t weight) { return {.weight = weight}; }

TEST(RememberedVerdicts, AreThoseOfJobsThatAreAlike) {
  RememberedVerdicts verdicts;
  EXPECT_EQ(verdicts.find(job_of("a")), nullptr);
  verdicts.learn(job_of("a"), weighs(2));
  verdicts.learn(job_of("b"), weighs(3));
  ASSERT_NE(verdicts.find(job_of("a")), nullptr);
  EXPECT_EQ(*verdicts.find(job_of("a")), weighs(2));
  EXPECT_EQ(*verdicts.find(job_of("b")), weighs(3));
  EXPECT_EQ(verdicts.find(job_of("c")), nullptr);
}

TEST(RememberedVerdicts, WhatMayNotBeLookedAtMakesNoDifference) {
  RememberedVerdicts verdicts;
  verdicts.learn(job_of("a"), weighs(2));
  JobRecord job = job_of("a");
  job.payload = "another";
  job.key = "k";
  job.expires_at = Timestamp(Duration(7));
  EXPECT_NE(verdicts.find(job), nullptr);
}

TEST(RememberedVerdicts, WhatMayBeLookedAtMakesOne) {
  RememberedVerdicts verdicts;
  const JobRecord known{.headers = {{"a", "bc"}, {"d", ""}},
                        .scheduling = {.fairness_key = "f", .throttle_keys = {"t", "u"}}};
  verdicts.learn(known, weighs(2));
  std::vector<JobRecord> others(9, known);
  others[0].priority = 1;
  others[1].scheduling.weight = 2;
  others[2].scheduling.fairness_key = "g";
  others[3].scheduling.throttle_keys = {"t"};
  others[4].scheduling.throttle_keys = {"u", "t"};
  others[5].headers = {{"ab", "c"}, {"d", ""}};
  others[6].headers = {{"d", ""}, {"a", "bc"}};
  others[7].headers = {{"a", "bc"}};
  others[8].scheduling.throttle_keys = {"t", "u", "a"};
  for (const JobRecord& other : others) EXPECT_EQ(verdicts.find(other), nullptr);
  EXPECT_NE(verdicts.find(known), nullptr);
}

TEST(RememberedVerdicts, AnotherScriptKnowsNothing) {
  RememberedVerdicts verdicts;
  verdicts.learn(job_of("a"), weighs(2));
  verdicts.clear();
  EXPECT_EQ(verdicts.find(job_of("a")), nullptr);
}

// Enough of them that they cannot all be remembered.
constexpr int kMany = RememberedVerdicts::kBytesMax / 100;

TEST(RememberedVerdicts, BeginAnewWhenThereAreTooMany) {
  RememberedVerdicts verdicts;
  int found = 0;
  for (int i = 0; i < kMany; ++i) {
    const JobRecord job = job_of(std::to_string(i));
    verdicts.learn(job, weighs(1));
    found += verdicts.find(job) != nullptr ? 1 : 0;
  }
  EXPECT_EQ(found, kMany) << "it goes on when it is of use";
  EXPECT_EQ(verdicts.find(job_of("0")), nullptr);
}

TEST(RememberedVerdicts, AreLeftAloneForAWhileWhereNoTwoJobsAreAlike) {
  RememberedVerdicts verdicts;
  for (int i = 0; i < kMany; ++i) verdicts.learn(job_of(std::to_string(i)), weighs(1));
  const JobRecord job = job_of("again");
  verdicts.learn(job, weighs(1));
  EXPECT_EQ(verdicts.find(job), nullptr);
  for (std::uint64_t i = 0; i < RememberedVerdicts::kPause; ++i) verdicts.find(job);
  verdicts.learn(job, weighs(1));
  EXPECT_NE(verdicts.find(job), nullptr);
}

TEST(RememberedVerdicts, OneThatIsLargerThanTheMemoryIsNotKept) {
  RememberedVerdicts verdicts;
  const JobRecord job = job_of(std::string(RememberedVerdicts::kBytesMax, 'x'));
  verdicts.learn(job, weighs(1));
  EXPECT_EQ(verdicts.find(job), nullptr);
}

}  // namespace
}  // namespace reprise
