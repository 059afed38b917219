// on_enqueue: who is asked, what the answers do to the job, and the order in which jobs come in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/hook_fixture.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using test::accept_as_pushed;
using test::broken;
using test::Counts;
using test::Names;
using test::reject;
using testing::ElementsAre;
using testing::IsEmpty;

class OnEnqueue : public test::HookFixture {
 protected:
  OnEnqueue() { set_hook(HookKind::on_enqueue); }

  static HookOutcome weighs(std::uint32_t weight) { return EnqueueVerdict{.weight = weight}; }
};

TEST_F(OnEnqueue, IsToldOfTheJobAsItWasPushed) {
  NewJob job{.headers = {{"tenant", "a"}}, .priority = 7};
  job.scheduling = {.fairness_key = "acme", .weight = 3, .throttle_keys = {"api"}};
  start_push({"body"}, job);
  const HookCall call = only_call();
  EXPECT_EQ(call.hook, HookKind::on_enqueue);
  EXPECT_EQ(call.queue, number());
  EXPECT_EQ(call.message.job->payload, "body");
  EXPECT_EQ(call.message.job->headers, job.headers);
  EXPECT_EQ(call.message.job->priority, 7U);
  EXPECT_EQ(call.message.job->scheduling, job.scheduling);
}

TEST_F(OnEnqueue, NothingIsThereBeforeItHasAnswered) {
  expect_no_change([&] {
    start_push({"a"});
    only_call();
  });
  EXPECT_THAT(claim_all(), IsEmpty());
}

TEST_F(OnEnqueue, WhatItNamesIsStoredWithTheJob) {
  const RequestId id = start_push({"a"});
  answer(only_call(), EnqueueVerdict{.fairness_key = "acme",
                                     .weight = 10,
                                     .throttle_keys = std::vector<std::string>{"x", "y"}});
  const auto results = push_answer(id);
  ASSERT_TRUE(results.at(0));
  EXPECT_EQ(scheduling_of(results[0]->seq),
            (Scheduling{.fairness_key = "acme", .weight = 10, .throttle_keys = {"x", "y"}}));
}

TEST_F(OnEnqueue, WhatItDoesNotNameStaysAsItWasPushed) {
  NewJob job;
  job.scheduling = {.fairness_key = "acme", .weight = 3, .throttle_keys = {"api"}};
  const RequestId id = start_push({"a"}, job);
  answer(only_call(), weighs(5));
  EXPECT_EQ(scheduling_of(push_answer(id).at(0)->seq),
            (Scheduling{.fairness_key = "acme", .weight = 5, .throttle_keys = {"api"}}));
}

TEST_F(OnEnqueue, AMessageWhoseAnswerIsNotAwaitedIsNotChanged) {
  start_push({"a"});
  const HookCall call = only_call();
  configure({});
  EXPECT_EQ(push_answers().size(), 1U);
  EXPECT_EQ(call.message.job->pushed_at, Timestamp{}) << "somebody may still be reading it";
}

TEST_F(OnEnqueue, AJobsPlaceIsTheMomentOfTheAnswer) {
  const RequestId id = start_push({"a"}, {.delay = 10s, .ttl = 1min});
  const HookCall call = only_call();
  pass(5s);
  answer(call, accept_as_pushed());
  const auto& record = ledger_.jobs.at(key_of(push_answer(id).at(0)->seq));
  EXPECT_EQ(record->pushed_at, now());
  EXPECT_EQ(record->expires_at, now() + 1min);
  EXPECT_EQ(engine_->next_wake(), now() + 10s);
}

TEST_F(OnEnqueue, ARefusedJobLeavesTheOthersAlone) {
  const RequestId id = start_push({"a", "b", "c"});
  const auto asked = calls();
  ASSERT_EQ(asked.size(), 3U);
  answer(asked[0], accept_as_pushed());
  answer(asked[1], reject("no id"));
  EXPECT_TRUE(push_answers().empty());
  answer(asked[2], accept_as_pushed());
  const auto results = push_answer(id);
  EXPECT_TRUE(results.at(0));
  EXPECT_EQ(results.at(1).error().code, Errc::hook_rejected);
  EXPECT_EQ(results.at(1).error().detail, "no id");
  EXPECT_TRUE(results.at(2));
  EXPECT_THAT(claim_all(), ElementsAre("a", "c"));
  EXPECT_EQ(totals().pushed, 2U);
}

TEST_F(OnEnqueue, IsNotAskedAboutWhatIsRefusedAnyway) {
  PushCommand command{.queue = queue_, .jobs = {Error{Errc::payload_too_large, ""}}};
  const auto reply = engine_->push(1, command, now());
  ASSERT_TRUE(reply) << "there is nothing to ask";
  EXPECT_EQ((*reply)->results.at(0).error().code, Errc::payload_too_large);
  command.jobs.push_back(NewJob{.payload = "a"});
  ASSERT_FALSE(engine_->push(2, command, now()));
  answer(only_call(), accept_as_pushed());
  const auto results = push_answer(2);
  EXPECT_EQ(results.at(0).error().code, Errc::payload_too_large);
  EXPECT_TRUE(results.at(1));
}

TEST_F(OnEnqueue, AKnownKeyIsADuplicateWhateverTheHookSays) {
  const RequestId first = start_push({"a"}, {.key = "k"});
  answer(only_call(), accept_as_pushed());
  const Seq seq = push_answer(first).at(0)->seq;
  for (const HookOutcome& outcome : {accept_as_pushed(), reject("no"), broken()}) {
    const RequestId again = start_push({"a"}, {.key = "k"});
    answer(only_call(), outcome);
    const auto results = push_answer(again);
    ASSERT_TRUE(results.at(0));
    EXPECT_TRUE(results[0]->duplicate);
    EXPECT_EQ(results[0]->seq, seq);
  }
  EXPECT_EQ(totals().duplicates, 3U);
}

TEST_F(OnEnqueue, OfTwoPushesWithOneKeyTheSecondIsTheDuplicate) {
  const RequestId first = start_push({"a"}, {.key = "k"});
  const RequestId second = start_push({"b"}, {.key = "k"});
  answer_all(accept_as_pushed());
  const auto answers = push_answers();
  EXPECT_FALSE(answers.at(first)->results.at(0)->duplicate);
  EXPECT_TRUE(answers.at(second)->results.at(0)->duplicate);
}

TEST_F(OnEnqueue, AJobThatWaitsForItKeepsTheWindowItAskedFor) {
  set_hook(HookKind::on_enqueue, {.key_window = 10s});
  start_push({"a"}, {.key = "k", .least_key_window = 1h});
  answer(only_call(), accept_as_pushed());
  push_answers();
  advance(1h - 1us);
  const RequestId again = start_push({"a"}, {.key = "k"});
  answer(only_call(), accept_as_pushed());
  EXPECT_TRUE(push_answer(again).at(0)->duplicate);
}

TEST_F(OnEnqueue, AKeyOfARefusedJobIsFree) {
  start_push({"a"}, {.key = "k"});
  answer(only_call(), reject("no"));
  push_answers();
  const RequestId again = start_push({"a"}, {.key = "k"});
  answer(only_call(), accept_as_pushed());
  EXPECT_FALSE(push_answer(again).at(0)->duplicate);
}

TEST_F(OnEnqueue, QuotasAreCheckedWhenItHasAnswered) {
  set_hook(HookKind::on_enqueue, {.max_jobs = 1});
  const RequestId id = start_push({"a", "b"});
  answer_all(accept_as_pushed());
  const auto results = push_answer(id);
  EXPECT_TRUE(results.at(0));
  EXPECT_EQ(results.at(1).error().code, Errc::queue_full);
}

TEST_F(OnEnqueue, WhatItAddsCountsAsBytes) {
  set_hook(HookKind::on_enqueue, {.max_bytes = 5});
  const RequestId id = start_push({"a"});
  answer(only_call(), EnqueueVerdict{.fairness_key = "longer"});
  EXPECT_EQ(push_answer(id).at(0).error().code, Errc::queue_bytes_full);
}

TEST_F(OnEnqueue, AnErrorAcceptsTheJobAsItWasPushed) {
  for (std::size_t fault = 0; fault < kHookFaultCount - 1; ++fault) {
    const RequestId bad = start_push({"bad"});
    answer(only_call(), broken(static_cast<HookFault>(fault)));
    const auto results = push_answer(bad);
    ASSERT_TRUE(results.at(0));
    EXPECT_EQ(scheduling_of(results[0]->seq), Scheduling{});
    start_push({"good"});  // keeps the breaker closed
    answer(only_call(), accept_as_pushed());
    push_answers();
  }
}

// --- Order.

TEST_F(OnEnqueue, PushesKeepTheirOrderHoweverAnswersCome) {
  const RequestId first = start_push({"a"});
  const RequestId second = start_push({"b"});
  const RequestId third = start_push({"c"});
  const auto asked = calls();
  ASSERT_EQ(asked.size(), 3U);
  answer(asked[2], weighs(3));
  answer(asked[1], weighs(2));
  EXPECT_TRUE(push_answers().empty());
  answer(asked[0], weighs(1));
  const auto answers = push_answers();
  ASSERT_EQ(answers.size(), 3U);
  const auto seq = [&](RequestId id) { return answers.at(id)->results.at(0)->seq; };
  EXPECT_LT(seq(first), seq(second));
  EXPECT_LT(seq(second), seq(third));
  EXPECT_EQ(scheduling_of(seq(third)).weight, 3U);
  EXPECT_THAT(claim_all(), ElementsAre("a", "b", "c"));
}

TEST_F(OnEnqueue, APushThatNeedsNoAnswerWaitsForThoseBeforeIt) {
  const RequestId first = start_push({"a"});
  PushCommand command{.queue = queue_, .jobs = {Error{Errc::payload_too_large, ""}}};
  ASSERT_FALSE(engine_->push(2, command, now()));
  answer(only_call(), accept_as_pushed());
  const auto answers = push_answers();
  EXPECT_TRUE(answers.contains(first));
  EXPECT_TRUE(answers.contains(2));
}

TEST_F(OnEnqueue, OtherQueuesDoNotWait) {
  start_push({"a"});
  EXPECT_TRUE(push_at_once({.queue = {.name = "other"}, .create = true, .jobs = {NewJob{}}}));
}

TEST_F(OnEnqueue, AJobGoesToAClaimThatWaits) {
  start_waiting(1);
  start_push({"a"});
  EXPECT_THAT(answers(), IsEmpty());
  answer(only_call(), accept_as_pushed());
  EXPECT_THAT(answers(), ElementsAre(std::pair(1, Names{"a"})));
}

TEST_F(OnEnqueue, TheLineOfPushesIsBounded) {
  for (int i = 0; i < 10'000; ++i) start_push({"a"});
  const auto refused = engine_->push(1, {.queue = queue_, .jobs = {NewJob{}}}, now());
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->error().code, Errc::overloaded);
  answer(calls().front(), accept_as_pushed());
  EXPECT_EQ(push_answers().size(), 1U);
  start_push({"there is room again"});
}

TEST_F(OnEnqueue, TheBytesOfTheLineAreBounded) {
  for (int i = 0; i < 4; ++i) start_push({std::string(8 << 20, 'x')});
  const auto refused = engine_->push(1, {.queue = queue_, .jobs = {NewJob{.payload = "x"}}}, now());
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->error().code, Errc::overloaded);
  answer_all(accept_as_pushed());
  EXPECT_EQ(push_answers().size(), 1U) << "they are asked one by one";
  start_push({"there is room again"});
}

// --- Changes meanwhile.

TEST_F(OnEnqueue, WithoutItsHookJobsComeInAsTheyWerePushed) {
  const RequestId first = start_push({"a"});
  only_call();
  const RequestId second = start_push({"b"});
  configure({});
  const auto answers = push_answers();
  EXPECT_TRUE(answers.at(first)->results.at(0));
  EXPECT_TRUE(answers.at(second)->results.at(0));
  EXPECT_THAT(work_in_words(), ElementsAre("abandoned on_enqueue", "definition |"));
  EXPECT_THAT(claim_all(), ElementsAre("a", "b"));
}

TEST_F(OnEnqueue, ANewScriptIsAskedAboutAllThatWait) {
  const RequestId first = start_push({"a"});
  const HookCall old_call = only_call();
  const RequestId second = start_push({"b"});
  configure(with_hook(HookKind::on_enqueue, {}, "two"));
  EXPECT_THAT(work_in_words(), ElementsAre("abandoned on_enqueue", "definition two|",
                                           "call on_enqueue 2", "call on_enqueue 3"));
  answer(old_call, reject("old"));
  const std::vector<HookResult> results = {{call_id(HookKind::on_enqueue, 2), weighs(2)},
                                           {call_id(HookKind::on_enqueue, 3), weighs(3)}};
  engine_->finish_hook_calls(results, now());
  const auto answers = push_answers();
  EXPECT_EQ(scheduling_of(answers.at(first)->results.at(0)->seq).weight, 2U);
  EXPECT_EQ(scheduling_of(answers.at(second)->results.at(0)->seq).weight, 3U);
}

TEST_F(OnEnqueue, AChangeOfOneHookAsksTheOtherAgain) {
  const RequestId id = start_push({"a"});
  only_call();
  QueueConfig both = with_hook(HookKind::on_enqueue);
  configure(with_hook(HookKind::on_failure, both, "f"));
  EXPECT_THAT(work_in_words(),
              ElementsAre("abandoned on_enqueue", "definition one|f", "call on_enqueue 2"));
  const HookResult result{call_id(HookKind::on_enqueue, 2), accept_as_pushed()};
  engine_->finish_hook_calls({&result, 1}, now());
  EXPECT_TRUE(push_answer(id).at(0));
}

TEST_F(OnEnqueue, AQueueThatIsDeletedRefusesThoseThatWait) {
  const RequestId first = start_push({"a"});
  const HookCall call = only_call();
  const RequestId second = start_push({"b"});
  ASSERT_TRUE(engine_->delete_queue(queue_, "", now()));
  const auto answers = push_answers();
  EXPECT_EQ(answers.at(first).error().code, Errc::queue_not_found);
  EXPECT_EQ(answers.at(second).error().code, Errc::queue_not_found);
  answer(call, accept_as_pushed());
  EXPECT_TRUE(ledger_.jobs.empty());
}

TEST_F(OnEnqueue, ARestartForgetsPushesThatNobodyWasToldOf) {
  start_push({"a"});
  only_call();
  restart();
  EXPECT_EQ(counts(), Counts{});
  EXPECT_THAT(work_in_words(), ElementsAre("definition one|"));
}

TEST_F(OnEnqueue, AJobThatComesFromAnotherQueueIsNotAskedAbout) {
  look_at("shop");
  configure({.dead_letter_queue = "orders"});
  push("a");
  ASSERT_EQ(fail(claim_one())->status, JobStatus::dead);
  look_at("orders");
  EXPECT_THAT(calls(), IsEmpty());
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
}

// --- Answers that are remembered.

class RememberedAnswers : public OnEnqueue {
 protected:
  // A job of this tenant is pushed, and its hook's answer would be given again.
  void learn(const std::string& tenant, const HookOutcome& outcome) {
    const RequestId id = start_push({"known"}, of(tenant));
    answer(only_call(), outcome, true);
    push_answer(id);
  }
  static NewJob of(const std::string& tenant) { return {.headers = {{"tenant", tenant}}}; }
  // The jobs of a push that is answered without a call.
  ItemResults<PushedJob> push_known(const Names& payloads, NewJob job) {
    PushCommand command{.queue = queue_};
    for (const std::string& payload : payloads) {
      job.payload = payload;
      command.jobs.push_back(job);
    }
    const auto reply = engine_->push(next_request_++, std::move(command), now());
    const bool there = reply && *reply;
    EXPECT_TRUE(there) << "the hook is asked";
    return there ? (*reply)->results : ItemResults<PushedJob>{};
  }
};

TEST_F(RememberedAnswers, NeedNoCall) {
  learn("a", EnqueueVerdict{.fairness_key = "acme", .weight = 3});
  const auto results = push_known({"x", "y"}, of("a"));
  ASSERT_EQ(results.size(), 2U);
  for (const auto& result : results) {
    EXPECT_EQ(scheduling_of(result->seq), (Scheduling{.fairness_key = "acme", .weight = 3}));
  }
  EXPECT_THAT(calls(), IsEmpty());
  EXPECT_EQ(hook_stats(HookKind::on_enqueue).succeeded, 3U);
  EXPECT_EQ(hook_stats(HookKind::on_enqueue).remembered, 2U);
}

TEST_F(RememberedAnswers, ARefusalIsOneOfThem) {
  learn("a", reject("not yours"));
  const auto results = push_known({"x"}, of("a"));
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].error().code, Errc::hook_rejected);
  EXPECT_EQ(results[0].error().detail, "not yours");
}

TEST_F(RememberedAnswers, AreNotTakenForOtherJobs) {
  learn("a", weighs(3));
  const RequestId id = start_push({"x"}, of("b"));
  answer(only_call(), weighs(4));
  EXPECT_EQ(scheduling_of(push_answer(id).at(0)->seq).weight, 4U);
  start_push({"x"}, of("b"));  // its answer was not told to be repeatable
}

TEST_F(RememberedAnswers, OfAFailureThereAreNone) {
  const RequestId id = start_push({"x"}, of("a"));
  answer(only_call(), broken(), true);
  push_answer(id);
  start_push({"x"}, of("a"));
}

TEST_F(RememberedAnswers, DoNotOvertakeWhatWaits) {
  learn("a", weighs(3));
  const RequestId first = start_push({"first"}, of("b"));
  const RequestId second = start_push({"second"}, of("a"));
  EXPECT_TRUE(push_answers().empty());
  answer(only_call(), accept_as_pushed());
  const auto answers = push_answers();
  EXPECT_EQ(answers.size(), 2U);
  EXPECT_LT(answers.at(first)->results.at(0)->seq, answers.at(second)->results.at(0)->seq);
}

TEST_F(RememberedAnswers, InOnePushOnlyTheOthersAreAskedAbout) {
  learn("a", weighs(3));
  PushCommand command{.queue = queue_};
  for (const std::string tenant : {"a", "b", "a"}) command.jobs.push_back(of(tenant));
  const RequestId id = next_request_++;
  ASSERT_FALSE(engine_->push(id, std::move(command), now()));
  answer(only_call(), weighs(4));
  const auto results = push_answer(id);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(scheduling_of(results[0]->seq).weight, 3U);
  EXPECT_EQ(scheduling_of(results[1]->seq).weight, 4U);
  EXPECT_EQ(scheduling_of(results[2]->seq).weight, 3U);
}

TEST_F(RememberedAnswers, ANewScriptBeginsWithNone) {
  learn("a", weighs(3));
  set_hook(HookKind::on_enqueue, {}, "another");
  start_push({"x"}, of("a"));
  EXPECT_EQ(calls().size(), 1U);
}

TEST_F(RememberedAnswers, WhatWasAskedOfTheOldScriptIsNotRememberedForTheNewOne) {
  start_push({"x"}, of("a"));
  const HookCall old_call = only_call();
  configure(with_hook(HookKind::on_enqueue, {}, "another"));
  answer(old_call, weighs(3), true);
  answer(only_call(), weighs(4));
  start_push({"x"}, of("a"));
}

TEST_F(RememberedAnswers, AnOpenBreakerTakesNoneAndItsTrialIsACall) {
  learn("a", weighs(3));
  for (int i = 0; i < 3; ++i) {
    const RequestId id = start_push({"x"}, of("b"));
    answer(only_call(), broken());
    push_answer(id);
  }
  const auto results = push_known({"x"}, of("a"));
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(scheduling_of(results[0]->seq).weight, 1U) << "as it was pushed";
  advance(HookBreaker::kOpenFor);
  start_push({"x"}, of("a"));
  EXPECT_EQ(calls().size(), 1U);
}

}  // namespace
}  // namespace reprise
