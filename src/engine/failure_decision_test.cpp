#include "engine/failure_decision.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

using namespace std::chrono_literals;

constexpr Timestamp kNow{1000s};
constexpr RetryPolicy kThreeAttempts{.attempts = 3, .wait = 30s};

// Of a queue without hooks.
Decision by_policy(const RetryPolicy& policy, const Failure& failure, std::uint32_t failures) {
  static SeededRandom random{1};
  return decide_failure({.retry = policy}, failure, failures, nullptr, random, kNow);
}

void expect_retry(const Decision& decision, Timestamp at, DecidedBy decided_by) {
  EXPECT_TRUE(decision.retry);
  EXPECT_EQ(decision.retry_at, at);
  EXPECT_EQ(decision.reason, DeathReason::none);
  EXPECT_EQ(decision.decided_by, decided_by);
}

void expect_death(const Decision& decision, DeathReason reason, DecidedBy decided_by) {
  EXPECT_FALSE(decision.retry);
  EXPECT_EQ(decision.reason, reason);
  EXPECT_EQ(decision.decided_by, decided_by);
}

TEST(FailureDecision, RetriesAfterTheCooldownBelowTheCap) {
  for (const std::uint32_t failures : {1U, 2U}) {
    expect_retry(by_policy(kThreeAttempts, {}, failures), kNow + 30s, DecidedBy::policy);
  }
}

TEST(FailureDecision, GivesUpAtTheCap) {
  expect_death(by_policy(kThreeAttempts, {}, 3), DeathReason::max_attempts, DecidedBy::policy);
}

// The policy may have been edited below what a job has already failed.
TEST(FailureDecision, GivesUpBeyondTheCap) {
  expect_death(by_policy(kThreeAttempts, {}, 10), DeathReason::max_attempts, DecidedBy::policy);
}

TEST(FailureDecision, WithoutAPolicyTheFirstFailureIsTheLast) {
  for (const std::uint32_t attempts : {0U, 1U}) {
    expect_death(by_policy({.attempts = attempts, .wait = 30s}, {}, 1), DeathReason::max_attempts,
                 DecidedBy::policy);
  }
}

TEST(FailureDecision, TheClientsFinalComesFirst) {
  const Failure failure{.final = true, .delay = 1min};
  expect_death(by_policy(kThreeAttempts, failure, 1), DeathReason::final, DecidedBy::client);
  expect_death(by_policy(kThreeAttempts, failure, 3), DeathReason::final, DecidedBy::client);
}

TEST(FailureDecision, TheClientsDelayReplacesTheCooldown) {
  for (const Duration delay : {Duration(0), Duration(5min)}) {
    expect_retry(by_policy(kThreeAttempts, {.delay = delay}, 1), kNow + delay, DecidedBy::client);
  }
}

TEST(FailureDecision, TheClientsDelayDoesNotLiftTheCap) {
  expect_death(by_policy(kThreeAttempts, {.delay = 5min}, 3), DeathReason::max_attempts,
               DecidedBy::policy);
  expect_death(by_policy({}, {.delay = 5min}, 1), DeathReason::max_attempts, DecidedBy::policy);
}

TEST(FailureDecision, AnExpiredLeaseTakesTheSameRoadWithItsOwnReason) {
  const Failure silent{.outcome = AttemptOutcome::lease_expired};
  expect_retry(by_policy(kThreeAttempts, silent, 2), kNow + 30s, DecidedBy::policy);
  expect_death(by_policy(kThreeAttempts, silent, 3), DeathReason::lease_expired, DecidedBy::policy);
  expect_death(by_policy({}, silent, 1), DeathReason::lease_expired, DecidedBy::policy);
}

TEST(FailureDecision, TimesBeyondTheCalendarAreNever) {
  expect_retry(by_policy({.attempts = 2, .wait = Duration::max()}, {}, 1), kNever,
               DecidedBy::policy);
  expect_retry(by_policy(kThreeAttempts, {.delay = Duration::max()}, 1), kNever, DecidedBy::client);
}

TEST(FailureDecision, AWorkerThatWasLostIsTheReasonAtTheCap) {
  const Failure lost{.outcome = AttemptOutcome::worker_lost};
  expect_death(by_policy(kThreeAttempts, lost, 3), DeathReason::worker_lost, DecidedBy::policy);
}

TEST(FailureDecision, WaitsGrowWithTheBackoff) {
  const RetryPolicy policy{.attempts = 4, .wait = Backoff{}};
  for (const auto& [failures, wait] : {std::pair{1U, 1s}, {2U, 4s}, {3U, 16s}}) {
    expect_retry(by_policy(policy, {}, failures), kNow + wait, DecidedBy::policy);
  }
}

TEST(FailureDecision, JitterSpreadsTheWaitOverItsWholeRange) {
  const RetryPolicy policy{.attempts = std::nullopt,
                           .wait = Backoff{.base = 10s, .factor = 1, .jitter = 0.5}};
  Duration shortest = Duration::max();
  Duration longest{};
  for (int i = 0; i < 1000; ++i) {
    const Duration wait = by_policy(policy, {}, 1).retry_at - kNow;
    shortest = std::min(shortest, wait);
    longest = std::max(longest, wait);
  }
  EXPECT_GE(shortest, 5s);
  EXPECT_LT(shortest, 5500ms);
  EXPECT_LE(longest, 15s);
  EXPECT_GT(longest, 14500ms);
}

TEST(FailureDecision, UnlimitedNeverGivesUpByItself) {
  const RetryPolicy policy{.attempts = std::nullopt, .wait = 1s};
  expect_retry(by_policy(policy, {}, 4'000'000'000U), kNow + 1s, DecidedBy::policy);
}

// --- With a hook.

QueueConfig hooked(const RetryPolicy& policy = {}, OnHookError on_hook_error = OnHookError::retry) {
  QueueConfig config{.retry = policy, .on_hook_error = on_hook_error};
  config.hooks[static_cast<std::size_t>(HookKind::on_failure)] = "a script";
  return config;
}

Decision by_hook(const QueueConfig& config, const HookOutcome& outcome, std::uint32_t failures = 1,
                 const Failure& failure = {}) {
  static SeededRandom random{1};
  return decide_failure(config, failure, failures, &outcome, random, kNow);
}

TEST(HookDecision, IsAskedForWhereNothingComesBeforeIt) {
  EXPECT_TRUE(hook_has_a_say(hooked(), {}, 1));
  EXPECT_TRUE(hook_has_a_say(hooked(), {}, 4'000'000'000U)) << "no cap is configured";
  EXPECT_TRUE(hook_has_a_say(hooked(kThreeAttempts), {}, 2));
  EXPECT_TRUE(hook_has_a_say(hooked({.attempts = std::nullopt}), {}, 1000));
  EXPECT_FALSE(hook_has_a_say({}, {}, 1)) << "there is none";
  EXPECT_FALSE(hook_has_a_say(hooked(), {.final = true}, 1));
  EXPECT_FALSE(hook_has_a_say(hooked(), {.delay = 0s}, 1));
  EXPECT_FALSE(hook_has_a_say(hooked(kThreeAttempts), {}, 3));
  EXPECT_FALSE(hook_has_a_say(hooked({.attempts = 1}), {}, 1));
  QueueConfig other;
  other.hooks[static_cast<std::size_t>(HookKind::on_enqueue)] = "a script";
  EXPECT_FALSE(hook_has_a_say(other, {}, 1));
}

TEST(HookDecision, RetriesWhenItSays) {
  expect_retry(by_hook(hooked(), FailureVerdict{.delay = 5s}), kNow + 5s, DecidedBy::hook);
  expect_retry(by_hook(hooked(), FailureVerdict{.delay = Duration::max()}), kNever,
               DecidedBy::hook);
}

TEST(HookDecision, GivesUpInItsWords) {
  const Decision decision = by_hook(hooked(), FailureVerdict{.retry = false, .reason = "why"});
  expect_death(decision, DeathReason::hook, DecidedBy::hook);
  EXPECT_EQ(decision.note, "why");
}

TEST(HookDecision, DoesNotLiftTheCapNorTheClientsWord) {
  const HookOutcome retry = FailureVerdict{};
  expect_death(by_hook(hooked(kThreeAttempts), retry, 3), DeathReason::max_attempts,
               DecidedBy::policy);
  expect_death(by_hook(hooked(), retry, 1, {.final = true}), DeathReason::final, DecidedBy::client);
  expect_retry(by_hook(hooked(), retry, 1, {.delay = 5min}), kNow + 5min, DecidedBy::client);
}

TEST(HookDecision, WithoutAnAnswerIsTheQueues) {
  const HookOutcome silent = HookFailure{HookFault::timeout, "too slow"};
  expect_retry(by_hook(hooked(kThreeAttempts), silent), kNow, DecidedBy::policy);
  expect_retry(by_hook(hooked(kThreeAttempts, OnHookError::policy), silent), kNow + 30s,
               DecidedBy::policy);
  const Decision dead = by_hook(hooked(kThreeAttempts, OnHookError::dlq), silent);
  expect_death(dead, DeathReason::hook_error, DecidedBy::policy);
  EXPECT_EQ(dead.note, "");
}

TEST(HookDecision, WithoutAnAnswerTheCapStillEndsIt) {
  const HookOutcome silent = HookFailure{HookFault::breaker_open, ""};
  for (const OnHookError what : {OnHookError::retry, OnHookError::policy, OnHookError::dlq}) {
    expect_death(by_hook(hooked(kThreeAttempts, what), silent, 3), DeathReason::max_attempts,
                 DecidedBy::policy);
  }
  expect_retry(by_hook(hooked(), silent, 1000), kNow, DecidedBy::policy);
  expect_death(by_hook(hooked({}, OnHookError::policy), silent), DeathReason::max_attempts,
               DecidedBy::policy);
}

TEST(HookDecision, OfADelayWithoutACapIsTheClients) {
  SeededRandom random{1};
  expect_retry(decide_failure(hooked(), {.delay = 5min}, 7, nullptr, random, kNow), kNow + 5min,
               DecidedBy::client);
}

}  // namespace
}  // namespace reprise
