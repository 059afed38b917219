#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/engine_fixture.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using test::Counts;
using test::Names;
using testing::ElementsAre;
using testing::HasSubstr;

class EnginePush : public test::EngineFixture {};

TEST_F(EnginePush, WhatWasPushedIsClaimedAsItWas) {
  const Seq seq = push("{\"id\": 1}", {.payload_kind = PayloadKind::json,
                                       .headers = {{"tenant", "a"}, {"trace", ""}},
                                       .priority = 5,
                                       .ttl = 1h,
                                       .key = "k1"});
  const ClaimedJob job = claim_one();
  EXPECT_EQ(job.token.job, key_of(seq));
  EXPECT_EQ(*job.record, (JobRecord{.pushed_at = now(),
                                    .expires_at = now() + 1h,
                                    .priority = 5,
                                    .payload_kind = PayloadKind::json,
                                    .key = "k1",
                                    .headers = {{"tenant", "a"}, {"trace", ""}},
                                    .payload = "{\"id\": 1}"}));
}

TEST_F(EnginePush, CountsJobsAndBytes) {
  push("12345", {.headers = {{"ab", "c"}}, .key = "k"});
  push("");
  EXPECT_EQ(counts(), (Counts{.pending = 2}));
  EXPECT_EQ(stats().bytes, 5U + 3U + 1U);
  EXPECT_EQ(totals(), (QueueTotals{.pushed = 2, .live_bytes = 9}));
}

TEST_F(EnginePush, IdsRiseAcrossQueuesAndRestarts) {
  const Seq first = push("a");
  const auto other = push_at_once({.queue = {.name = "other"}, .create = true, .jobs = {NewJob{}}});
  EXPECT_GT(other->results.at(0)->seq, first);
  restart();
  EXPECT_GT(push("b"), other->results.at(0)->seq);
}

TEST_F(EnginePush, AnUnknownQueueIsNamedWithWhatWasProbablyMeant) {
  const auto reply = push_at_once({.queue = {.name = "ordrs"}, .jobs = {NewJob{}}});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Errc::queue_not_found);
  EXPECT_THAT(reply.error().detail, HasSubstr("'ordrs'"));
  EXPECT_THAT(reply.error().detail, HasSubstr("did you mean 'orders'"));
}

TEST_F(EnginePush, CreateMakesTheQueueWithDefaultsOnce) {
  const QueueName fresh{.ns = "shop", .name = "new"};
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(push_at_once({.queue = fresh, .create = true, .jobs = {NewJob{}}}));
  }
  const auto made = engine_->queue_stats(fresh, now());
  ASSERT_TRUE(made);
  EXPECT_EQ(made->queue.config, QueueConfig{});
  EXPECT_EQ(made->totals.pushed, 2U);
}

TEST_F(EnginePush, CreateLeavesAnExistingConfigAlone) {
  configure({.lease = 5s});
  ASSERT_TRUE(push_at_once({.queue = queue_, .create = true, .jobs = {NewJob{}}}));
  EXPECT_EQ(stats().queue.config.lease, 5s);
}

TEST_F(EnginePush, ARefusedItemKeepsItsPlaceAndStopsNoOther) {
  const auto reply = push_all({NewJob{.payload = "a"}, Error{Errc::payload_too_large, "too large"},
                               NewJob{.payload = "c"}});
  ASSERT_EQ(reply.results.size(), 3U);
  EXPECT_TRUE(reply.results[0]);
  EXPECT_EQ(reply.results[1].error().code, Errc::payload_too_large);
  EXPECT_TRUE(reply.results[2]);
  EXPECT_THAT(claim_all(), ElementsAre("a", "c"));
  EXPECT_EQ(totals().pushed, 2U);
}

TEST_F(EnginePush, JobsAreServedByPriorityThenPushOrder) {
  push("default 1");
  push("late", {.priority = 4'294'967'295});
  push("urgent 1", {.priority = 0});
  push("default 2");
  push("urgent 2", {.priority = 0});
  EXPECT_THAT(claim_all(), ElementsAre("urgent 1", "urgent 2", "default 1", "default 2", "late"));
}

TEST_F(EnginePush, ADelayedJobIsScheduledUntilItIsDue) {
  push("a", {.delay = 10s});
  EXPECT_EQ(counts(), (Counts{.scheduled = 1}));
  advance(10s - 1us);
  EXPECT_EQ(counts(), (Counts{.scheduled = 1}));
  EXPECT_THAT(claim_all(), ElementsAre());
  advance(1us);
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  EXPECT_THAT(claim_all(), ElementsAre("a"));
}

TEST_F(EnginePush, ADelayedJobTakesItsPlaceInPushOrderWhenDue) {
  push("a");
  push("delayed", {.delay = 10s});
  push("b");
  push("delayed and urgent", {.delay = 10s, .priority = 1});
  push("delayed longer", {.delay = 20s});
  advance(10s);
  push("c");
  EXPECT_THAT(claim_all(), ElementsAre("delayed and urgent", "a", "delayed", "b", "c"));
}

TEST_F(EnginePush, DelaysAndTtlsBeyondTheCalendarAreNever) {
  push("a", {.delay = Duration::max()});
  push("b", {.ttl = Duration::max()});
  advance(std::chrono::years(100));
  EXPECT_EQ(counts(), (Counts{.scheduled = 1, .pending = 1}));
}

TEST_F(EnginePush, EachNewJobIsAnEvent) {
  push("a", {.key = "k"});
  EXPECT_TRUE(try_push("again", {.key = "k"})->duplicate);
  const auto events = engine_->take_events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].type, EventType::pushed);
  EXPECT_EQ(*events[0].queue, queue_);
  EXPECT_EQ(events[0].at, now());
}

// --- Idempotency keys.

class EngineKeys : public test::EngineFixture {
 protected:
  void expect_duplicate_of(Seq first, const std::string& key) {
    const auto pushed = try_push("again", {.key = key});
    ASSERT_TRUE(pushed) << pushed.error().detail;
    EXPECT_TRUE(pushed->duplicate);
    EXPECT_EQ(pushed->seq, first);
  }
};

TEST_F(EngineKeys, ASecondPushWithinTheWindowStoresNothing) {
  const Seq first = push("a", {.key = "k"});
  expect_duplicate_of(first, "k");
  EXPECT_EQ(totals(), (QueueTotals{.pushed = 1, .duplicates = 1, .live_bytes = 2}));
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  EXPECT_THAT(claim_all(), ElementsAre("a"));
}

TEST_F(EngineKeys, OneBatchIsDeduplicatedToo) {
  const auto reply =
      push_all({NewJob{.payload = "a", .key = "k"}, NewJob{.payload = "b", .key = "other"},
                NewJob{.payload = "c", .key = "k"}});
  EXPECT_FALSE(reply.results.at(0)->duplicate);
  EXPECT_FALSE(reply.results.at(1)->duplicate);
  EXPECT_TRUE(reply.results.at(2)->duplicate);
  EXPECT_EQ(reply.results.at(2)->seq, reply.results.at(0)->seq);
  EXPECT_THAT(claim_all(), ElementsAre("a", "b"));
}

TEST_F(EngineKeys, JobsWithoutAKeyAreNeverDuplicates) {
  push("a");
  push("a");
  EXPECT_THAT(claim_all(), ElementsAre("a", "a"));
}

TEST_F(EngineKeys, TheKeyIsRememberedWhateverHasBecomeOfTheJob) {
  const Seq acked = push("acked", {.key = "1"});
  EXPECT_TRUE(ack(claim_one()));
  const Seq dead = push("dead", {.key = "2"});
  EXPECT_TRUE(fail(claim_one(), {.final = true}));
  const Seq dropped = push("dropped", {.key = "3"});
  EXPECT_TRUE(drop(dropped));
  const Seq expired = push("expired", {.ttl = 1s, .key = "4"});
  advance(1s);
  expect_duplicate_of(acked, "1");
  expect_duplicate_of(dead, "2");
  expect_duplicate_of(dropped, "3");
  expect_duplicate_of(expired, "4");
  restart();
  expect_duplicate_of(acked, "1");
}

TEST_F(EngineKeys, TheWindowIsADayUnlessTold) {
  const Seq first = push("a", {.key = "k"});
  advance(24h - 1us);
  expect_duplicate_of(first, "k");
  advance(1us);
  EXPECT_NE(push("b", {.key = "k"}), first);
}

TEST_F(EngineKeys, AChangedWindowCountsFromTheNextPush) {
  configure({.key_window = 10s});
  push("a", {.key = "old"});
  configure({.key_window = 100s});
  const Seq second = push("b", {.key = "new"});
  advance(10s);
  push("c", {.key = "old"});
  expect_duplicate_of(second, "new");
}

TEST_F(EngineKeys, AJobMayAskForALongerWindowThanItsQueueHas) {
  configure({.key_window = 10s});
  const Seq long_known = push("a", {.key = "long", .least_key_window = 1h});
  push("b", {.key = "short"});
  advance(10s);
  expect_duplicate_of(long_known, "long");
  push("c", {.key = "short"});
  restart();
  advance(1h - 10s - 1us);
  expect_duplicate_of(long_known, "long");
  advance(1us);
  push("d", {.key = "long"});
}

TEST_F(EngineKeys, ALeastWindowShortensNothing) {
  configure({.key_window = 1h});
  const Seq first = push("a", {.key = "k", .least_key_window = 10s});
  advance(1h - 1us);
  expect_duplicate_of(first, "k");
}

TEST_F(EngineKeys, ADuplicateDoesNotProlongTheWindow) {
  configure({.key_window = 10s});
  const Seq first = push("a", {.key = "k"});
  advance(9s);
  expect_duplicate_of(first, "k");
  advance(1s);
  push("b", {.key = "k"});
}

TEST_F(EngineKeys, QueuesHaveKeysOfTheirOwn) {
  push("a", {.key = "k"});
  const auto reply =
      push_at_once({.queue = {.name = "other"}, .create = true, .jobs = {NewJob{.key = "k"}}});
  EXPECT_FALSE(reply->results.at(0)->duplicate);
}

TEST_F(EngineKeys, ARefusedPushTakesNoKey) {
  configure({.max_jobs = 1});
  push("full");
  EXPECT_EQ(push_error("refused", {.key = "k"}), Errc::queue_full);
  EXPECT_TRUE(ack(claim_one()));
  push("taken", {.key = "k"});
}

TEST_F(EngineKeys, ForgettingTakesOnlyKeysThatAreOver) {
  configure({.key_window = 10s});
  push("a", {.key = "over"});
  advance(5s);
  const Seq second = push("b", {.key = "in use"});
  advance(5s);
  const std::vector<Engine::StoredKey> found = {
      {number(), "over"}, {number(), "in use"}, {number(), "never there"}, {99, "over"}};
  engine_->forget_keys(found, now());
  EXPECT_EQ(ledger_.keys.size(), 1U);
  expect_duplicate_of(second, "in use");
}

// Between the search for old keys and the forgetting, a push may have renewed one.
TEST_F(EngineKeys, ForgettingLooksAgain) {
  configure({.key_window = 10s});
  push("a", {.key = "k"});
  advance(10s);
  const Seq second = push("b", {.key = "k"});
  const Engine::StoredKey found{number(), "k"};
  engine_->forget_keys({&found, 1}, now());
  expect_duplicate_of(second, "k");
}

TEST_F(EngineKeys, ADamagedKeyRefusesPushesUntilItIsForgotten) {
  push("a", {.key = "damaged"});
  push("b", {.key = "whole"});
  ledger_.corrupt_keys.insert({number(), "damaged"});
  expect_no_change([&] {
    EXPECT_EQ(push_error("again", {.key = "damaged"}), Errc::corrupt) << "is it a duplicate?";
  });
  const std::vector<Engine::StoredKey> found = {{number(), "damaged"}, {number(), "whole"}};
  engine_->forget_keys(found, now());
  EXPECT_EQ(ledger_.keys.size(), 1U);
  const Seq again = push("again", {.key = "damaged"});
  expect_duplicate_of(again, "damaged");
}

// --- Room.

class EngineRoom : public test::EngineFixture {};

TEST_F(EngineRoom, MaxJobsCountsAllThatAreNotDead) {
  configure({.retry = {.attempts = 2, .wait = 1h}, .max_jobs = 4});
  push("failed");
  EXPECT_TRUE(fail(claim_one()));
  push("active");
  const ClaimedJob active = claim_one();
  push("pending");
  push("scheduled", {.delay = 1h});
  EXPECT_EQ(counts(), (Counts{.scheduled = 1, .pending = 1, .active = 1, .failed = 1}));
  EXPECT_EQ(push_error("one more"), Errc::queue_full);
  EXPECT_TRUE(fail(active, {.final = true}));
  push("in its place");
  EXPECT_EQ(push_error("one more"), Errc::queue_full);
}

TEST_F(EngineRoom, AckAndDropMakeRoom) {
  configure({.max_jobs = 1});
  push("a");
  EXPECT_TRUE(ack(claim_one()));
  const Seq second = push("b");
  EXPECT_EQ(push_error("c"), Errc::queue_full);
  EXPECT_TRUE(drop(second));
  push("c");
}

TEST_F(EngineRoom, MaxBytesCountsPayloadHeadersAndKey) {
  configure({.max_bytes = 10});
  push("1234", {.headers = {{"h", "v"}}, .key = "k"});
  EXPECT_EQ(push_error("1234"), Errc::queue_bytes_full);
  push("123");
  EXPECT_EQ(push_error("1"), Errc::queue_bytes_full);
  push("");
  EXPECT_TRUE(ack(claim_one()));
  push("1234567");
}

TEST_F(EngineRoom, ABatchIsTakenAsFarAsItFits) {
  configure({.max_jobs = 2});
  const auto reply = push_all({NewJob{}, NewJob{}, NewJob{}, NewJob{}});
  EXPECT_TRUE(reply.results[0]);
  EXPECT_TRUE(reply.results[1]);
  EXPECT_EQ(reply.results[2].error().code, Errc::queue_full);
  EXPECT_EQ(reply.results[3].error().code, Errc::queue_full);
  EXPECT_EQ(totals().pushed, 2U);
}

TEST_F(EngineRoom, AFullQueueStillKnowsItsDuplicates) {
  configure({.max_jobs = 1});
  const Seq first = push("a", {.key = "k"});
  EXPECT_EQ(try_push("again", {.key = "k"})->seq, first);
}

TEST_F(EngineRoom, RefusedJobsLeaveNothingBehind) {
  configure({.max_jobs = 1});
  push("a");
  expect_no_change(
      [&] { EXPECT_EQ(push_error("b", {.delay = 1s, .ttl = 1s, .key = "k"}), Errc::queue_full); });
}

TEST_F(EngineRoom, ALowDiskRefusesPushesAndNothingElse) {
  const Seq known = push("a", {.key = "k"});
  push("b");
  engine_->set_disk_low(true);
  EXPECT_EQ(push_error("c"), Errc::disk_full);
  EXPECT_EQ(try_push("again", {.key = "k"})->seq, known) << "it is stored already";
  EXPECT_TRUE(ack(claim_one()));
  EXPECT_TRUE(release(claim_one()));
  EXPECT_EQ(counts(), (Counts{.pending = 1, .completed = 1}));
  engine_->set_disk_low(false);
  push("c");
}

}  // namespace
}  // namespace reprise
