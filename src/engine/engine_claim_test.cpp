#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/engine_fixture.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using test::Counts;
using test::Names;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class EngineClaim : public test::EngineFixture {
 protected:
  // Jobs that have failed once and are due, in this order.
  void push_retries(const Names& payloads) {
    set_retry(100, 0s);
    for (const std::string& payload : payloads) {
      push(payload);
      const auto jobs = claim_from(LaneChoice::fresh);
      ASSERT_EQ(names(jobs), Names{payload});
      EXPECT_TRUE(fail(jobs[0], {.error = "first failure"}));
      pass(1us);  // retries are ordered by their retry time
    }
  }
};

TEST_F(EngineClaim, TellsAllAboutTheLease) {
  configure({.lease = 45s});
  const Seq seq = push("a");
  const ClaimedJob job = claim_one({.worker = "host-1"});
  EXPECT_EQ(job.token.job, key_of(seq));
  EXPECT_EQ(job.attempts, 1U);
  EXPECT_EQ(job.failures, 0U);
  EXPECT_EQ(job.lease_deadline, now() + 45s);
  EXPECT_EQ(job.last_error, "");
  const JobState state = state_of(seq);
  EXPECT_EQ(state.status, JobStatus::active);
  EXPECT_EQ(state.lease_nonce, job.token.nonce);
  EXPECT_EQ(state.lease_started_at, now());
  EXPECT_EQ(state.lease_deadline, now() + 45s);
  EXPECT_EQ(state.first_attempt_at, now());
  EXPECT_EQ(state.worker, "host-1");
}

TEST_F(EngineClaim, ItsOwnLeaseReplacesTheQueues) {
  push("a");
  EXPECT_EQ(claim_one({.lease = 5min}).lease_deadline, now() + 5min);
}

TEST_F(EngineClaim, EveryLeaseHasASecretOfItsOwn) {
  push_many({"a", "b"});
  const auto first = claim(2);
  EXPECT_NE(first[0].token.nonce, first[1].token.nonce);
  EXPECT_TRUE(release(first[0]));
  EXPECT_NE(claim_one().token.nonce, first[0].token.nonce);
}

TEST_F(EngineClaim, GivesAtMostMaxAndEachJobOnce) {
  push_many({"a", "b", "c"});
  EXPECT_THAT(names(claim(2)), ElementsAre("a", "b"));
  EXPECT_THAT(names(claim(2)), ElementsAre("c"));
  EXPECT_THAT(names(claim(2)), IsEmpty());
  EXPECT_EQ(counts(), (Counts{.active = 3}));
  EXPECT_EQ(totals(), (QueueTotals{.pushed = 3, .claimed = 3, .live_bytes = 3}));
}

TEST_F(EngineClaim, AskingForNoneAsksForOne) {
  push_many({"a", "b"});
  EXPECT_THAT(names(claim(0)), ElementsAre("a"));
}

TEST_F(EngineClaim, AnUnknownQueueIsRefusedEvenIfItWouldWait) {
  const auto reply = engine_->claim(1, {.queue = {.name = "nowhere"}, .wait = 10s}, now());
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->error().code, Errc::queue_not_found);
}

TEST_F(EngineClaim, OneReplyHoldsAtMostSixteenMebibytes) {
  const std::string large((1 << 20) - 1, 'x');
  for (int i = 0; i < 40; ++i) push(large);
  std::size_t left = 40;
  while (left > 0) {
    const auto jobs = claim(1000);
    ASSERT_FALSE(jobs.empty());
    EXPECT_LE(jobs.size() * large.size(), 16U << 20);
    EXPECT_TRUE(jobs.size() >= 15 || jobs.size() == left) << jobs.size();
    left -= jobs.size();
  }
}

TEST_F(EngineClaim, OneReplyHoldsAtLeastOneJobHoweverLarge) {
  push(std::string(17U << 20, 'x'));
  push("b");
  EXPECT_EQ(claim(10).size(), 1U);
  EXPECT_THAT(names(claim(10)), ElementsAre("b"));
}

TEST_F(EngineClaim, IsAnEventForEachJob) {
  push_many({"a", "b"});
  engine_->take_events();
  claim(2);
  const auto events = engine_->take_events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].type, EventType::taken);
  EXPECT_EQ(events[1].attempts, 1U);
}

// --- Lanes.

TEST_F(EngineClaim, LanesCanBeAskedForAlone) {
  push_retries({"retry"});
  push("fresh");
  EXPECT_THAT(names(claim_from(LaneChoice::retry, 5)), ElementsAre("retry"));
  EXPECT_THAT(names(claim_from(LaneChoice::retry, 5)), IsEmpty());
  EXPECT_THAT(names(claim_from(LaneChoice::fresh, 5)), ElementsAre("fresh"));
  EXPECT_THAT(names(claim_from(LaneChoice::fresh, 5)), IsEmpty());
}

TEST_F(EngineClaim, RetriesComeByRetryTimeWhateverTheirPriority) {
  set_retry(5, 1h);
  for (const Priority priority : {1U, 2U, 3U}) {
    push(std::to_string(priority), {.priority = priority});
  }
  const auto jobs = claim(3);
  EXPECT_TRUE(fail(jobs[0], {.delay = 30s}));
  EXPECT_TRUE(fail(jobs[1], {.delay = 10s}));
  EXPECT_TRUE(fail(jobs[2], {.delay = 20s}));
  advance(1min);
  EXPECT_THAT(claim_all(), ElementsAre("2", "3", "1"));
}

TEST_F(EngineClaim, OneOfFiveGoesToTheRetryLaneWhileBothWait) {
  push_retries(Names(40, "retry"));
  push_many(Names(100, "fresh"));
  Names given;
  for (int i = 0; i < 100; ++i) given.push_back(claim_one().record->payload);
  EXPECT_EQ(std::ranges::count(given, "retry"), 20);
  for (auto window = given.begin(); given.end() - window >= 10; ++window) {
    const auto retries = std::count(window, window + 10, "retry");
    EXPECT_EQ(retries, 2) << "from " << window - given.begin();
  }
}

TEST_F(EngineClaim, TheShareIsCountedOverClaimsOfAnySize) {
  push_retries(Names(40, "retry"));
  push_many(Names(100, "fresh"));
  Names given;
  for (std::uint32_t size = 1; size <= 13; ++size) {
    for (const std::string& name : names(claim(size))) given.push_back(name);
  }
  ASSERT_EQ(given.size(), 91U);
  EXPECT_NEAR(std::ranges::count(given, "retry"), 91 / 5.0, 1.0);
}

TEST_F(EngineClaim, AnEmptyLaneGivesItsRoomToTheOther) {
  push_retries({"r1", "r2", "r3"});
  EXPECT_THAT(names(claim(2)), ElementsAre("r1", "r2"));
  push_many({"f1", "f2"});
  EXPECT_EQ(claim(10).size(), 3U);
}

// --- Paused queues.

TEST_F(EngineClaim, APausedQueueTakesPushesAndAcksButGivesNothing) {
  push("a");
  const ClaimedJob job = claim_one();
  pause();
  push("b");
  EXPECT_THAT(names(claim(5)), IsEmpty());
  EXPECT_TRUE(extend(job));
  EXPECT_TRUE(ack(job));
  EXPECT_EQ(counts(), (Counts{.pending = 1, .completed = 1}));
}

TEST_F(EngineClaim, ClaimsWaitForResume) {
  pause();
  start_waiting(1);
  push("a");
  EXPECT_THAT(answers(), IsEmpty());
  resume();
  EXPECT_THAT(answers(), ElementsAre(Pair(1, ElementsAre("a"))));
}

TEST_F(EngineClaim, TimeGoesOnWhilePaused) {
  set_retry(2, 5s);
  push("delayed", {.delay = 10s});
  push("leased");
  claim_one({.lease = 10s});
  start_waiting(1, {.wait = 30s});
  pause();
  advance(10s);
  EXPECT_EQ(counts(), (Counts{.pending = 1, .failed = 1}));
  advance(5s);
  EXPECT_EQ(counts(), (Counts{.pending = 2}));
  EXPECT_THAT(answers(), IsEmpty());
  advance(15s);
  EXPECT_THAT(answers(), ElementsAre(Pair(1, IsEmpty()))) << "the wait is over";
}

// --- Waiting claims.

class EngineWaiting : public EngineClaim {};

TEST_F(EngineWaiting, APushAnswersTheFirstInLine) {
  start_waiting(2);
  start_waiting(1);
  EXPECT_EQ(stats().waiting_claims, 2U);
  push("a");
  EXPECT_THAT(answers(), ElementsAre(Pair(2, ElementsAre("a"))));
  EXPECT_EQ(stats().waiting_claims, 1U);
  push("b");
  EXPECT_THAT(answers(), ElementsAre(Pair(1, ElementsAre("b"))));
  push("c");
  EXPECT_THAT(answers(), IsEmpty());
  EXPECT_EQ(counts(), (Counts{.pending = 1, .active = 2}));
}

TEST_F(EngineWaiting, OneBatchIsSharedOutInLine) {
  start_waiting(1, {.max = 2});
  start_waiting(2, {.max = 10});
  push_all({NewJob{.payload = "a"}, NewJob{.payload = "b"}, NewJob{.payload = "c"}});
  EXPECT_THAT(answers(), ElementsAre(Pair(1, ElementsAre("a", "b")), Pair(2, ElementsAre("c"))));
}

TEST_F(EngineWaiting, TheLeaseBeginsWhenTheJobIsGiven) {
  start_waiting(1, {.wait = 60s, .lease = 10s, .worker = "w"});
  advance(30s);
  const Seq seq = push("a");
  EXPECT_EQ(state_of(seq).lease_deadline, now() + 10s);
  EXPECT_EQ(state_of(seq).worker, "w");
}

TEST_F(EngineWaiting, AJobGoesToTheFirstThatItsLaneSuits) {
  set_retry(5, 10s);
  push("failing");
  const ClaimedJob failing = claim_one();
  start_waiting(1, {.lane = LaneChoice::retry});
  start_waiting(2, {.lane = LaneChoice::fresh});
  push("fresh");
  EXPECT_THAT(answers(), ElementsAre(Pair(2, ElementsAre("fresh"))));
  EXPECT_TRUE(fail(failing));
  EXPECT_THAT(answers(), IsEmpty()) << "it cools down";
  advance(10s);
  EXPECT_THAT(answers(), ElementsAre(Pair(1, ElementsAre("failing"))));
}

// All that can make a job pending while somebody waits.
TEST_F(EngineWaiting, WhateverMakesAJobPendingAnswersAClaim) {
  configure({.lease = 1h, .retry = {.attempts = 100, .wait = 0s}});
  push("a", {.delay = 10s});
  start_waiting(1, {.wait = 1h});
  advance(10s);
  EXPECT_THAT(answers(), ElementsAre(Pair(1, ElementsAre("a")))) << "a delay that ends";
  EXPECT_TRUE(drop(1));

  push("b");
  ClaimedJob job = claim_one();
  start_waiting(2, {.wait = 1h});
  EXPECT_TRUE(release(job));
  EXPECT_THAT(answers(), ElementsAre(Pair(2, ElementsAre("b")))) << "a release";
  EXPECT_TRUE(drop(2));

  push("c");
  job = claim_one();
  start_waiting(3, {.wait = 1h});
  EXPECT_TRUE(fail(job));
  EXPECT_THAT(answers(), ElementsAre(Pair(3, ElementsAre("c")))) << "a failure without cooldown";
  EXPECT_TRUE(drop(3));

  push("d");
  claim_one({.lease = 1s});
  start_waiting(4, {.wait = 1h});
  advance(1s);
  EXPECT_THAT(answers(), ElementsAre(Pair(4, ElementsAre("d")))) << "a lease that expires";
}

TEST_F(EngineWaiting, ATimeoutIsAnEmptyReply) {
  start_waiting(1, {.wait = 10s});
  start_waiting(2, {.wait = 5s});
  advance(5s - 1us);
  EXPECT_THAT(answers(), IsEmpty());
  advance(1us);
  EXPECT_THAT(answers(), ElementsAre(Pair(2, IsEmpty())));
  advance(5s);
  EXPECT_THAT(answers(), ElementsAre(Pair(1, IsEmpty())));
  push("a");
  EXPECT_THAT(answers(), IsEmpty()) << "nobody waits any more";
}

TEST_F(EngineWaiting, ACancelledClaimGetsNoJob) {
  start_waiting(1);
  start_waiting(2);
  engine_->cancel_claim(1);
  engine_->cancel_claim(1);
  engine_->cancel_claim(99);
  EXPECT_THAT(answers(), ElementsAre(Pair(1, IsEmpty())));
  push("a");
  EXPECT_THAT(answers(), ElementsAre(Pair(2, ElementsAre("a"))));
}

TEST_F(EngineWaiting, AllCanBeCancelledAtOnce) {
  start_waiting(1);
  start_waiting(2, {.lane = LaneChoice::retry});
  engine_->cancel_all_claims();
  EXPECT_THAT(answers(), ElementsAre(Pair(1, IsEmpty()), Pair(2, IsEmpty())));
  EXPECT_EQ(stats().waiting_claims, 0U);
  EXPECT_EQ(engine_->next_wake(), kNever);
}

TEST_F(EngineWaiting, TheLineIsLimited) {
  limits_.max_waiting_claims = 2;
  make_engine();
  configure({});
  start_waiting(1);
  start_waiting(2);
  const auto third = engine_->claim(3, {.queue = queue_, .wait = 1s}, now());
  ASSERT_TRUE(third.has_value());
  EXPECT_EQ(third->error().code, Errc::too_many_waiting);
  EXPECT_THAT(names(claim()), IsEmpty()) << "a claim that does not wait is no burden";
  engine_->cancel_claim(1);
  start_waiting(3);
}

TEST_F(EngineWaiting, OtherQueuesDoNotAnswer) {
  start_waiting(1);
  ASSERT_TRUE(push_at_once({.queue = {.name = "other"}, .create = true, .jobs = {NewJob{}}}));
  EXPECT_THAT(answers(), IsEmpty());
}

// --- What cannot be read.

class EngineCorruption : public EngineClaim {
 protected:
  void expect_buried_as_corrupt(Seq seq) {
    const JobState death = death_of(seq);
    EXPECT_EQ(death.status, JobStatus::dead);
    EXPECT_EQ(death.death_reason, DeathReason::corrupt);
    EXPECT_EQ(death.ended_at, now());
    EXPECT_NE(death.last_error, "");
  }
};

TEST_F(EngineCorruption, ARecordThatFailsItsChecksumIsNeverDelivered) {
  push("a", {.ttl = 1h, .key = "key"});
  const Seq bad = push("bad", {.ttl = 1h, .key = "other"});
  push("c");
  ledger_.corrupt_records.insert(key_of(bad));
  EXPECT_THAT(names(claim(3)), ElementsAre("a", "c"));
  expect_buried_as_corrupt(bad);
  EXPECT_EQ(counts(), (Counts{.active = 2, .dead = 1}));
  EXPECT_EQ(
      totals(),
      (QueueTotals{
          .pushed = 3, .claimed = 2, .died = 1, .corrupt = 1, .dead_now = 1, .live_bytes = 5}));
  EXPECT_EQ(ledger_.dead_jobs.at(key_of(bad)).record->payload, "damaged bytes of bad")
      << "what is left is kept for whoever can read it";
  advance(1h);
  EXPECT_EQ(totals().expired, 0U) << "its ttl must not kill it again";
}

TEST_F(EngineCorruption, AStateThatFailsItsChecksumIsNeverDelivered) {
  push("a");
  const Seq bad = push("bad", {.delay = 1s});
  ledger_.corrupt_states.insert(key_of(bad));
  advance(1s);
  EXPECT_THAT(claim_all(), ElementsAre("a"));
  expect_buried_as_corrupt(bad);
  EXPECT_EQ(ledger_.dead_jobs.at(key_of(bad)).record->payload, "bad");
}

TEST_F(EngineCorruption, AMissingRecordIsNeverDelivered) {
  const Seq bad = push("", {.priority = 1});
  push("b");
  ledger_.jobs.erase(key_of(bad));
  EXPECT_THAT(claim_all(), ElementsAre("b"));
  expect_buried_as_corrupt(bad);
}

// A restart believes the index; the claim does not.
TEST_F(EngineCorruption, AJobThatSaysItIsLeasedIsNeverLeasedAgain) {
  const Seq bad = push("bad");
  push("b");
  ledger_.states[key_of(bad)] =
      std::make_shared<JobState>(JobState{.status = JobStatus::active, .attempts = 1});
  EXPECT_THAT(claim_all(), ElementsAre("b"));
  expect_buried_as_corrupt(bad);
}

TEST_F(EngineCorruption, ARetryCannotBeReadEither) {
  push_retries({"bad"});
  ledger_.corrupt_records.insert(key_of(1));
  EXPECT_THAT(claim_all(), IsEmpty());
  expect_buried_as_corrupt(1);
  EXPECT_EQ(death_of(1).failures, 1U) << "what is known of its attempts is kept";
}

TEST_F(EngineCorruption, AClaimGoesOnWaitingForAJobThatCanBeRead) {
  pause();
  start_waiting(1);
  const Seq bad = push("bad");
  ledger_.corrupt_records.insert(key_of(bad));
  resume();
  EXPECT_THAT(answers(), IsEmpty());
  expect_buried_as_corrupt(bad);
  push("good");
  EXPECT_THAT(answers(), ElementsAre(Pair(1, ElementsAre("good"))));
}

TEST_F(EngineCorruption, ALeasedJobThatCannotBeReadAnyMoreDiesWhenItsLeaseExpires) {
  set_retry(5, 10s);
  const Seq bad = push("bad");
  const ClaimedJob job = claim_one({.lease = 10s});
  ledger_.corrupt_states.insert(key_of(bad));
  EXPECT_EQ(fail(job).error().code, Errc::corrupt);
  EXPECT_EQ(release(job).error().code, Errc::corrupt);
  EXPECT_EQ(extend(job).error().code, Errc::corrupt);
  EXPECT_EQ(counts(), (Counts{.active = 1}));
  advance(10s);
  expect_buried_as_corrupt(bad);
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
}

TEST_F(EngineCorruption, ALeasedJobWhoseStateIsMissingIsNotExtended) {
  const Seq bad = push("bad");
  const ClaimedJob job = claim_one();
  ledger_.states.erase(key_of(bad));
  EXPECT_EQ(extend(job).error().code, Errc::corrupt);
  EXPECT_TRUE(ack(job)) << "finishing needs no state";
}

TEST_F(EngineCorruption, ALeasedJobThatCannotBeReadCanStillBeFinished) {
  const Seq bad = push("bad");
  const ClaimedJob job = claim_one();
  ledger_.corrupt_states.insert(key_of(bad));
  ledger_.corrupt_records.insert(key_of(bad));
  EXPECT_TRUE(ack(job));
  EXPECT_EQ(counts(), (Counts{.completed = 1}));
}

TEST_F(EngineCorruption, AJobWhoseRecordIsLostWhileLeasedDiesAsCorrupt) {
  push("other");
  push("bad", {.ttl = 1h});
  const auto jobs = claim(2);
  ledger_.corrupt_records.insert(jobs[1].token.job);
  EXPECT_EQ(fail(jobs[1], {.error = "e"})->reason, DeathReason::corrupt);
  EXPECT_EQ(stats().bytes, 5U) << "its bytes leave the books, not those of others";
}

// Whatever it would have died of, what is left of it must not be delivered again.
TEST_F(EngineCorruption, AJobWhoseRecordIsLostWhileLeasedIsNoLetterAndDoesNotComeBack) {
  configure({.dead_letter_queue = "graves"});
  push("final");
  push("late", {.ttl = 1h});
  push("silent");
  const auto jobs = claim(3, {.lease = 1h});
  for (const ClaimedJob& job : jobs) ledger_.corrupt_records.insert(job.token.job);
  EXPECT_TRUE(fail(jobs[0], {.error = "e", .final = true}));
  EXPECT_TRUE(extend(jobs[1], 2h));
  advance(1h);
  EXPECT_TRUE(release(jobs[1]));
  EXPECT_EQ(counts(), (Counts{.dead = 3}));
  EXPECT_EQ(totals().corrupt, 3U);
  for (const ClaimedJob& job : jobs) {
    const Seq seq = job.token.job.seq;
    EXPECT_EQ(death_of(seq).decided_by, DecidedBy::policy);
    EXPECT_EQ(retry({seq}).first_refusal->code, Errc::wrong_status);
  }
}

TEST_F(EngineCorruption, ASizeThatIsWrongSpoilsTheSumOnlyUntilTheQueueIsEmpty) {
  for (const std::uint64_t size : {0U, 1'000'000U}) {
    const Seq bad = push("bad");
    push("good");
    ledger_.corrupt_records.insert(key_of(bad));
    ledger_.corrupt_sizes[key_of(bad)] = size;
    const ClaimedJob job = claim_one();
    expect_buried_as_corrupt(bad);
    restart();
    EXPECT_TRUE(ack(job));
    EXPECT_EQ(stats().bytes, 0U);
  }
}

}  // namespace
}  // namespace reprise
