// How claims are shared between the lanes. What holds over every run of them is in
// engine_lanes_property_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "support/engine_fixture.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using test::Names;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class EngineLanes : public test::EngineFixture {
 protected:
  void set_fetch(std::uint32_t retry_share_ppm, std::optional<std::uint64_t> in_flight = {}) {
    configure({.lease = 30s,
               .retry = {.attempts = std::nullopt, .wait = 0s},
               .fetch = {.retry_share_ppm = retry_share_ppm, .retry_in_flight = in_flight}});
  }
  // So many retries that are due, each a moment later than the one before; nothing else may wait.
  std::vector<Seq> push_retries(int count) {
    for (int i = 0; i < count; ++i) push("r" + std::to_string(i));
    std::vector<Seq> seqs;
    for (const ClaimedJob& job : claim(static_cast<std::uint32_t>(count))) {
      EXPECT_TRUE(fail(job, {.error = "e", .delay = 0s}));
      pass(1us);
      seqs.push_back(job.token.job.seq);
    }
    EXPECT_THAT(seqs, SizeIs(count));
    tick();
    return seqs;
  }
  void push_fresh(int count) {
    for (int i = 0; i < count; ++i) push("f" + std::to_string(i));
  }
  // How many of them are retries.
  static int retries_of(const std::vector<ClaimedJob>& jobs) {
    return static_cast<int>(
        std::ranges::count_if(jobs, [](const ClaimedJob& job) { return job.failures > 0; }));
  }
};

// --- The share.

struct Share {
  std::uint32_t ppm;
  int retries_of_100;
};

class EngineLaneShare : public EngineLanes, public testing::WithParamInterface<Share> {};

TEST_P(EngineLaneShare, IsExactOverClaimsOfOne) {
  set_fetch(GetParam().ppm);
  push_retries(120);
  push_fresh(120);
  int retries = 0;
  for (int i = 0; i < 100; ++i) retries += retries_of(claim(1));
  EXPECT_EQ(retries, GetParam().retries_of_100);
}

TEST_P(EngineLaneShare, IsExactOverClaimsOfMixedSizes) {
  set_fetch(GetParam().ppm);
  push_retries(120);
  push_fresh(120);
  int retries = 0;
  int given = 0;
  for (const std::uint32_t size : {1U, 7U, 2U, 30U, 1U, 1U, 3U, 50U, 5U}) {
    const auto jobs = claim(size);
    retries += retries_of(jobs);
    given += static_cast<int>(jobs.size());
    const double fair = static_cast<double>(given) * GetParam().ppm / kWholeShare;
    EXPECT_LT(std::abs(retries - fair), 1) << "after " << given;
  }
  EXPECT_EQ(given, 100);
  EXPECT_EQ(retries, GetParam().retries_of_100);
}

TEST_P(EngineLaneShare, UnusedRoomGoesToTheOtherLane) {
  set_fetch(GetParam().ppm);
  push_retries(3);
  EXPECT_EQ(retries_of(claim(10)), 3) << "nothing fresh waits";
  push_fresh(3);
  EXPECT_THAT(claim(10), SizeIs(3)) << "no retry waits";
}

INSTANTIATE_TEST_SUITE_P(Shares, EngineLaneShare,
                         testing::Values(Share{0, 0}, Share{200'000, 20}, Share{370'000, 37},
                                         Share{500'000, 50}, Share{1'000'000, 100}),
                         [](const auto& share) { return std::to_string(share.param.ppm); });

TEST_F(EngineLanes, AClaimIsFilledFromBothLanes) {
  set_fetch(200'000);
  push_retries(10);
  push_fresh(2);
  const auto jobs = claim(10);
  EXPECT_THAT(jobs, SizeIs(10));
  EXPECT_EQ(retries_of(jobs), 8);
}

TEST_F(EngineLanes, WhatOneLaneGivesAloneEarnsNoCredit) {
  set_fetch(200'000);
  push_fresh(50);
  claim(40);
  EXPECT_EQ(stats().lanes.retry_credit, 0);
  push("x", {.priority = 0});
  EXPECT_TRUE(fail(claim_one(), {.delay = 0s}));
  EXPECT_EQ(retries_of(claim(4)), 0);
  EXPECT_EQ(retries_of(claim(1)), 1);
}

TEST_F(EngineLanes, CreditIsKeptWhenTheShareIsEdited) {
  set_fetch(400'000);
  push_retries(10);
  push_fresh(10);
  EXPECT_EQ(retries_of(claim(2)), 0);
  EXPECT_DOUBLE_EQ(stats().lanes.retry_credit, 0.8);
  set_fetch(200'000);
  EXPECT_EQ(retries_of(claim(1)), 1);
  EXPECT_DOUBLE_EQ(stats().lanes.retry_credit, 0);
}

TEST_F(EngineLanes, TheLanesTakeTurnsEachInItsOwnOrder) {
  set_fetch(500'000);
  push_retries(3);
  push_fresh(3);
  EXPECT_THAT(names(claim(6)), ElementsAre("f0", "r0", "f1", "r1", "f2", "r2"));
}

TEST_F(EngineLanes, RetriesGoByWhenTheyBecameDue) {
  set_fetch(200'000);
  push_many({"a", "b", "c"});
  const auto jobs = claim(3);
  EXPECT_TRUE(fail(jobs[0], {.delay = 30s}));
  EXPECT_TRUE(fail(jobs[1], {.delay = 10s}));
  EXPECT_TRUE(fail(jobs[2], {.delay = 20s}));
  advance(1h);
  EXPECT_THAT(claim_all(), ElementsAre("b", "c", "a"));
}

TEST_F(EngineLanes, AClaimMayChooseItsLane) {
  set_fetch(200'000);
  push_retries(3);
  push_fresh(3);
  EXPECT_THAT(names(claim_from(LaneChoice::retry, 2)), ElementsAre("r0", "r1"));
  EXPECT_THAT(names(claim_from(LaneChoice::fresh, 10)), ElementsAre("f0", "f1", "f2"));
  EXPECT_THAT(claim_from(LaneChoice::fresh, 10), IsEmpty());
  EXPECT_THAT(names(claim_from(LaneChoice::retry, 10)), ElementsAre("r2"));
  EXPECT_EQ(stats().lanes.retry_credit, 0) << "who chooses does not share";
}

TEST_F(EngineLanes, AWaitingClaimGetsJobsOfItsLaneOnly) {
  set_fetch(200'000);
  start_waiting(1, {.lane = LaneChoice::retry});
  start_waiting(2, {.lane = LaneChoice::fresh});
  push("a");
  EXPECT_THAT(answers(), ElementsAre(std::pair(2, Names{"a"})));
  push("b");
  EXPECT_TRUE(fail(claim_one(), {.delay = 0s}));
  EXPECT_THAT(answers(), ElementsAre(std::pair(1, Names{"b"})));
}

// --- Retries in flight.

TEST_F(EngineLanes, NoMoreRetriesAreLeasedThanAllowed) {
  set_fetch(500'000, 2);
  push_retries(5);
  push_fresh(5);
  EXPECT_THAT(names(claim(6)), ElementsAre("f0", "r0", "f1", "r1", "f2", "f3"));
  EXPECT_EQ(stats().lanes.retry_in_flight, 2U);
  EXPECT_THAT(claim_from(LaneChoice::retry, 5), IsEmpty());
  EXPECT_THAT(claim(5), SizeIs(1)) << "then the retry lane counts as empty";
  EXPECT_THAT(claim(5), IsEmpty());
  EXPECT_EQ(stats().lanes.retry, 3U);
}

TEST_F(EngineLanes, NoRetriesAtAllMayBeAllowed) {
  set_fetch(1'000'000, 0);
  push_retries(2);
  EXPECT_THAT(claim(5), IsEmpty());
  push_fresh(1);
  EXPECT_THAT(names(claim(5)), ElementsAre("f0"));
}

TEST_F(EngineLanes, AFullRetryLaneEarnsNoCredit) {
  set_fetch(500'000, 1);
  push_retries(3);
  push_fresh(9);
  const auto jobs = claim(8);
  EXPECT_EQ(retries_of(jobs), 1);
  EXPECT_EQ(stats().lanes.retry_credit, 0);
}

TEST_F(EngineLanes, ARestartKnowsHowManyAreInFlight) {
  set_fetch(200'000, 2);
  push_retries(4);
  push_fresh(1);
  const auto retries = claim_from(LaneChoice::retry, 2);
  const auto fresh = claim_from(LaneChoice::fresh, 1);
  restart();
  tick();
  EXPECT_EQ(stats().lanes.retry_in_flight, 2U);
  EXPECT_THAT(claim(5), IsEmpty());
  EXPECT_TRUE(ack(fresh[0]));
  EXPECT_THAT(claim(5), IsEmpty());
  EXPECT_TRUE(ack(retries[0]));
  EXPECT_THAT(claim(5), SizeIs(1));
}

TEST_F(EngineLanes, TheLimitMayFallBelowWhatIsOutAlready) {
  set_fetch(200'000);
  push_retries(4);
  const auto jobs = claim(3);
  set_fetch(200'000, 1);
  EXPECT_TRUE(ack(jobs[0]));
  EXPECT_TRUE(ack(jobs[1]));
  EXPECT_THAT(claim(1), IsEmpty());
  EXPECT_TRUE(ack(jobs[2]));
  EXPECT_THAT(claim(1), SizeIs(1));
}

// Two retries, of which one may be out: a claim waits for the other, and gets it as soon as the
// first one's lease is over, however that came to be.
class RetryLeaseEnds : public EngineLanes {
 protected:
  void SetUp() override {
    set_fetch(200'000, 1);
    push_retries(2);
    held_ = claim_one();
    EXPECT_EQ(held_.record->payload, "r0");
    start_waiting(1, {.wait = 24h});
  }
  void expect_served() {
    EXPECT_THAT(answers(), ElementsAre(std::pair(1, Names{"r1"})));
    EXPECT_EQ(stats().lanes.retry_in_flight, 1U);
  }
  ClaimedJob held_;
};

TEST_F(RetryLeaseEnds, ByAck) {
  EXPECT_TRUE(ack(held_));
  expect_served();
}

TEST_F(RetryLeaseEnds, ByAFailureThatIsRetriedLater) {
  EXPECT_TRUE(fail(held_, {.delay = 1h}));
  expect_served();
}

TEST_F(RetryLeaseEnds, ByDeath) {
  EXPECT_TRUE(fail(held_, {.final = true}));
  expect_served();
}

TEST_F(RetryLeaseEnds, ByDeathIntoADeadLetterQueue) {
  ASSERT_TRUE(engine_->edit_queue(
      queue_,
      [](QueueConfig& config) {
        config.dead_letter_queue = "graves";
        return ok();
      },
      now()));
  EXPECT_TRUE(fail(held_, {.final = true}));
  expect_served();
}

TEST_F(RetryLeaseEnds, ByRelease) {
  EXPECT_TRUE(release(held_, 1h));
  expect_served();
}

TEST_F(RetryLeaseEnds, ByReleaseAtOnceWhichIsServedInItsPlace) {
  EXPECT_TRUE(release(held_));
  EXPECT_THAT(answers(), ElementsAre(std::pair(1, Names{"r0"})));
}

TEST_F(RetryLeaseEnds, ByDrop) {
  EXPECT_TRUE(drop(held_.token.job.seq));
  expect_served();
}

TEST_F(RetryLeaseEnds, ByDropOfAJobThatCannotBeRead) {
  ledger_.corrupt_states.insert(held_.token.job);
  EXPECT_TRUE(drop(held_.token.job.seq));
  expect_served();
}

TEST_F(RetryLeaseEnds, ByExpiry) {
  ASSERT_TRUE(engine_->edit_queue(
      queue_,
      [](QueueConfig& config) {
        config.retry.wait = Duration(1h);
        return ok();
      },
      now()));
  advance(30s);
  expect_served();
}

TEST_F(RetryLeaseEnds, ByExpiryAndDeath) {
  ASSERT_TRUE(engine_->edit_queue(
      queue_,
      [](QueueConfig& config) {
        config.retry = {};
        return ok();
      },
      now()));
  advance(30s);
  expect_served();
}

TEST_F(RetryLeaseEnds, ByExpiryOfAJobThatCannotBeRead) {
  ledger_.corrupt_states.insert(held_.token.job);
  advance(30s);
  EXPECT_EQ(totals().corrupt, 1U);
  expect_served();
}

TEST_F(RetryLeaseEnds, OrTheLimitIsRaised) {
  ASSERT_TRUE(engine_->edit_queue(
      queue_,
      [](QueueConfig& config) {
        config.fetch.retry_in_flight = 2;
        return ok();
      },
      now()));
  EXPECT_THAT(answers(), ElementsAre(std::pair(1, Names{"r1"})));
}

TEST_F(RetryLeaseEnds, OrTheLimitIsTakenAway) {
  set_fetch(200'000);
  EXPECT_THAT(answers(), ElementsAre(std::pair(1, Names{"r1"})));
}

TEST_F(RetryLeaseEnds, NotWhenAFreshOneDoes) {
  push("f");
  EXPECT_THAT(answers(), ElementsAre(std::pair(1, Names{"f"}))) << "fresh jobs need no room";
  push("g");
  const ClaimedJob fresh = claim_one();
  start_waiting(2, {.wait = 24h});
  EXPECT_TRUE(ack(fresh));
  EXPECT_THAT(answers(), IsEmpty());
}

// --- What stats say.

TEST_F(EngineLanes, StatsTellTheLanes) {
  set_fetch(200'000, 7);
  push_retries(3);
  push_fresh(4);
  const auto out = claim_from(LaneChoice::retry, 1);
  EXPECT_TRUE(fail(claim_from(LaneChoice::retry, 1).at(0), {.delay = 1h}));
  claim(2);
  const LaneStats lanes = stats().lanes;
  EXPECT_EQ(lanes.fresh, 2U);
  EXPECT_EQ(lanes.retry, 1U);
  EXPECT_EQ(lanes.retry_in_flight, 1U);
  EXPECT_DOUBLE_EQ(lanes.retry_credit, 0.4);
  EXPECT_THAT(lanes.retries_by_failures, ElementsAre(1, 1, 0, 0, 0, 0, 0, 0, 0, 0))
      << "those that cool down too, those that are out not";
  EXPECT_EQ(totals().claimed_retry, 2U);
  EXPECT_EQ(totals().claimed, 7U);
}

TEST_F(EngineLanes, StatsCountManyFailuresTogether) {
  set_fetch(200'000);
  push("a");
  for (int i = 0; i < 12; ++i) {
    EXPECT_TRUE(fail(claim_one(), {.delay = 0s}));
    const RetryCounts counts = stats().lanes.retries_by_failures;
    EXPECT_EQ(counts[static_cast<std::size_t>(std::min(i, 9))], 1U) << i;
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0U), 1U) << i;
  }
}

}  // namespace
}  // namespace reprise
