// What both hooks have in common: definitions, the window of calls, the breaker, what is counted
// and told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/hook_fixture.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using test::accept_as_pushed;
using test::broken;
using test::Counts;
using test::give_up;
using test::Names;
using test::retry_after;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::size_t index(HookFault fault) { return static_cast<std::size_t>(fault); }

class EngineHooks : public test::HookFixture {
 protected:
  std::vector<ClaimedJob> claimed(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) push(std::to_string(i));
    return claim(count);
  }
  // One failure of the hook for each; three open its breaker.
  void break_hook(int times) {
    for (int i = 0; i < times; ++i) ASSERT_TRUE(fail_with(claimed(1).at(0), broken()));
    drop_all();
  }
  void drop_all() {
    for (const ClaimedJob& job : claim(1000)) ASSERT_TRUE(ack(job));
  }
  BreakerState breaker() { return hook_stats(HookKind::on_failure).breaker; }
};

// --- Definitions.

TEST_F(EngineHooks, AQueueWithoutHooksIsNothingToTell) {
  EXPECT_THAT(work_in_words(), IsEmpty());
  EXPECT_EQ(stats().hooks[0], std::nullopt);
  EXPECT_EQ(stats().hooks[1], std::nullopt);
}

TEST_F(EngineHooks, ADefinitionTellsSourcesAndLimits) {
  configure(with_hook(HookKind::on_failure, with_hook(HookKind::on_enqueue, {}, "e"), "f"));
  auto told = work();
  ASSERT_THAT(told, SizeIs(1));
  auto definition = std::get<HookDefinition>(told[0]);
  EXPECT_EQ(definition.queue, number());
  EXPECT_EQ(definition.name, queue_);
  EXPECT_THAT(definition.sources, ElementsAre("e", "f"));
  EXPECT_EQ(definition.limits, HookLimits{});
  configure(with_hook(HookKind::on_failure, {.hook_timeout_ms = 50, .hook_memory_bytes = 2 << 20}));
  told = work();
  ASSERT_THAT(told, SizeIs(1));
  definition = std::get<HookDefinition>(told[0]);
  EXPECT_THAT(definition.sources, ElementsAre("", "one"));
  EXPECT_EQ(definition.limits, (HookLimits{.timeout = 50ms, .memory_bytes = 2 << 20}));
}

TEST_F(EngineHooks, TheServersLimitsHoldWhereTheQueueSaysNothing) {
  limits_.hook_timeout_ms = 7;
  limits_.hook_memory_bytes = 1 << 22;
  make_engine();
  configure(with_hook(HookKind::on_failure));
  const auto told = work();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(std::get<HookDefinition>(told[0]).limits,
            (HookLimits{.timeout = 7ms, .memory_bytes = 1 << 22}));
}

TEST_F(EngineHooks, AnEditOfSomethingElseDefinesNothing) {
  set_hook(HookKind::on_failure);
  configure(with_hook(HookKind::on_failure, {.lease = 5s, .on_hook_error = OnHookError::dlq}));
  EXPECT_THAT(work_in_words(), IsEmpty());
  configure(with_hook(HookKind::on_failure, {.hook_timeout_ms = limits_.hook_timeout_ms}));
  EXPECT_THAT(work_in_words(), IsEmpty()) << "the limit is the same";
}

TEST_F(EngineHooks, ADeletedQueueHasNoHooks) {
  set_hook(HookKind::on_failure);
  ASSERT_TRUE(engine_->delete_queue(queue_, "", now()));
  EXPECT_THAT(work_in_words(), ElementsAre("definition |"));
}

TEST_F(EngineHooks, ARestartDefinesThemAgain) {
  set_hook(HookKind::on_failure);
  restart();
  EXPECT_THAT(work_in_words(), ElementsAre("definition |one"));
}

TEST_F(EngineHooks, StatsTellTheVersion) {
  set_hook(HookKind::on_failure);
  EXPECT_EQ(hook_stats(HookKind::on_failure).version, hook_version("one"));
}

// --- The window.

TEST_F(EngineHooks, NoMoreThan512CallsAreOut) {
  set_hook(HookKind::on_failure);
  start_fail(claimed(600));
  const auto first = calls();
  EXPECT_THAT(first, SizeIs(512));
  EXPECT_THAT(calls(), IsEmpty());
  EXPECT_EQ(hook_stats(HookKind::on_failure).in_flight, 600U);
  answer(first[7], retry_after(1h));
  EXPECT_THAT(calls(), SizeIs(1));
  for (const HookCall& call : first) answer(call, retry_after(1h));
  EXPECT_THAT(calls(), SizeIs(87));
}

TEST_F(EngineHooks, NoMoreThan8MiBAreOut) {
  set_hook(HookKind::on_failure);
  for (int i = 0; i < 3; ++i) push(std::string(3 << 20, 'x'));
  start_fail(claim(3));
  const auto first = calls();
  EXPECT_THAT(first, SizeIs(2));
  answer(first[0], retry_after(1h));
  EXPECT_THAT(calls(), SizeIs(1));
}

TEST_F(EngineHooks, AJobBeyondTheWindowGoesAlone) {
  set_hook(HookKind::on_failure);
  push("small");
  push(std::string(9 << 20, 'x'));
  push("small");
  start_fail(claim(3));
  for (int i = 0; i < 3; ++i) answer(only_call(), retry_after(1h));
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(EngineHooks, EachQueueHasAWindowOfItsOwn) {
  set_hook(HookKind::on_failure);
  start_fail(claimed(513));
  EXPECT_THAT(calls(), SizeIs(512));
  look_at("other");
  set_hook(HookKind::on_failure);
  start_fail(claimed(1));
  EXPECT_THAT(calls(), SizeIs(1));
}

TEST_F(EngineHooks, CallsAreNumberedInTheOrderInWhichTheyAreAsked) {
  set_hook(HookKind::on_failure);
  start_fail(claimed(3));
  HookCallId last = 0;
  Names payloads;
  for (const HookCall& call : calls()) {
    EXPECT_GT(call.id, last);
    last = call.id;
    payloads.push_back(call.message.job->payload);
  }
  EXPECT_THAT(payloads, ElementsAre("0", "1", "2"));
}

TEST_F(EngineHooks, AnswersThatNobodyWaitsForAreIgnored) {
  set_hook(HookKind::on_failure);
  const RequestId id = start_fail(claimed(1));
  const HookCall call = only_call();
  const HookResult unknown{call.id + 1, give_up()};
  engine_->finish_hook_calls({&unknown, 1}, now());
  EXPECT_TRUE(fail_answers().empty());
  answer(call, retry_after(1s));
  answer(call, give_up());
  EXPECT_TRUE(fail_answer(id));
  EXPECT_EQ(hook_stats(HookKind::on_failure).succeeded, 1U);
}

// --- The breaker.

TEST_F(EngineHooks, ThreeErrorsInARowOpenTheBreaker) {
  set_hook(HookKind::on_failure);
  break_hook(2);
  EXPECT_EQ(breaker(), BreakerState::closed);
  EXPECT_EQ(hook_stats(HookKind::on_failure).failures_in_a_row, 2U);
  break_hook(1);
  const HookStats seen = hook_stats(HookKind::on_failure);
  EXPECT_EQ(seen.breaker, BreakerState::open);
  EXPECT_EQ(seen.open_until, now() + 10s);
  EXPECT_EQ(seen.opened, 1U);
  EXPECT_EQ(seen.failed[index(HookFault::error)], 3U);
}

TEST_F(EngineHooks, AnAnswerBetweenErrorsKeepsItClosed) {
  set_hook(HookKind::on_failure);
  for (int i = 0; i < 3; ++i) {
    break_hook(2);
    ASSERT_TRUE(fail_with(claimed(1).at(0), give_up()));
  }
  EXPECT_EQ(breaker(), BreakerState::closed);
}

TEST_F(EngineHooks, WhileItIsOpenTheErrorsHandlingAppliesAtOnce) {
  set_hook(HookKind::on_failure, {.on_hook_error = OnHookError::dlq});
  break_hook(3);
  EXPECT_EQ(fail(claimed(1).at(0))->reason, DeathReason::hook_error);
  EXPECT_THAT(calls(), IsEmpty());
  EXPECT_EQ(hook_stats(HookKind::on_failure).failed[index(HookFault::breaker_open)], 1U);
  EXPECT_EQ(hook_stats(HookKind::on_failure).last_error, "line 1: no");
}

TEST_F(EngineHooks, WhenItOpensAllThatWaitIsDecided) {
  set_hook(HookKind::on_failure, {.on_hook_error = OnHookError::dlq});
  const RequestId id = start_fail(claimed(600));
  const auto out = calls();
  const std::vector<HookResult> results = {
      {out[0].id, broken()}, {out[1].id, broken()}, {out[2].id, broken()}};
  engine_->finish_hook_calls(results, now());
  const auto decided = fail_answers().at(id);
  ASSERT_EQ(decided.size(), 600U);
  for (const auto& failed : decided) EXPECT_EQ(failed->reason, DeathReason::hook_error);
  EXPECT_THAT(work_in_words(), ElementsAre("abandoned on_failure"));
  const HookStats seen = hook_stats(HookKind::on_failure);
  EXPECT_EQ(seen.in_flight, 0U);
  EXPECT_EQ(seen.failed[index(HookFault::error)], 3U);
  EXPECT_EQ(seen.failed[index(HookFault::breaker_open)], 597U);
  answer(out[5], give_up("late"));
  EXPECT_EQ(hook_stats(HookKind::on_failure).succeeded, 0U);
}

// Answers that came together with the third error still count.
TEST_F(EngineHooks, AnAnswerInTheSameBatchAsTheThirdErrorIsTaken) {
  set_hook(HookKind::on_failure, {.on_hook_error = OnHookError::dlq});
  const RequestId id = start_fail(claimed(4));
  const auto out = calls();
  const std::vector<HookResult> results = {{out[0].id, broken()},
                                           {out[1].id, broken()},
                                           {out[2].id, broken()},
                                           {out[3].id, give_up("mine")}};
  engine_->finish_hook_calls(results, now());
  EXPECT_EQ(fail_answers().at(id).at(3)->death_note, "mine");
  EXPECT_EQ(breaker(), BreakerState::open);
}

TEST_F(EngineHooks, PushesThatWaitComeInAsTheyWerePushedWhenItOpens) {
  set_hook(HookKind::on_enqueue);
  const RequestId first = start_push({"a", "b", "c", "d"});
  const RequestId second = start_push({"e"});
  const auto out = calls();
  for (int i = 2; i >= 0; --i) answer(out[static_cast<std::size_t>(i)], broken());
  const auto answers = push_answers();
  EXPECT_EQ(answers.at(first)->results.size(), 4U);
  EXPECT_TRUE(answers.at(second)->results.at(0));
  EXPECT_THAT(claim_all(), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_TRUE(try_push("at once"));
  EXPECT_EQ(hook_stats(HookKind::on_enqueue).failed[index(HookFault::breaker_open)], 3U);
}

TEST_F(EngineHooks, AfterTenSecondsOneCallIsTried) {
  set_hook(HookKind::on_failure);
  break_hook(3);
  pass(10s);
  EXPECT_EQ(breaker(), BreakerState::trial);
  const auto jobs = claimed(2);
  start_fail(jobs[0]);
  EXPECT_EQ(fail(jobs[1])->retry_at, now()) << "only one";
  const HookCall trial = only_call();
  answer(trial, retry_after(1s));
  EXPECT_EQ(breaker(), BreakerState::closed);
  EXPECT_EQ(hook_stats(HookKind::on_failure).failures_in_a_row, 0U);
  EXPECT_EQ(hook_stats(HookKind::on_failure).open_until, Timestamp{});
}

TEST_F(EngineHooks, ABadTrialOpensItForTenMoreSeconds) {
  set_hook(HookKind::on_failure);
  break_hook(3);
  pass(10s);
  break_hook(1);
  const HookStats seen = hook_stats(HookKind::on_failure);
  EXPECT_EQ(seen.breaker, BreakerState::open);
  EXPECT_EQ(seen.open_until, now() + 10s);
  EXPECT_EQ(seen.opened, 2U);
  EXPECT_EQ(seen.failures_in_a_row, 4U);
}

TEST_F(EngineHooks, ATrialWhoseJobIsDroppedIsNobodysVerdict) {
  set_hook(HookKind::on_failure);
  break_hook(3);
  pass(10s);
  const auto jobs = claimed(2);
  start_fail(jobs[0]);
  ASSERT_TRUE(drop(jobs[0].token.job.seq));
  EXPECT_THAT(calls(), IsEmpty());
  start_fail(jobs[1]);
  answer(only_call(), retry_after(1s));
  EXPECT_EQ(breaker(), BreakerState::closed);
}

TEST_F(EngineHooks, ATrialThatIsAskedAgainStaysTheTrial) {
  set_hook(HookKind::on_failure);
  break_hook(3);
  pass(10s);
  start_fail(claimed(1));
  only_call();
  configure(with_hook(HookKind::on_failure, {.hook_timeout_ms = 50}));
  const auto again = only_call();
  EXPECT_EQ(breaker(), BreakerState::trial);
  answer(again, retry_after(1s));
  EXPECT_EQ(breaker(), BreakerState::closed);
}

TEST_F(EngineHooks, ANewScriptClosesIt) {
  set_hook(HookKind::on_failure);
  break_hook(3);
  configure(with_hook(HookKind::on_failure, {}, "two"));
  HookStats seen = hook_stats(HookKind::on_failure);
  EXPECT_EQ(seen.breaker, BreakerState::closed);
  EXPECT_EQ(seen.failures_in_a_row, 0U);
  EXPECT_EQ(seen.last_error, "");
  EXPECT_EQ(seen.opened, 1U) << "counts go on";
  EXPECT_EQ(seen.failed[index(HookFault::error)], 3U);
}

TEST_F(EngineHooks, TheSameScriptDoesNot) {
  set_hook(HookKind::on_failure);
  break_hook(3);
  configure(with_hook(HookKind::on_failure, {.lease = 5s}));
  EXPECT_EQ(breaker(), BreakerState::open);
}

TEST_F(EngineHooks, EachHookHasABreakerOfItsOwn) {
  configure(with_hook(HookKind::on_failure, with_hook(HookKind::on_enqueue)));
  for (int i = 0; i < 3; ++i) {
    start_push({"a"});
    answer_all(broken());
  }
  push_answers();
  EXPECT_EQ(hook_stats(HookKind::on_enqueue).breaker, BreakerState::open);
  EXPECT_EQ(breaker(), BreakerState::closed);
  start_fail(claim_one());
  EXPECT_THAT(calls(), SizeIs(1));
}

TEST_F(EngineHooks, ARestartForgetsBreakerAndCounts) {
  set_hook(HookKind::on_failure);
  break_hook(3);
  restart();
  const HookStats seen = hook_stats(HookKind::on_failure);
  EXPECT_EQ(seen.breaker, BreakerState::closed);
  EXPECT_EQ(seen.opened, 0U);
  EXPECT_EQ(seen.failed[index(HookFault::error)], 0U);
}

// --- What is told.

TEST_F(EngineHooks, ErrorsAreToldOnceASecond) {
  set_hook(HookKind::on_failure);
  ASSERT_TRUE(fail_with(claimed(1).at(0), broken(HookFault::error, "line 3: boom")));
  EXPECT_THAT(notices(), ElementsAre("on_failure failed: line 3: boom"));
  pass(500ms);
  ASSERT_TRUE(fail_with(claimed(1).at(0), give_up()));
  ASSERT_TRUE(fail_with(claim_one(), broken()));
  drop_all();
  EXPECT_THAT(notices(), IsEmpty());
  pass(500ms);
  ASSERT_TRUE(fail_with(claimed(1).at(0), broken(HookFault::error, "line 4: again")));
  EXPECT_THAT(notices(), ElementsAre("on_failure failed: line 4: again (and 1 more before)"));
}

TEST_F(EngineHooks, TheBreakerIsToldWhenItOpensAndWhenItCloses) {
  set_hook(HookKind::on_failure);
  break_hook(2);
  notices();
  break_hook(1);
  const Names opened = notices();
  ASSERT_THAT(opened, SizeIs(1));
  EXPECT_THAT(opened[0], HasSubstr("3 times in a row"));
  EXPECT_THAT(opened[0], HasSubstr("10s"));
  EXPECT_THAT(opened[0], HasSubstr("line 1: no"));
  pass(10s);
  ASSERT_TRUE(fail_with(claimed(1).at(0), give_up()));
  EXPECT_THAT(notices(), ElementsAre(HasSubstr("its breaker is closed")));
}

TEST_F(EngineHooks, WhatWasNotAskedIsNotTold) {
  set_hook(HookKind::on_failure);
  break_hook(3);
  notices();
  pass(5s);
  ASSERT_TRUE(fail(claimed(1).at(0)));
  EXPECT_THAT(notices(), IsEmpty());
}

// --- The end.

TEST_F(EngineHooks, WhoeverWaitsWhenItStopsIsTold) {
  configure(with_hook(HookKind::on_failure));
  push_many({"a", "b"});
  const auto jobs = claim(2);
  std::vector<FailItem> items = {{.token = jobs[0].token}, {.token = jobs[1].token, .final = true}};
  ASSERT_FALSE(engine_->fail(7, items, now()));
  configure(with_hook(HookKind::on_failure, with_hook(HookKind::on_enqueue)));
  const RequestId pushed = start_push({"c"});
  work();
  engine_->give_up_hook_calls({Errc::shutting_down, "the server is stopping"});
  const auto failed = fail_answers().at(7);
  EXPECT_EQ(failed.at(0).error().code, Errc::shutting_down);
  EXPECT_EQ(failed.at(1)->reason, DeathReason::final) << "that has happened";
  EXPECT_EQ(push_answers().at(pushed).error().code, Errc::shutting_down);
  restart();
  EXPECT_EQ(counts(), (Counts{.active = 1, .dead = 1}));
}

}  // namespace
}  // namespace reprise
