#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "support/engine_fixture.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using test::Counts;
using test::Names;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class EngineLeases : public test::EngineFixture {};

// --- Ack.

TEST_F(EngineLeases, AnAckedJobIsGone) {
  const Seq seq = push("a", {.ttl = 1h});
  EXPECT_EQ(ack(claim_one())->job, key_of(seq));
  EXPECT_EQ(counts(), (Counts{.completed = 1}));
  EXPECT_EQ(stats().bytes, 0U);
  EXPECT_EQ(totals(), (QueueTotals{.pushed = 1, .claimed = 1, .completed = 1}));
  EXPECT_TRUE(ledger_.jobs.empty());
  EXPECT_TRUE(ledger_.states.empty());
  advance(2h);
  EXPECT_EQ(counts(), (Counts{.completed = 1})) << "no timer of it is left";
}

TEST_F(EngineLeases, ResultsStandAtTheIndexOfTheirItems) {
  push_many({"a", "b"});
  const auto jobs = claim(2);
  const Error malformed{Errc::invalid_lease_token, "no token"};
  const std::vector<AckItem> items = {
      {jobs[1].token}, {malformed}, {jobs[0].token}, {jobs[1].token}};
  const auto results = engine_->ack(items, now());
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results[0]->job, jobs[1].token.job);
  EXPECT_EQ(results[1].error(), malformed);
  EXPECT_EQ(results[2]->job, jobs[0].token.job);
  EXPECT_EQ(results[3].error().code, Errc::lease_lost) << "acked by the first item";
}

// --- Fail.

TEST_F(EngineLeases, AFailedJobCoolsDownAndComesBackInTheRetryLane) {
  set_retry(3, 30s);
  const Seq seq = push("a");
  const auto failed = fail(claim_one(), {.error = "timeout"});
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->status, JobStatus::failed);
  EXPECT_EQ(failed->retry_at, now() + 30s);
  EXPECT_EQ(counts(), (Counts{.failed = 1}));
  EXPECT_EQ(state_of(seq).due, now() + 30s);
  advance(30s - 1us);
  EXPECT_THAT(claim_all(), IsEmpty());
  advance(1us);
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  const ClaimedJob again = claim_one();
  EXPECT_EQ(again.attempts, 2U);
  EXPECT_EQ(again.failures, 1U);
  EXPECT_EQ(again.last_error, "timeout");
}

TEST_F(EngineLeases, DeadAtTheLastAllowedFailureAndNotBefore) {
  set_retry(3, 0s);
  const Seq seq = push("a");
  EXPECT_EQ(fail(claim_one())->status, JobStatus::failed);
  EXPECT_EQ(fail(claim_one())->status, JobStatus::failed);
  const Timestamp last_claim = now();
  const ClaimedJob last = claim_one({.worker = "w3"});
  pass(5s);
  const auto failed = fail(last, {.error = "third"});
  EXPECT_EQ(failed->status, JobStatus::dead);
  EXPECT_EQ(failed->reason, DeathReason::max_attempts);
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
  EXPECT_EQ(stats().bytes, 0U);
  EXPECT_EQ(
      totals(),
      (QueueTotals{
          .pushed = 1, .claimed = 3, .failed = 3, .died = 1, .claimed_retry = 2, .dead_now = 1}));
  const JobState death = death_of(seq);
  EXPECT_EQ(death.decided_by, DecidedBy::policy);
  EXPECT_EQ(death.ended_at, now());
  EXPECT_EQ(death.attempts, 3U);
  EXPECT_EQ(death.failures, 3U);
  EXPECT_EQ(death.last_error, "third");
  ASSERT_EQ(death.history.size(), 3U);
  EXPECT_EQ(death.history.back(), (Attempt{.number = 3,
                                           .started_at = last_claim,
                                           .ended_at = now(),
                                           .outcome = AttemptOutcome::failed,
                                           .worker = "w3",
                                           .error = "third"}));
  EXPECT_EQ(ledger_.dead_jobs.at(key_of(seq)).record->payload, "a");
}

TEST_F(EngineLeases, WithoutAPolicyTheFirstFailureIsTheLast) {
  push("a");
  EXPECT_EQ(fail(claim_one())->reason, DeathReason::max_attempts);
}

TEST_F(EngineLeases, FinalGivesUpAtOnce) {
  set_retry(10, 0s);
  const Seq seq = push("a");
  EXPECT_EQ(fail(claim_one(), {.final = true})->reason, DeathReason::final);
  EXPECT_EQ(death_of(seq).decided_by, DecidedBy::client);
}

TEST_F(EngineLeases, TheClientsDelayReplacesTheCooldown) {
  set_retry(10, 1h);
  push("a");
  EXPECT_EQ(fail(claim_one(), {.delay = 5s})->retry_at, now() + 5s);
  advance(5s);
  EXPECT_THAT(claim_all(), ElementsAre("a"));
}

TEST_F(EngineLeases, AnEditedPolicyCountsFromTheNextFailure) {
  set_retry(2, 1h);
  push_many({"a", "b"});
  const auto jobs = claim(2);
  EXPECT_TRUE(fail(jobs[0]));
  set_retry(5, 1s);
  EXPECT_EQ(fail(jobs[1])->retry_at, now() + 1s);
  EXPECT_EQ(counts(), (Counts{.failed = 2}));
  advance(1s);
  EXPECT_THAT(claim_all(), ElementsAre("b")) << "a still cools down for its hour";
  set_retry(1, 1s);
  advance(1h);
  EXPECT_EQ(fail(claim_one())->status, JobStatus::dead);
}

TEST_F(EngineLeases, AFailureIsAnEventAndSoIsDeath) {
  set_retry(2, 10s);
  push("a");
  ClaimedJob job = claim_one();
  engine_->take_events();
  EXPECT_TRUE(fail(job, {.error = "e1"}));
  auto events = engine_->take_events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].type, EventType::failed);
  EXPECT_EQ(events[0].attempts, 1U);
  EXPECT_EQ(events[0].retry_at, now() + 10s);
  EXPECT_EQ(*events[0].error, "e1");
  advance(10s);
  job = claim_one();
  engine_->take_events();
  EXPECT_TRUE(fail(job, {.error = "e2"}));
  events = engine_->take_events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].type, EventType::failed);
  EXPECT_EQ(events[0].retry_at, kNever);
  EXPECT_EQ(events[1].type, EventType::dead);
  EXPECT_EQ(events[1].reason, DeathReason::max_attempts);
  EXPECT_EQ(*events[1].error, "e2");
}

// --- Expiry.

TEST_F(EngineLeases, AnExpiredLeaseTakesTheFailureDecision) {
  set_retry(2, 30s);
  const Seq seq = push("a");
  claim_one({.lease = 10s, .worker = "w"});
  advance(10s - 1us);
  EXPECT_EQ(counts(), (Counts{.active = 1}));
  advance(1us);
  EXPECT_EQ(counts(), (Counts{.failed = 1}));
  EXPECT_EQ(
      totals(),
      (QueueTotals{.pushed = 1, .claimed = 1, .failed = 1, .lease_expired = 1, .live_bytes = 1}));
  const JobState state = state_of(seq);
  EXPECT_EQ(state.failures, 1U);
  EXPECT_EQ(state.due, now() + 30s);
  ASSERT_EQ(state.history.size(), 1U);
  EXPECT_EQ(state.history[0].outcome, AttemptOutcome::lease_expired);
  EXPECT_EQ(state.history[0].worker, "w");
  advance(30s);
  EXPECT_NE(claim_one({.lease = 10s}).last_error, "");
  advance(10s);
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
  EXPECT_EQ(death_of(seq).death_reason, DeathReason::lease_expired);
  EXPECT_EQ(death_of(seq).decided_by, DecidedBy::policy);
  EXPECT_EQ(totals().lease_expired, 2U);
}

TEST_F(EngineLeases, ALeaseThatEndedWithAWordDoesNotExpire) {
  set_retry(5, 1h);
  push_many({"acked", "failed", "released"});
  const auto jobs = claim(3, {.lease = 10s});
  EXPECT_TRUE(ack(jobs[0]));
  EXPECT_TRUE(fail(jobs[1]));
  EXPECT_TRUE(release(jobs[2]));
  advance(10s);
  EXPECT_EQ(totals().lease_expired, 0U);
  EXPECT_EQ(counts(), (Counts{.pending = 1, .failed = 1, .completed = 1}));
}

// --- Release.

TEST_F(EngineLeases, AReleasedJobIsUnharmedAndTakesItsOldPlace) {
  push_many({"a", "b", "c"});
  const auto jobs = claim(2);
  EXPECT_TRUE(release(jobs[1]));
  EXPECT_TRUE(release(jobs[0]));
  EXPECT_EQ(counts(), (Counts{.pending = 3}));
  EXPECT_EQ(totals(), (QueueTotals{.pushed = 3, .claimed = 2, .released = 2, .live_bytes = 3}));
  const ClaimedJob again = claim_one();
  EXPECT_EQ(again.record->payload, "a");
  EXPECT_EQ(again.attempts, 2U) << "every lease counts as an attempt";
  EXPECT_EQ(again.failures, 0U);
  EXPECT_EQ(again.last_error, "");
  EXPECT_THAT(claim_all(), ElementsAre("b", "c"));
}

TEST_F(EngineLeases, ReleaseCanWait) {
  const Seq seq = push("a");
  push("b");
  const auto jobs = claim(1);
  EXPECT_TRUE(release(jobs[0], 10s));
  EXPECT_EQ(counts(), (Counts{.scheduled = 1, .pending = 1}));
  EXPECT_EQ(state_of(seq).due, now() + 10s);
  advance(10s);
  EXPECT_THAT(claim_all(), ElementsAre("a", "b"));
}

TEST_F(EngineLeases, AReleasedRetryKeepsItsFailuresAndItsPlace) {
  set_retry(5, 10s);
  push_many({"a", "b"});
  const auto jobs = claim(2);
  EXPECT_TRUE(fail(jobs[0], {.error = "e"}));
  pass(1s);
  EXPECT_TRUE(fail(jobs[1]));
  advance(10s);
  ClaimedJob first = claim_one();
  EXPECT_EQ(first.record->payload, "a");
  EXPECT_TRUE(release(first));
  first = claim_one();
  EXPECT_EQ(first.record->payload, "a");
  EXPECT_EQ(first.failures, 1U);
  EXPECT_EQ(first.last_error, "e");
  EXPECT_TRUE(release(first, 5s));
  EXPECT_EQ(counts(), (Counts{.pending = 1, .failed = 1}));
  advance(5s);
  EXPECT_THAT(claim_all(), ElementsAre("b", "a"));
}

TEST_F(EngineLeases, AReleaseIsInTheHistory) {
  const Seq seq = push("a");
  EXPECT_TRUE(release(claim_one({.worker = "w"})));
  const auto history = state_of(seq).history;
  ASSERT_EQ(history.size(), 1U);
  EXPECT_EQ(history[0].outcome, AttemptOutcome::released);
  EXPECT_EQ(history[0].worker, "w");
}

// --- Extend.

TEST_F(EngineLeases, ExtendSetsTheDeadlineFromNow) {
  configure({.lease = 30s});
  const Seq seq = push("a");
  const ClaimedJob job = claim_one();
  advance(20s);
  EXPECT_EQ(extend(job)->lease_deadline, now() + 30s);
  advance(20s);
  EXPECT_EQ(counts(), (Counts{.active = 1}));
  EXPECT_EQ(extend(job, 2min)->lease_deadline, now() + 2min);
  EXPECT_EQ(extend(job, 5s)->lease_deadline, now() + 5s) << "shorter is fine";
  EXPECT_EQ(state_of(seq).lease_deadline, now() + 5s);
  EXPECT_EQ(engine_->next_wake(), now() + 5s);
  advance(5s);
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
}

TEST_F(EngineLeases, ExtendCountsNothing) {
  push("a");
  const ClaimedJob job = claim_one();
  const QueueTotals before = totals();
  EXPECT_TRUE(extend(job));
  EXPECT_EQ(totals(), before);
  EXPECT_TRUE(ack(job)) << "the token is the same";
}

// --- History.

TEST_F(EngineLeases, HistoryKeepsTheFirstAndTheLastNine) {
  set_retry(std::numeric_limits<std::uint32_t>::max(), 0s);
  const Seq seq = push("a");
  for (int i = 1; i <= 25; ++i) {
    pass(1s);
    EXPECT_TRUE(fail(claim_one(), {.error = std::to_string(i)}));
  }
  Names errors;
  for (const Attempt& attempt : state_of(seq).history) errors.push_back(attempt.error);
  EXPECT_THAT(errors, ElementsAre("1", "17", "18", "19", "20", "21", "22", "23", "24", "25"));
  EXPECT_EQ(state_of(seq).attempts, 25U);
  EXPECT_EQ(state_of(seq).failures, 25U);
}

// --- Tokens that are over: each way to lose a lease, against each way to use it.

class StaleToken : public EngineLeases {
 protected:
  template <class Operation>
  void expect_refused(const Operation& use) {
    expect_no_change([&] {
      const auto result = use();
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code, Errc::lease_lost);
      EXPECT_THAT(result.error().detail, HasSubstr("lease of job"));
    });
  }
  // Whatever is done with it, it is refused and nothing changes.
  void expect_useless(const ClaimedJob& job) {
    expect_refused([&] { return ack(job); });
    expect_refused([&] { return fail(job, {.error = "late", .final = true}); });
    expect_refused([&] { return release(job, 5s); });
    expect_refused([&] { return extend(job, 1h); });
  }
};

TEST_F(StaleToken, AfterAck) {
  push("a");
  const ClaimedJob job = claim_one();
  EXPECT_TRUE(ack(job));
  expect_useless(job);
}

TEST_F(StaleToken, AfterFail) {
  set_retry(5, 1s);
  push("a");
  const ClaimedJob job = claim_one();
  EXPECT_TRUE(fail(job));
  expect_useless(job);
  advance(1s);
  expect_useless(job);
}

TEST_F(StaleToken, AfterDeath) {
  push("a");
  const ClaimedJob job = claim_one();
  EXPECT_TRUE(fail(job, {.final = true}));
  expect_useless(job);
}

TEST_F(StaleToken, AfterRelease) {
  push("a");
  const ClaimedJob job = claim_one();
  EXPECT_TRUE(release(job));
  expect_useless(job);
}

TEST_F(StaleToken, FromTheDeadlineOnEvenBeforeAnybodyNoticed) {
  set_retry(5, 1h);
  push("a");
  const ClaimedJob job = claim_one({.lease = 10s});
  pass(10s - 1us);
  EXPECT_TRUE(extend(job, 1us));
  pass(1us);
  expect_useless(job);
  tick();
  expect_useless(job);
}

TEST_F(StaleToken, WhileAnotherWorkerHoldsTheJob) {
  set_retry(5, 0s);
  push("a");
  const ClaimedJob slow = claim_one({.lease = 10s});
  advance(10s);
  const ClaimedJob second = claim_one();
  EXPECT_EQ(second.token.job, slow.token.job);
  expect_useless(slow);
  EXPECT_TRUE(ack(second));
}

TEST_F(StaleToken, AfterDrop) {
  const Seq seq = push("a");
  const ClaimedJob job = claim_one();
  EXPECT_TRUE(drop(seq));
  expect_useless(job);
}

TEST_F(StaleToken, AfterItsQueueWasDeleted) {
  push("a");
  const ClaimedJob job = claim_one();
  ASSERT_TRUE(engine_->delete_queue(queue_, "", now()));
  configure({});
  expect_useless(job);
}

TEST_F(StaleToken, ThatNeverWas) {
  push("a");
  ClaimedJob job = claim_one();
  const LeaseToken good = job.token;
  job.token.nonce += 1;
  expect_useless(job);
  job.token = {.job = {good.job.queue, good.job.seq + 1}, .nonce = good.nonce};
  expect_useless(job);
  job.token = {.job = {good.job.queue + 1, good.job.seq}, .nonce = good.nonce};
  expect_useless(job);
  job.token = good;
  EXPECT_TRUE(ack(job));
}

TEST_F(StaleToken, TheMessageSaysHowLongAgoTheLeaseExpired) {
  set_retry(5, 1h);
  push("a");
  const ClaimedJob job = claim_one({.lease = 10s});
  pass(13s + 200ms);
  EXPECT_THAT(ack(job).error().detail, HasSubstr("expired 3.2s ago"));
  tick();
  pass(1s);
  EXPECT_THAT(ack(job).error().detail, HasSubstr("expired 4.2s ago"));
}

// --- Restarts.

TEST_F(EngineLeases, TokensAndDeadlinesSurviveARestart) {
  set_retry(5, 1h);
  push_many({"a", "b", "c"});
  const auto jobs = claim(3, {.lease = 10s});
  pass(5s);
  EXPECT_TRUE(extend(jobs[2], 20s));
  restart();
  EXPECT_EQ(counts(), (Counts{.active = 3}));
  EXPECT_EQ(engine_->next_wake(), now() + 5s);
  EXPECT_TRUE(ack(jobs[0]));
  advance(5s);
  EXPECT_EQ(ack(jobs[1]).error().code, Errc::lease_lost);
  EXPECT_TRUE(ack(jobs[2]));
}

// --- Leases of the server's own workers.

TEST_F(EngineLeases, OwnLeasesExpireLikeOthersWhileTheServerRuns) {
  set_retry(5, 1h);
  push("a");
  const ClaimedJob job = claim_one({.lease = 10s, .own = true});
  advance(10s);
  EXPECT_EQ(ack(job).error().code, Errc::lease_lost);
  EXPECT_EQ(engine_->release_own(now()), 0U);
}

TEST_F(EngineLeases, OwnLeasesAreGivenBackByTheNextServerHoweverLateItComes) {
  push_many({"a", "b", "c"});
  const auto own = claim(2, {.lease = 10s, .own = true});
  const ClaimedJob other = claim_one({.lease = 2h});
  pass(1h);  // without a policy an expiry would be the end of them
  restart();
  tick();
  EXPECT_EQ(counts(), (Counts{.active = 3}));
  restart();  // killed before it could give them back
  EXPECT_EQ(engine_->release_own(now()), 2U);
  EXPECT_EQ(engine_->release_own(now()), 0U);
  EXPECT_EQ(counts(), (Counts{.pending = 2, .active = 1}));
  EXPECT_EQ(ack(own[0]).error().code, Errc::lease_lost);
  EXPECT_TRUE(ack(other));
  const auto again = claim(2);
  EXPECT_EQ(names(again), (Names{"a", "b"}));
  EXPECT_EQ(again[0].failures, 0U);
  EXPECT_EQ(again[0].attempts, 2U);
}

TEST_F(EngineLeases, WhatTheNextServerHasClaimedItselfIsNotGivenBack) {
  push_many({"a", "b"});
  claim_one({.own = true});
  restart();
  const ClaimedJob job = claim_one({.own = true});
  EXPECT_EQ(engine_->release_own(now()), 1U);
  EXPECT_TRUE(ack(job));
}

TEST_F(EngineLeases, NoLeaseOfAClientCarriesTheMark) {
  for (std::uint64_t low = 0; low <= kOwnLeaseMask; ++low) {
    EXPECT_EQ(is_own_lease(0xABCD'0000'0000'0000ULL | low), low == kOwnLeaseMark);
  }
  push_many({"a", "b"});
  EXPECT_TRUE(is_own_lease(claim_one({.own = true}).token.nonce));
  EXPECT_FALSE(is_own_lease(claim_one().token.nonce));
}

}  // namespace
}  // namespace reprise
