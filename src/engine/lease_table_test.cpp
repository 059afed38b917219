#include "engine/lease_table.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

using namespace std::chrono_literals;

constexpr JobKey kJob{.queue = 1, .seq = 7};

Lease lease_of(JobKey job, Duration until) {
  return {.job = job, .nonce = job.seq * 100, .deadline = Timestamp{until}};
}

TEST(LeaseTable, FindsWhatWasGranted) {
  LeaseTable leases;
  leases.grant({.job = kJob,
                .nonce = 42,
                .deadline = Timestamp{30s},
                .priority = 5,
                .expires_at = Timestamp{60s},
                .byte_size = 99});
  const Lease* found = leases.find(kJob);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->nonce, 42U);
  EXPECT_EQ(found->deadline, Timestamp{30s});
  EXPECT_EQ(found->priority, 5U);
  EXPECT_EQ(found->expires_at, Timestamp{60s});
  EXPECT_EQ(found->byte_size, 99U);
  EXPECT_EQ(leases.size(), 1U);
}

TEST(LeaseTable, TellsJobsOfTwoQueuesApart) {
  LeaseTable leases;
  leases.grant(lease_of({1, 7}, 10s));
  EXPECT_EQ(leases.find({2, 7}), nullptr);
  leases.grant(lease_of({2, 7}, 20s));
  EXPECT_EQ(leases.find({1, 7})->deadline, Timestamp{10s});
  EXPECT_EQ(leases.find({2, 7})->deadline, Timestamp{20s});
}

TEST(LeaseTable, FirstIsTheOneThatEndsFirst) {
  LeaseTable leases;
  EXPECT_EQ(leases.first(), nullptr);
  leases.grant(lease_of({1, 1}, 30s));
  leases.grant(lease_of({1, 2}, 10s));
  leases.grant(lease_of({2, 3}, 20s));
  for (const Seq seq : {2, 3, 1}) {
    ASSERT_NE(leases.first(), nullptr);
    EXPECT_EQ(leases.first()->job.seq, seq);
    leases.end(leases.first()->job);
  }
  EXPECT_EQ(leases.first(), nullptr);
}

TEST(LeaseTable, ExtendMovesTheDeadlineEitherWay) {
  LeaseTable leases;
  leases.grant(lease_of({1, 1}, 10s));
  leases.grant(lease_of({1, 2}, 20s));
  leases.extend({1, 1}, Timestamp{30s});
  EXPECT_EQ(leases.first()->job.seq, 2U);
  EXPECT_EQ(leases.find({1, 1})->deadline, Timestamp{30s});
  leases.extend({1, 1}, Timestamp{5s});
  EXPECT_EQ(leases.first()->job.seq, 1U);
  EXPECT_EQ(leases.size(), 2U);
}

TEST(LeaseTable, ALeaseEndsOnce) {
  LeaseTable leases;
  leases.grant(lease_of(kJob, 10s));
  const auto ended = leases.end(kJob);
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->nonce, 700U);
  EXPECT_EQ(leases.end(kJob), std::nullopt);
  EXPECT_EQ(leases.find(kJob), nullptr);
  EXPECT_EQ(leases.first(), nullptr);
  leases.grant(lease_of(kJob, 20s));
  EXPECT_EQ(leases.first()->deadline, Timestamp{20s});
}

TEST(LeaseTable, EndsAllOfOneQueueOnly) {
  LeaseTable leases;
  for (const Seq seq : {1, 2, 3}) leases.grant(lease_of({1, seq}, 10s));
  leases.grant(lease_of({2, 4}, 20s));
  leases.end_all_of(1);
  EXPECT_EQ(leases.size(), 1U);
  EXPECT_EQ(leases.first()->job, (JobKey{2, 4}));
  leases.end_all_of(9);
  EXPECT_EQ(leases.size(), 1U);
}

TEST(LeaseTableDeathTest, ASecondLeaseOfOneJobIsABugThatStopsTheProcess) {
  LeaseTable leases;
  leases.grant(lease_of(kJob, 10s));
  EXPECT_DEATH(leases.grant(lease_of(kJob, 20s)), "");
}

}  // namespace
}  // namespace reprise
