#include "engine/lease_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

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

// Released and claimed again within one step, as a worker does that gives jobs back at once.
TEST(LeaseTable, AJobMayBeLeasedAgainUntilTheSameMoment) {
  LeaseTable leases;
  for (const Seq seq : {1, 2, 3}) leases.grant(lease_of({1, seq}, 10s));
  leases.end({1, 2});
  leases.grant(lease_of({1, 2}, 10s));
  for (const Seq seq : {1, 2, 3}) {
    ASSERT_NE(leases.first(), nullptr);
    EXPECT_EQ(leases.first()->job.seq, seq);
    leases.end({1, seq});
  }
  EXPECT_EQ(leases.first(), nullptr);
}

TEST(LeaseTable, EndlessOnesAreInTheOrderOfTheirJobs) {
  LeaseTable leases;
  for (const Seq seq : {3, 1, 2}) {
    Lease lease = lease_of({1, seq}, 0s);
    lease.deadline = seq == 2 ? Timestamp{10s} : kNever;
    leases.grant(lease);
  }
  const auto endless = leases.endless();
  ASSERT_EQ(endless.size(), 2U);
  EXPECT_EQ(endless[0].job.seq, 1U);
  EXPECT_EQ(endless[1].job.seq, 3U);
}

// Against a map that is searched through: whatever order leases begin, end and move in.
TEST(LeaseTable, TheFirstIsThatOfASortedMap) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 dice(seed);
    const auto below = [&](unsigned end) {
      return std::uniform_int_distribution(0U, end - 1)(dice);
    };
    LeaseTable leases;
    std::map<JobKey, Timestamp> expected;
    Timestamp now{};
    for (int step = 0; step < 3000; ++step) {
      now += std::chrono::microseconds(below(3));
      const JobKey job{1, below(200) + 1};
      // Most are as long as the others.
      const Timestamp until = now + (below(10) == 0 ? 1s * below(60) : 30s);
      if (!expected.contains(job)) {
        leases.grant({.job = job, .deadline = until});
        expected[job] = until;
      } else if (below(4) == 0) {
        leases.extend(job, until);
        expected[job] = until;
      } else {
        EXPECT_EQ(leases.end(job)->deadline, expected[job]);
        expected.erase(job);
      }
      const Lease* first = leases.first();
      ASSERT_EQ(first == nullptr, expected.empty());
      if (first == nullptr) continue;
      const auto earliest = std::ranges::min_element(
          expected, {}, [](const auto& lease) { return std::pair(lease.second, lease.first); });
      ASSERT_EQ(first->job, earliest->first);
      ASSERT_EQ(first->deadline, earliest->second);
    }
    EXPECT_EQ(leases.size(), expected.size());
  }
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
