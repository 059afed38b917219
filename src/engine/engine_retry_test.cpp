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
using testing::IsEmpty;
using testing::SizeIs;

class EngineRetry : public test::EngineFixture {
 protected:
  // Claims the one job that waits and reports its failure.
  Failed fail_next(FailItem item = {}) {
    const auto failed = fail(claim_one(), std::move(item));
    EXPECT_TRUE(failed);
    return failed ? *failed : Failed{};
  }
  // How often a job is tried when every attempt fails, and what waits there are in between.
  std::vector<Duration> waits_until_death(const RetryPolicy& policy) {
    configure({.retry = policy});
    push("a");
    std::vector<Duration> waits;
    for (Failed failed = fail_next(); failed.status == JobStatus::failed; failed = fail_next()) {
      waits.push_back(failed.retry_at - now());
      if (waits.size() > 100) break;
      if (waits.back() == Duration::zero()) continue;
      advance(waits.back() - 1us);
      EXPECT_THAT(claim_all(), IsEmpty()) << "before its time";
      EXPECT_EQ(engine_->next_wake(), now() + 1us);
      advance(1us);
    }
    EXPECT_EQ(counts().pending + counts().failed + counts().active, 0U);
    return waits;
  }
};

// --- By itself.

TEST_F(EngineRetry, AttemptsSayAtWhichFailureItIsDead) {
  EXPECT_THAT(waits_until_death({.attempts = 0, .wait = 30s}), IsEmpty());
  EXPECT_THAT(waits_until_death({.attempts = 1, .wait = 30s}), IsEmpty());
  EXPECT_THAT(waits_until_death({.attempts = 3, .wait = 30s}), ElementsAre(30s, 30s));
  EXPECT_THAT(waits_until_death({.attempts = 3, .wait = 0s}), ElementsAre(0s, 0s));
  EXPECT_EQ(totals().died, 4U);
}

TEST_F(EngineRetry, WaitsGrowWithTheBackoffUpToItsMax) {
  EXPECT_THAT(waits_until_death({.attempts = 5, .told_as_retries = true, .wait = Backoff{}}),
              ElementsAre(1s, 4s, 16s, 64s));
  EXPECT_THAT(
      waits_until_death({.attempts = 5, .wait = Backoff{.base = 2s, .factor = 3, .max = 10s}}),
      ElementsAre(2s, 6s, 10s, 10s));
}

TEST_F(EngineRetry, JitterKeepsEachWaitInItsRange) {
  const auto waits = waits_until_death(
      {.attempts = 40, .wait = Backoff{.base = 10s, .factor = 1, .jitter = 0.25}});
  EXPECT_THAT(waits, SizeIs(39));
  EXPECT_THAT(waits, testing::Each(testing::AllOf(testing::Ge(7500ms), testing::Le(12500ms))));
  EXPECT_GT(*std::ranges::max_element(waits) - *std::ranges::min_element(waits), 1s);
}

TEST_F(EngineRetry, UnlimitedNeverGivesUp) {
  configure({.retry = {.attempts = std::nullopt, .wait = 0s}});
  push("a");
  for (int i = 0; i < 200; ++i) ASSERT_EQ(fail_next().status, JobStatus::failed);
  EXPECT_EQ(fail_next({.final = true}).status, JobStatus::dead);
}

TEST_F(EngineRetry, AnAutomaticRetryKeepsFailuresAndGeneration) {
  set_retry(5, 10s);
  const Seq seq = push("a");
  fail_next();
  advance(10s);
  const ClaimedJob job = claim_one();
  EXPECT_EQ(job.failures, 1U);
  EXPECT_EQ(state_of(seq).generation, 1U);
  EXPECT_EQ(totals().retried, 0U);
}

TEST_F(EngineRetry, ACooldownGoesOnOverARestart) {
  set_retry(5, 30s);
  const Seq seq = push("a");
  fail_next({.error = "e", .error_type = "Timeout"});
  pass(10s);
  restart();
  tick();
  EXPECT_EQ(counts(), (Counts{.failed = 1}));
  EXPECT_EQ(engine_->next_wake(), now() + 20s);
  EXPECT_EQ(state_of(seq).last_error_type, "Timeout");
  advance(20s);
  EXPECT_EQ(claim_one().failures, 1U);
}

TEST_F(EngineRetry, ACooldownThatEndedWhileItWasDownIsNoticedByTheFirstTick) {
  set_retry(5, 30s);
  push("a");
  fail_next();
  pass(1h);
  restart();
  tick();
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
}

TEST_F(EngineRetry, APolicyEditedBetweenFailuresCountsFromTheNext) {
  set_retry(10, 1h);
  push("a");
  EXPECT_EQ(fail_next().retry_at, now() + 1h);
  configure({.retry = {.attempts = 10, .wait = Backoff{}}});
  EXPECT_EQ(counts(), (Counts{.failed = 1})) << "the wait that runs is as it was";
  advance(1h);
  EXPECT_EQ(fail_next().retry_at, now() + 4s) << "the wait of a second failure";
  advance(4s);
  set_retry(2, 1s);
  EXPECT_EQ(fail_next().reason, DeathReason::max_attempts) << "it has failed more often already";
}

TEST_F(EngineRetry, AReleaseBurnsNothing) {
  set_retry(2, 0s);
  const Seq seq = push("a");
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(release(claim_one()));
  EXPECT_EQ(state_of(seq).failures, 0U);
  EXPECT_EQ(stats().lanes.fresh, 1U);
  EXPECT_EQ(fail_next().status, JobStatus::failed);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(release(claim_one()));
  EXPECT_EQ(state_of(seq).failures, 1U);
  EXPECT_EQ(fail_next().status, JobStatus::dead);
  EXPECT_EQ(totals().failed, 2U);
}

TEST_F(EngineRetry, ErrorTypesAndLostWorkersAreInTheHistory) {
  set_retry(2, 0s);
  const Seq seq = push("a");
  EXPECT_TRUE(fail(claim_one({.worker = "w1"}), {.error = "slow", .error_type = "Timeout"}));
  EXPECT_EQ(state_of(seq).last_error_type, "Timeout");
  const FailItem lost{.error = "the host is gone", .outcome = AttemptOutcome::worker_lost};
  EXPECT_EQ(fail_next(lost).reason, DeathReason::worker_lost);
  const JobState death = death_of(seq);
  EXPECT_EQ(death.decided_by, DecidedBy::policy);
  EXPECT_EQ(death.last_error, "the host is gone");
  EXPECT_EQ(death.last_error_type, "") << "that of the last error";
  ASSERT_THAT(death.history, SizeIs(2));
  EXPECT_EQ(death.history[0].error_type, "Timeout");
  EXPECT_EQ(death.history[0].outcome, AttemptOutcome::failed);
  EXPECT_EQ(death.history[1].outcome, AttemptOutcome::worker_lost);
  EXPECT_EQ(totals().failed, 2U);
  EXPECT_EQ(totals().lease_expired, 0U);
}

// --- By hand.

TEST_F(EngineRetry, ADeadJobIsBroughtBackFreshWithItsHistory) {
  set_retry(2, 0s);
  const Seq seq = push("a", {.headers = {{"tenant", "t"}}, .key = "k"});
  fail_next({.error = "e1"});
  fail_next({.error = "e2"});
  advance(1h);
  engine_->take_events();
  const SelectionReply reply = retry({seq});
  EXPECT_EQ(reply.done, 1U);
  EXPECT_THAT(reply.skipped, IsEmpty());
  EXPECT_THAT(reply.not_found, IsEmpty());
  EXPECT_FALSE(reply.first_refusal);
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  EXPECT_THAT(ledger_.dead_jobs, IsEmpty());
  const JobState state = state_of(seq);
  EXPECT_EQ(state.failures, 0U);
  EXPECT_EQ(state.attempts, 2U);
  EXPECT_EQ(state.generation, 2U);
  EXPECT_EQ(state.last_error, "e2");
  EXPECT_EQ(state.death_reason, DeathReason::none);
  EXPECT_EQ(state.ended_at, Timestamp{});
  EXPECT_THAT(state.history, SizeIs(2));
  EXPECT_EQ(totals(), (QueueTotals{.pushed = 1,
                                   .claimed = 2,
                                   .failed = 2,
                                   .died = 1,
                                   .claimed_retry = 1,
                                   .retried = 1,
                                   .live_bytes = 9}));
  const auto events = engine_->take_events();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].type, EventType::retry);
  EXPECT_EQ(events[0].seq, seq);
  EXPECT_EQ(events[0].generation, 2U);

  const ClaimedJob again = claim_one();
  EXPECT_EQ(again.attempts, 3U);
  EXPECT_EQ(again.failures, 0U);
  EXPECT_EQ(again.record->key, "k");
  EXPECT_EQ(again.record->headers.size(), 1U);
  EXPECT_TRUE(fail(again, {.error = "e3"}));
  EXPECT_EQ(fail_next().status, JobStatus::dead) << "all its attempts again, and not one more";
  const auto history = death_of(seq).history;
  ASSERT_THAT(history, SizeIs(4));
  EXPECT_EQ(history[1].generation, 1U);
  EXPECT_EQ(history[2].generation, 2U);
  EXPECT_EQ(history[2].number, 3U);
}

TEST_F(EngineRetry, ItTakesItsOldPlaceInTheFreshLane) {
  const Seq seq = push_dead("old");
  push_many({"young", "younger"});
  push("urgent", {.priority = 1});
  EXPECT_EQ(retry({seq}).done, 1U);
  EXPECT_EQ(stats().lanes.fresh, 4U);
  EXPECT_THAT(claim_all(), ElementsAre("urgent", "old", "young", "younger"));
}

TEST_F(EngineRetry, WhatCameBackIsThereAfterARestart) {
  const Seq seq = push_dead("a");
  retry({seq});
  restart();
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  EXPECT_EQ(stats().lanes.fresh, 1U);
  EXPECT_EQ(totals().retried, 1U);
  EXPECT_EQ(claim_one().attempts, 2U);
}

TEST_F(EngineRetry, AWaitingClaimGetsIt) {
  const Seq seq = push_dead("a");
  start_waiting(1);
  retry({seq});
  EXPECT_THAT(answers(), ElementsAre(std::pair(1, Names{"a"})));
}

TEST_F(EngineRetry, OneThatCoolsDownLeavesNoTimer) {
  set_retry(5, 30s);
  const Seq seq = push("a");
  fail_next();
  advance(10s);
  EXPECT_EQ(retry({seq}).done, 1U);
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  EXPECT_EQ(engine_->next_wake(), kNever);
  EXPECT_EQ(state_of(seq).generation, 2U);
  EXPECT_EQ(stats().lanes.fresh, 1U);
  const ClaimedJob job = claim_one({.lease = 48h});
  advance(24h);
  EXPECT_EQ(counts(), (Counts{.active = 1})) << "its retry time comes to nothing";
  EXPECT_THAT(claim_all(), IsEmpty());
  EXPECT_TRUE(ack(job));
  advance(48h);
  EXPECT_EQ(counts(), (Counts{.completed = 1}));
  EXPECT_EQ(engine_->next_wake(), kNever);
}

TEST_F(EngineRetry, DropAndAckLeaveNoTimer) {
  set_retry(5, 30s);
  const Seq dropped = push("dropped");
  fail_next();
  EXPECT_TRUE(drop(dropped));
  EXPECT_EQ(engine_->next_wake(), kNever);
  push("acked");
  fail_next();
  advance(30s);
  EXPECT_TRUE(ack(claim_one()));
  EXPECT_EQ(engine_->next_wake(), kNever);
  advance(24h);
  EXPECT_EQ(counts(), (Counts{.completed = 1}));
}

// Each in its status, and whether it is named.
TEST_F(EngineRetry, OtherJobsAreRefusedByTheirStatus) {
  configure({.retry = {.attempts = 5, .wait = 1s}, .keep_completed = 1h});
  push_many({"completed", "active"});
  const auto jobs = claim(2);
  EXPECT_TRUE(ack(jobs[0]));
  const Seq due = push("due");
  fail_next();
  pass(1s);
  const Seq scheduled = push("scheduled", {.delay = 1h});
  const Seq pending = push("pending");
  struct Case {
    Seq seq;
    JobStatus status;
  };
  for (const Case& each :
       {Case{jobs[0].token.job.seq, JobStatus::completed},
        Case{jobs[1].token.job.seq, JobStatus::active}, Case{scheduled, JobStatus::scheduled},
        Case{due, JobStatus::pending},  // no tick has noticed it yet
        Case{pending, JobStatus::pending}}) {
    expect_no_change([&] {
      for (const SelectionReply& reply : {retry({each.seq}), purge({each.seq})}) {
        EXPECT_EQ(reply.done, 0U);
        EXPECT_THAT(reply.not_found, IsEmpty());
        ASSERT_THAT(reply.skipped, SizeIs(1));
        EXPECT_EQ(reply.skipped[0].id, encode_job_id(each.seq));
        EXPECT_EQ(reply.skipped[0].status, each.status);
        EXPECT_THAT(reply.skipped[0].reason,
                    HasSubstr(" is " + std::string(status_name(each.status))));
        EXPECT_EQ(reply.first_refusal->code, Errc::wrong_status);
      }
    });
  }
}

TEST_F(EngineRetry, AnUnknownJobIsNotFound) {
  const Seq seq = push_dead("a");
  EXPECT_TRUE(drop(seq));
  expect_no_change([&] {
    const SelectionReply reply = retry({seq, 999});
    EXPECT_THAT(reply.not_found, ElementsAre(encode_job_id(seq), encode_job_id(999)));
    EXPECT_EQ(reply.first_refusal->code, Errc::job_not_found);
  });
  EXPECT_EQ(engine_->retry({.queue = {.name = "nowhere"}}, now()).error().code,
            Errc::queue_not_found);
}

TEST_F(EngineRetry, EachJobIsJudgedByItself) {
  const Seq dead = push_dead("dead");
  const Seq pending = push("pending");
  SelectionCommand command = selection({pending, dead, dead});
  command.jobs.push_back({"7ZK", Error{Errc::ambiguous_id, "two jobs begin with 7ZK"}});
  command.jobs.push_back({"000", Error{Errc::job_not_found, "no job begins with 000"}});
  const auto reply = engine_->retry(command, now());
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->done, 1U) << "the second time it is pending";
  EXPECT_THAT(reply->skipped, SizeIs(3));
  EXPECT_EQ(reply->skipped[2].id, "7ZK");
  EXPECT_FALSE(reply->skipped[2].status);
  EXPECT_THAT(reply->not_found, ElementsAre("000"));
  EXPECT_EQ(reply->first_refusal->code, Errc::wrong_status);
  EXPECT_EQ(counts(), (Counts{.pending = 2}));
}

TEST_F(EngineRetry, QuotasDoNotRefuseIt) {
  const Seq seq = push_dead("a");
  configure({.max_jobs = 1, .max_bytes = 1});
  push("b");
  EXPECT_EQ(retry({seq}).done, 1U);
  EXPECT_EQ(counts(), (Counts{.pending = 2}));
  EXPECT_EQ(push_error("c"), Errc::queue_full);
}

TEST_F(EngineRetry, ALowDiskRefusesIt) {
  set_retry(5, 1h);
  const Seq dead = push_dead("a");
  const Seq cooling = push("b");
  fail_next();
  engine_->set_disk_low(true);
  expect_no_change([&] {
    const SelectionReply reply = retry({dead, cooling});
    EXPECT_EQ(reply.done, 0U);
    EXPECT_EQ(reply.first_refusal->code, Errc::disk_full);
    EXPECT_THAT(reply.skipped, SizeIs(2));
  });
  EXPECT_EQ(purge({dead}).done, 1U) << "that makes room";
  engine_->set_disk_low(false);
  EXPECT_EQ(retry({cooling}).done, 1U);
}

TEST_F(EngineRetry, AJobThatDiedAsCorruptIsRefused) {
  const Seq seq = push("a");
  ledger_.corrupt_records.insert(key_of(seq));
  EXPECT_THAT(claim_all(), IsEmpty());
  EXPECT_EQ(death_of(seq).death_reason, DeathReason::corrupt);
  expect_no_change([&] {
    const SelectionReply reply = retry({seq});
    EXPECT_EQ(reply.first_refusal->code, Errc::wrong_status);
    EXPECT_THAT(reply.first_refusal->detail, HasSubstr("corrupt"));
  });
}

TEST_F(EngineRetry, ADeadJobThatCannotBeReadIsRefusedAndCanBePurged) {
  const Seq seq = push_dead("a");
  ledger_.corrupt_dead.insert(key_of(seq));
  expect_no_change([&] {
    const SelectionReply reply = retry({seq});
    EXPECT_EQ(reply.first_refusal->code, Errc::corrupt);
    EXPECT_THAT(reply.first_refusal->detail, HasSubstr("purged"));
    EXPECT_EQ(reply.skipped.at(0).status, JobStatus::dead);
  });
  EXPECT_EQ(purge({seq}).done, 1U);
  EXPECT_EQ(counts(), Counts{});
  EXPECT_EQ(totals().purged, 1U);
}

TEST_F(EngineRetry, AJobThatWaitsAndCannotBeReadIsRefused) {
  set_retry(5, 1h);
  const Seq seq = push("a");
  fail_next();
  ledger_.corrupt_states.insert(key_of(seq));
  expect_no_change([&] {
    EXPECT_EQ(retry({seq}).done, 0U);
    EXPECT_EQ(purge({seq}).done, 0U);
  });
  ledger_.corrupt_states.clear();
}

// --- Its ttl begins again.

TEST_F(EngineRetry, TheTtlBeginsAgainEachTime) {
  const Seq seq = push("a", {.ttl = 10s});
  for (int i = 0; i < 3; ++i) {
    advance(10s - 1us);
    EXPECT_EQ(counts(), (Counts{.pending = 1})) << i;
    advance(1us);
    EXPECT_EQ(death_of(seq).death_reason, DeathReason::expired) << i;
    advance(1h + i * 1s);
    EXPECT_EQ(retry({seq}).done, 1U);
    EXPECT_EQ(ledger_.jobs.at(key_of(seq))->expires_at, now() + 10s) << i;
    EXPECT_EQ(engine_->next_wake(), now() + 10s);
  }
  restart();
  EXPECT_EQ(engine_->next_wake(), now() + 10s);
  EXPECT_EQ(totals().expired, 3U);
}

TEST_F(EngineRetry, TheTtlOfACoolingJobBeginsAgain) {
  set_retry(5, 1h);
  const Seq seq = push("a", {.ttl = 20s});
  fail_next();
  advance(15s);
  EXPECT_EQ(retry({seq}).done, 1U);
  advance(20s - 1us);
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  advance(1us);
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
}

TEST_F(EngineRetry, AJobWithoutATtlGetsNone) {
  const Seq seq = push_dead("a");
  configure({.ttl = 1s});
  retry({seq});
  advance(24h);
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
}

}  // namespace
}  // namespace reprise
