// on_failure: who is asked, and what the answers do to the job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/hook_fixture.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using test::broken;
using test::Counts;
using test::give_up;
using test::Names;
using test::retry_after;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OnFailure : public test::HookFixture {
 protected:
  OnFailure() { set_hook(HookKind::on_failure); }

  ClaimedJob claimed(std::string payload = "a", NewJob job = {}) {
    push(std::move(payload), std::move(job));
    return claim_one();
  }
  static FailItem with_error(std::string error, std::string type = "") {
    return {.error = std::move(error), .error_type = std::move(type)};
  }
};

// --- Who is asked.

TEST_F(OnFailure, IsToldOfTheJobAndItsFailure) {
  const Timestamp first_attempt = now();
  const ClaimedJob job = claimed("body", {.headers = {{"tenant", "a"}}});
  pass(1s);
  start_fail(job, with_error("timeout", "Net"));
  const HookCall call = only_call();
  EXPECT_EQ(call.queue, number());
  EXPECT_EQ(call.hook, HookKind::on_failure);
  EXPECT_EQ(call.message.id, encode_job_id(job.token.job.seq));
  EXPECT_EQ(call.message.job->payload, "body");
  EXPECT_EQ(call.message.job->headers, job.record->headers);
  EXPECT_EQ(call.message.attempts, 1U);
  EXPECT_EQ(call.message.failures, 1U);
  EXPECT_EQ(call.message.error, "timeout");
  EXPECT_EQ(call.message.error_type, "Net");
  EXPECT_EQ(call.message.first_attempt_at, first_attempt);
}

TEST_F(OnFailure, AttemptsAndFailuresCountThisOne) {
  const ClaimedJob job = claimed();
  ASSERT_TRUE(release(job));
  ASSERT_TRUE(fail_with(claim_one(), retry_after(0s)));
  start_fail(claim_one());
  const HookCall call = only_call();
  EXPECT_EQ(call.message.attempts, 3U);
  EXPECT_EQ(call.message.failures, 2U);
}

TEST_F(OnFailure, IsNotAskedWhenTheClientDecided) {
  EXPECT_EQ(fail(claimed(), {.final = true})->reason, DeathReason::final);
  EXPECT_EQ(fail(claimed("b"), {.delay = 5s})->retry_at, now() + 5s);
  EXPECT_THAT(calls(), IsEmpty());
  EXPECT_EQ(hook_stats(HookKind::on_failure).succeeded, 0U);
}

TEST_F(OnFailure, IsNotAskedAtAConfiguredCap) {
  set_hook(HookKind::on_failure, {.retry = {.attempts = 2, .wait = 1s}});
  const ClaimedJob job = claimed();
  ASSERT_TRUE(fail_with(job, retry_after(0s)));
  EXPECT_EQ(fail(claim_one())->reason, DeathReason::max_attempts);
  EXPECT_EQ(death_of(job.token.job.seq).decided_by, DecidedBy::policy);
}

TEST_F(OnFailure, DecidesAloneWhereNoCapIsConfigured) {
  const Seq seq = claimed().token.job.seq;
  advance(30s);  // the first failure
  answer_all(retry_after(0s));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(fail_with(claim_one(), retry_after(0s)));
  EXPECT_EQ(fail_with(claim_one(), give_up())->status, JobStatus::dead);
  EXPECT_EQ(death_of(seq).failures, 22U);
}

TEST_F(OnFailure, OfAnotherQueueIsNotAsked) {
  look_at("other");
  configure({});
  EXPECT_EQ(fail(claimed())->reason, DeathReason::max_attempts);
  EXPECT_THAT(calls(), IsEmpty());
}

// --- Its verdicts.

TEST_F(OnFailure, RetriesAfterItsDelay) {
  const ClaimedJob job = claimed();
  const RequestId id = start_fail(job, with_error("boom"));
  const HookCall call = only_call();
  pass(2s);
  answer(call, retry_after(10s));
  const auto failed = fail_answer(id);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->job, job.token.job);
  EXPECT_EQ(failed->status, JobStatus::failed);
  EXPECT_EQ(failed->retry_at, now() + 10s) << "from when it answered";
  EXPECT_EQ(counts(), (Counts{.failed = 1}));
  const JobState state = state_of(job.token.job.seq);
  EXPECT_EQ(state.failures, 1U);
  EXPECT_EQ(state.last_error, "boom");
  ASSERT_EQ(state.history.size(), 1U);
  EXPECT_EQ(state.history[0].ended_at, now() - 2s) << "when it failed";
  advance(10s);
  EXPECT_THAT(claim_all(), ElementsAre("a"));
}

TEST_F(OnFailure, RetriesAtOnceWithoutADelay) {
  ASSERT_TRUE(fail_with(claimed(), retry_after(0s)));
  EXPECT_THAT(claim_all(), ElementsAre("a"));
}

TEST_F(OnFailure, ARetryGoesToAClaimThatWaits) {
  const ClaimedJob job = claimed();
  start_fail(job);
  start_waiting(1, {.lane = LaneChoice::retry});
  answer(only_call(), retry_after(0s));
  EXPECT_THAT(answers(), ElementsAre(std::pair(1, Names{"a"})));
}

TEST_F(OnFailure, GivesUpInItsOwnWords) {
  const ClaimedJob job = claimed();
  const auto failed = fail_with(job, give_up("card expired"), with_error("boom"));
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->status, JobStatus::dead);
  EXPECT_EQ(failed->reason, DeathReason::hook);
  EXPECT_EQ(failed->death_note, "card expired");
  const JobState dead = death_of(job.token.job.seq);
  EXPECT_EQ(dead.death_reason, DeathReason::hook);
  EXPECT_EQ(dead.decided_by, DecidedBy::hook);
  EXPECT_EQ(dead.death_note, "card expired");
  EXPECT_EQ(dead.hook_version, hook_version("one"));
  EXPECT_EQ(dead.last_error, "boom");
  EXPECT_EQ(dead.failures, 1U);
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
}

TEST_F(OnFailure, GivesUpWithoutWords) {
  const ClaimedJob job = claimed();
  EXPECT_EQ(fail_with(job, give_up())->death_note, "");
  EXPECT_EQ(death_reason_text(death_of(job.token.job.seq)), "hook");
  EXPECT_EQ(decided_by_text(death_of(job.token.job.seq)), "hook:" + hook_version("one"));
}

TEST_F(OnFailure, WhatARetryByHandBringsBackHasNoWordsLeft) {
  const Seq seq = claimed().token.job.seq;
  advance(30s);
  answer_all(give_up("no"));
  ASSERT_EQ(retry({seq}).done, 1U);
  const JobState state = state_of(seq);
  EXPECT_EQ(state.death_note, "");
  EXPECT_EQ(state.hook_version, "");
  EXPECT_EQ(state.decided_by, DecidedBy::policy);
}

TEST_F(OnFailure, ADeathGoesToTheDeadLetterQueueWithItsReason) {
  set_hook(HookKind::on_failure, {.dead_letter_queue = "graves"});
  const Seq seq = claimed().token.job.seq;
  advance(30s);
  answer_all(give_up("card expired"));
  EXPECT_EQ(counts(), Counts{});
  look_at("graves");
  const auto letter = ledger_.jobs.at(key_of(seq));
  EXPECT_THAT(letter->headers, testing::Contains(std::pair<std::string, std::string>(
                                   "reprise-death-reason", "card expired")));
}

// --- Other ways to fail.

TEST_F(OnFailure, IsAskedAboutALeaseThatRanOut) {
  const ClaimedJob job = claimed();
  const Timestamp deadline = job.lease_deadline;
  advance(40s);
  const HookCall call = only_call();
  EXPECT_EQ(call.message.error, "lease expired");
  EXPECT_EQ(call.message.error_type, "");
  EXPECT_EQ(counts(), (Counts{.active = 1})) << "until it has answered";
  answer(call, retry_after(5s));
  EXPECT_TRUE(fail_answers().empty()) << "nobody asked";
  EXPECT_EQ(counts(), (Counts{.failed = 1}));
  const JobState state = state_of(job.token.job.seq);
  EXPECT_EQ(state.history.at(0).outcome, AttemptOutcome::lease_expired);
  EXPECT_EQ(state.history.at(0).ended_at, deadline);
  EXPECT_EQ(state.due, now() + 5s);
  EXPECT_EQ(totals().lease_expired, 1U);
  EXPECT_EQ(totals().failed, 1U);
}

// Until the failure is decided it has not happened: a crash would have it happen again.
TEST_F(OnFailure, AnUndecidedFailureIsNotCounted) {
  claimed();
  advance(30s);
  EXPECT_EQ(totals().lease_expired, 0U);
  EXPECT_EQ(totals().failed, 0U);
  answer_all(retry_after(0s));
  EXPECT_EQ(totals().lease_expired, 1U);
}

TEST_F(OnFailure, IsAskedAboutALostWorker) {
  const ClaimedJob job = claimed();
  ASSERT_TRUE(fail_with(job, retry_after(5s), {.outcome = AttemptOutcome::worker_lost}));
  EXPECT_EQ(state_of(job.token.job.seq).history.at(0).outcome, AttemptOutcome::worker_lost);
}

TEST_F(OnFailure, AJobWhoseTtlHasPassedMeanwhileIsNotTriedAgain) {
  const ClaimedJob job = claimed("a", {.ttl = 10s});
  const RequestId id = start_fail(job);
  const HookCall call = only_call();
  advance(10s);
  EXPECT_EQ(counts(), (Counts{.active = 1}));
  answer(call, retry_after(0s));
  EXPECT_EQ(fail_answer(id)->reason, DeathReason::expired);
  EXPECT_EQ(death_of(job.token.job.seq).decided_by, DecidedBy::policy);
  EXPECT_EQ(death_of(job.token.job.seq).hook_version, "");
}

// --- A failure that is not decided yet.

TEST_F(OnFailure, ATokenIsOverOnceItsJobFailed) {
  const ClaimedJob job = claimed();
  start_fail(job);
  for (const bool asked : {false, true}) {
    if (asked) only_call();
    EXPECT_EQ(ack(job).error().code, Errc::lease_lost);
    EXPECT_EQ(release(job).error().code, Errc::lease_lost);
    EXPECT_EQ(extend(job).error().code, Errc::lease_lost);
    EXPECT_EQ(fail(job).error().code, Errc::lease_lost);
    EXPECT_THAT(ack(job).error().detail, HasSubstr("on_failure"));
  }
  EXPECT_EQ(counts(), (Counts{.active = 1}));
}

TEST_F(OnFailure, TheSameTokenTwiceInOneRequestIsOneFailure) {
  const ClaimedJob job = claimed();
  const RequestId id = start_fail(std::vector{job, job});
  answer(only_call(), retry_after(1s));
  const auto results = fail_answers().at(id);
  EXPECT_TRUE(results[0]);
  EXPECT_EQ(results[1].error().code, Errc::lease_lost);
}

TEST_F(OnFailure, NeitherRunsOutNorWakesAnybody) {
  start_fail(claimed());
  EXPECT_EQ(engine_->next_wake(), kNever);
  advance(1h);
  EXPECT_EQ(only_call().id, call_id(HookKind::on_failure, 1)) << "and it is asked about once";
  EXPECT_EQ(counts(), (Counts{.active = 1}));
}

TEST_F(OnFailure, CountsAsInFlight) {
  set_hook(HookKind::on_failure, {.fetch = {.retry_in_flight = 1}});
  push_many({"a", "b"});
  for (const ClaimedJob& job : claim(2)) ASSERT_TRUE(fail_with(job, retry_after(0s)));
  const auto first = claim(2);
  ASSERT_EQ(names(first), Names{"a"});
  start_fail(first[0]);
  EXPECT_THAT(claim_all(), IsEmpty());
  answer(only_call(), give_up());
  EXPECT_THAT(claim_all(), ElementsAre("b"));
}

TEST_F(OnFailure, ARequestIsAnsweredWhenAllItsJobsAreDecided) {
  push_many({"a", "b", "c"});
  const auto jobs = claim(3);
  std::vector<FailItem> items(4);
  for (std::size_t i = 0; i < 3; ++i) items[i].token = jobs[i].token;
  items[1].final = true;
  items[3].token = Error{Errc::invalid_lease_token, "no token"};
  ASSERT_FALSE(engine_->fail(7, items, now()));
  const auto asked = calls();
  ASSERT_EQ(asked.size(), 2U);
  answer(asked[1], give_up());
  EXPECT_TRUE(fail_answers().empty());
  answer(asked[0], retry_after(1s));
  const auto results = fail_answers().at(7);
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results[0]->status, JobStatus::failed);
  EXPECT_EQ(results[1]->reason, DeathReason::final);
  EXPECT_EQ(results[2]->reason, DeathReason::hook);
  EXPECT_EQ(results[3].error().code, Errc::invalid_lease_token);
}

TEST_F(OnFailure, AJobThatIsDroppedMeanwhileIsGone) {
  for (const bool asked : {false, true}) {
    const ClaimedJob job = claimed();
    const RequestId id = start_fail(job);
    std::vector<HookCall> out;
    if (asked) out = calls();
    EXPECT_EQ(drop(job.token.job.seq)->status, JobStatus::active);
    EXPECT_EQ(fail_answer(id).error().code, Errc::lease_lost);
    if (!asked) out = calls();
    EXPECT_EQ(out.size(), asked ? 1U : 0U) << "nobody is asked about what is gone";
    for (const HookCall& call : out) answer(call, retry_after(0s));
    EXPECT_EQ(counts(), Counts{});
    EXPECT_EQ(totals().live_bytes, 0U);
    EXPECT_EQ(hook_stats(HookKind::on_failure).in_flight, 0U);
  }
}

TEST_F(OnFailure, AQueueThatIsDeletedMeanwhileAnswersAll) {
  const ClaimedJob job = claimed();
  const RequestId id = start_fail(job);
  const HookCall call = only_call();
  ASSERT_TRUE(engine_->delete_queue(queue_, "", now()));
  EXPECT_EQ(fail_answer(id).error().code, Errc::queue_not_found);
  EXPECT_THAT(work_in_words(), ElementsAre("abandoned on_failure", "definition |"));
  answer(call, retry_after(0s));  // too late
  EXPECT_THAT(engine_->list_queues("", now()), IsEmpty());
}

TEST_F(OnFailure, ARestartFindsTheJobStillLeased) {
  const ClaimedJob job = claimed();
  start_fail(job, with_error("boom"));
  only_call();
  restart();
  EXPECT_EQ(counts(), (Counts{.active = 1}));
  EXPECT_THAT(work_in_words(), ElementsAre("definition |one"));
  EXPECT_TRUE(ack(job)) << "its failure was never acknowledged";
}

TEST_F(OnFailure, AfterARestartTheLeaseRunsOutAndItIsAskedAgain) {
  claimed();
  start_fail(claimed("b"));
  work();
  restart();
  advance(30s);
  EXPECT_EQ(calls().size(), 2U);
}

TEST_F(OnFailure, AJobThatCannotBeReadIsNotAskedAbout) {
  const ClaimedJob job = claimed();
  const RequestId id = start_fail(job);
  ledger_.corrupt_records.insert(job.token.job);
  EXPECT_THAT(calls(), IsEmpty());
  EXPECT_EQ(fail_answer(id)->reason, DeathReason::corrupt);
  EXPECT_EQ(death_of(job.token.job.seq).decided_by, DecidedBy::policy);
  EXPECT_EQ(death_of(job.token.job.seq).hook_version, "");
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
}

TEST_F(OnFailure, AJobWhoseStateCannotBeReadAnyMoreIsPutAside) {
  const ClaimedJob job = claimed();
  const RequestId id = start_fail(job);
  const HookCall call = only_call();
  ledger_.corrupt_states.insert(job.token.job);
  answer(call, retry_after(0s));
  EXPECT_EQ(fail_answer(id).error().code, Errc::corrupt);
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
}

// --- When the hook gives no answer.

struct ErrorCase {
  HookFault fault;
  OnHookError on_hook_error;
};

class OnFailureErrors : public OnFailure, public testing::WithParamInterface<ErrorCase> {};

TEST_P(OnFailureErrors, AreDealtWithAsTheQueueSays) {
  set_hook(HookKind::on_failure,
           {.retry = {.attempts = 5, .wait = 30s}, .on_hook_error = GetParam().on_hook_error});
  const ClaimedJob job = claimed();
  const auto failed =
      fail_with(job, broken(GetParam().fault, "the hook's own error"), with_error("boom"));
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->death_note, "");
  switch (GetParam().on_hook_error) {
    case OnHookError::retry:
      EXPECT_EQ(failed->retry_at, now());
      EXPECT_EQ(state_of(job.token.job.seq).last_error, "boom");
      EXPECT_THAT(claim_all(), ElementsAre("a"));
      break;
    case OnHookError::policy:
      EXPECT_EQ(failed->status, JobStatus::failed);
      EXPECT_EQ(failed->retry_at, now() + 30s);
      break;
    case OnHookError::dlq:
      EXPECT_EQ(failed->reason, DeathReason::hook_error);
      EXPECT_EQ(death_of(job.token.job.seq).last_error, "boom");
      EXPECT_EQ(death_of(job.token.job.seq).hook_version, "");
      break;
  }
  const HookStats seen = hook_stats(HookKind::on_failure);
  EXPECT_EQ(seen.failed[static_cast<std::size_t>(GetParam().fault)], 1U);
  EXPECT_EQ(seen.last_error, "the hook's own error");
  EXPECT_EQ(seen.last_error_at, now());
}

std::vector<ErrorCase> error_cases() {
  std::vector<ErrorCase> cases;
  for (std::size_t fault = 0; fault < kHookFaultCount - 1; ++fault) {
    for (const OnHookError what : {OnHookError::retry, OnHookError::policy, OnHookError::dlq}) {
      cases.push_back({static_cast<HookFault>(fault), what});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, OnFailureErrors, testing::ValuesIn(error_cases()),
                         [](const auto& tested) {
                           return std::string(hook_fault_name(tested.param.fault)) + "_" +
                                  std::string(on_hook_error_name(tested.param.on_hook_error));
                         });

TEST_F(OnFailure, AnErrorWithThePolicyAndNoCapIsTheEnd) {
  set_hook(HookKind::on_failure, {.on_hook_error = OnHookError::policy});
  EXPECT_EQ(fail_with(claimed(), broken())->reason, DeathReason::max_attempts);
}

TEST_F(OnFailure, AnErrorWithoutACapIsTriedAgainForEver) {
  claimed();
  advance(30s);
  answer_all(broken());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(fail_with(claim_one(), broken()));
    ASSERT_TRUE(fail_with(claim_one(), retry_after(0s)));
  }
}

// --- The queue's config is the one of the moment of the answer.

TEST_F(OnFailure, ACapThatComesMeanwhileIsKept) {
  const ClaimedJob job = claimed();
  const RequestId id = start_fail(job);
  const HookCall call = only_call();
  configure(with_hook(HookKind::on_failure, {.retry = {.attempts = 1}}));
  EXPECT_THAT(work_in_words(), IsEmpty()) << "its hook is the same";
  answer(call, retry_after(0s));
  EXPECT_EQ(fail_answer(id)->reason, DeathReason::max_attempts);
}

TEST_F(OnFailure, ANewScriptIsAskedAgain) {
  const ClaimedJob job = claimed();
  const RequestId id = start_fail(job);
  const HookCall old_call = only_call();
  configure(with_hook(HookKind::on_failure, {}, "two"));
  EXPECT_THAT(work_in_words(),
              ElementsAre("abandoned on_failure", "definition |two", "call on_failure 2"));
  answer(old_call, give_up("old"));
  EXPECT_TRUE(fail_answers().empty()) << "nobody wants the old one's answer";
  const HookResult result{call_id(HookKind::on_failure, 2), give_up("new")};
  engine_->finish_hook_calls({&result, 1}, now());
  EXPECT_EQ(fail_answer(id)->death_note, "new");
  EXPECT_EQ(death_of(job.token.job.seq).hook_version, hook_version("two"));
}

TEST_F(OnFailure, NewLimitsAreAskedAgain) {
  const RequestId id = start_fail(claimed());
  only_call();
  configure(with_hook(HookKind::on_failure, {.hook_timeout_ms = 50}));
  EXPECT_THAT(work_in_words(),
              ElementsAre("abandoned on_failure", "definition |one", "call on_failure 2"));
  const HookResult result{call_id(HookKind::on_failure, 2), retry_after(0s)};
  engine_->finish_hook_calls({&result, 1}, now());
  EXPECT_TRUE(fail_answer(id));
}

TEST_F(OnFailure, WithoutItsHookTheFailureIsThePolicys) {
  const ClaimedJob job = claimed();
  const RequestId id = start_fail(job);
  only_call();
  configure({.retry = {.attempts = 3, .wait = 30s}});
  EXPECT_EQ(fail_answer(id)->retry_at, now() + 30s);
  EXPECT_THAT(work_in_words(), ElementsAre("abandoned on_failure", "definition |"));
  EXPECT_EQ(stats().hooks[1], std::nullopt);
}

TEST_F(OnFailure, WithoutItsHookAndWithoutAPolicyTheJobIsDead) {
  const RequestId id = start_fail(claimed());
  configure({});
  EXPECT_EQ(fail_answer(id)->reason, DeathReason::max_attempts);
  EXPECT_THAT(work_in_words(), ElementsAre("definition |")) << "nobody had been asked";
}

}  // namespace
}  // namespace reprise
