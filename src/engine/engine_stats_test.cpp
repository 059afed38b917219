// What people see of a queue, what is written of it, and that a restart sees the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/engine_fixture.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using test::Counts;
using test::Names;
using testing::ElementsAre;

class EngineStats : public test::EngineFixture {};

TEST_F(EngineStats, ANewQueueIsAllZero) {
  const QueueStats seen = stats();
  EXPECT_EQ(Counts::of(seen.by_status), Counts{});
  EXPECT_EQ(seen.bytes, 0U);
  EXPECT_EQ(seen.oldest_pending_age, std::nullopt);
  EXPECT_EQ(seen.waiting_claims, 0U);
  EXPECT_EQ(seen.totals, QueueTotals{});
  EXPECT_EQ(seen.push_rate, 0.0);
}

TEST_F(EngineStats, TheOldestPendingJobIsTheOnePushedLongestAgo) {
  push("old", {.priority = 1000});
  pass(10s);
  push("new and urgent", {.priority = 0});
  pass(5s);
  EXPECT_EQ(stats().oldest_pending_age, 15s);
  claim_one();
  EXPECT_EQ(stats().oldest_pending_age, 15s);
  claim_one();
  EXPECT_EQ(stats().oldest_pending_age, std::nullopt);
}

TEST_F(EngineStats, ARetryHasWaitedSinceItWasDue) {
  set_retry(5, 10s);
  push("a");
  EXPECT_TRUE(fail(claim_one()));
  advance(5s);
  EXPECT_EQ(stats().oldest_pending_age, std::nullopt);
  advance(8s);
  EXPECT_EQ(stats().oldest_pending_age, 3s);
  push("fresh");
  pass(1s);
  EXPECT_EQ(stats().oldest_pending_age, 4s);
}

TEST_F(EngineStats, RatesArePerSecondOverTheLastMinute) {
  set_retry(1000, 0s);
  for (int i = 0; i < 6; ++i) push("a");
  const auto jobs = claim(6);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(ack(jobs[static_cast<std::size_t>(i)]));
  EXPECT_TRUE(fail(jobs[3]));
  const QueueStats seen = stats();
  EXPECT_DOUBLE_EQ(seen.push_rate, 0.1);
  EXPECT_DOUBLE_EQ(seen.claim_rate, 0.1);
  EXPECT_DOUBLE_EQ(seen.completion_rate, 0.05);
  EXPECT_DOUBLE_EQ(seen.failure_rate, 1 / 60.0);
  pass(2min);
  EXPECT_DOUBLE_EQ(stats().push_rate, 0.0);
}

// --- What is written.

TEST_F(EngineStats, TotalsAreWrittenWhenSealedAndOnlyIfTheyChanged) {
  push("a");
  EXPECT_EQ(ledger_.totals[number()].pushed, 0U) << "one write per batch, not per job";
  engine_->seal(now());
  EXPECT_EQ(ledger_.totals[number()], (QueueTotals{.pushed = 1, .live_bytes = 1}));
  EXPECT_EQ(ledger_.server.clock, now());
  pass(1h);
  const Timestamp written = ledger_.server.clock;
  engine_->seal(now());
  EXPECT_EQ(ledger_.server.clock, written) << "nothing to write";
  claim_one();
  engine_->seal(now());
  EXPECT_EQ(ledger_.totals[number()], (QueueTotals{.pushed = 1, .claimed = 1, .live_bytes = 1}));
  EXPECT_EQ(ledger_.server.clock, now());
}

TEST_F(EngineStats, TheNextIdIsWrittenWithThePush) {
  const Seq seq = push("a");
  engine_->seal(now());
  EXPECT_GT(ledger_.server.next_seq, seq);
  EXPECT_EQ(ledger_.server.next_seq, engine_->next_seq());
}

// --- Restarts.

class EngineRestart : public test::EngineFixture {
 protected:
  // Jobs in every status, with priorities, releases, delays and retries mixed.
  void make_a_mess() {
    set_retry(5, 10s);
    for (int i = 0; i < 30; ++i) {
      push(std::to_string(i), {.delay = i % 5 == 0 ? Duration(7s) : Duration{},
                               .priority = static_cast<Priority>(i % 3)});
    }
    const auto jobs = claim(15);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      switch (i % 5) {
        case 0:
          EXPECT_TRUE(ack(jobs[i]));
          break;
        case 1:
          EXPECT_TRUE(fail(jobs[i], {.delay = i * 1s}));
          break;
        case 2:
          EXPECT_TRUE(release(jobs[i], i % 2 == 0 ? 3s : 0s));
          break;
        case 3:
          EXPECT_TRUE(fail(jobs[i], {.final = true}));
          break;
        default:
          break;  // stays leased
      }
    }
  }
  // Every job that can be had, lane by lane, in order.
  std::pair<Names, Names> order() {
    Names fresh = names(claim_from(LaneChoice::fresh, 1000));
    return {std::move(fresh), names(claim_from(LaneChoice::retry, 1000))};
  }
};

TEST_F(EngineRestart, ShowsTheSameNumbers) {
  make_a_mess();
  for (int step = 0; step < 5; ++step) {
    const QueueStats before = stats();
    restart();
    tick();
    EXPECT_EQ(counts(), Counts::of(before.by_status)) << step;
    EXPECT_EQ(stats().bytes, before.bytes);
    EXPECT_EQ(totals(), before.totals);
    EXPECT_EQ(stats().oldest_pending_age, before.oldest_pending_age);
    advance(4s);
  }
}

TEST_F(EngineRestart, BytesAreTakenFromTheTotalsAndNotCounted) {
  push("12345");
  engine_->seal(now());
  make_engine();
  engine_->restore_server(ledger_.server);
  engine_->restore_queue(ledger_.queues.at(1), ledger_.totals.at(1));
  EXPECT_EQ(stats().bytes, 5U);
  engine_->restore_job({.key = {1, 1}, .priority = kDefaultPriority, .byte_size = 5});
  EXPECT_EQ(stats().bytes, 5U);
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
}

TEST_F(EngineRestart, GivesJobsInTheSameOrder) {
  for (const Duration later : {0s, 5s, 30s}) {
    ledger_ = {};
    make_engine();
    make_a_mess();
    const test::MapLedger stored = ledger_;
    advance(later);
    const auto expected = order();
    EXPECT_FALSE(expected.first.empty());

    ledger_ = stored;
    restart();
    tick();
    EXPECT_EQ(order(), expected) << "after " << later.count() << "us";
  }
}

TEST_F(EngineRestart, NothingHappensTwice) {
  set_retry(5, 10s);
  push("a", {.ttl = 30s});
  push("b");
  EXPECT_TRUE(ack(claim_one()));
  const ClaimedJob job = claim_one({.lease = 5s});
  advance(5s);
  restart();
  tick();
  EXPECT_EQ(totals(), (QueueTotals{.pushed = 2,
                                   .claimed = 2,
                                   .completed = 1,
                                   .failed = 1,
                                   .lease_expired = 1,
                                   .live_bytes = 1}));
  EXPECT_EQ(ack(job).error().code, Errc::lease_lost);
  advance(10s);
  EXPECT_THAT(claim_all(), ElementsAre("b"));
}

TEST_F(EngineRestart, WhatBecameDueMeanwhileIsDoneByTheFirstTick) {
  set_retry(5, 10s);
  push("delayed", {.delay = 10s});
  push("mortal", {.ttl = 10s});
  push("leased", {.priority = 0});
  claim_one({.lease = 10s});
  pass(1h);
  restart();
  EXPECT_LE(engine_->next_wake(), now());
  tick();
  EXPECT_EQ(counts(), (Counts{.pending = 1, .failed = 1, .dead = 1}));
}

}  // namespace
}  // namespace reprise
