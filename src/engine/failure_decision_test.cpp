#include "engine/failure_decision.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

using namespace std::chrono_literals;

constexpr Timestamp kNow{1000s};
constexpr RetryPolicy kThreeAttempts{.attempts = 3, .cooldown = 30s};

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
    expect_retry(decide_failure(kThreeAttempts, {}, failures, kNow), kNow + 30s, DecidedBy::policy);
  }
}

TEST(FailureDecision, GivesUpAtTheCap) {
  expect_death(decide_failure(kThreeAttempts, {}, 3, kNow), DeathReason::max_attempts,
               DecidedBy::policy);
}

// The policy may have been edited below what a job has already failed.
TEST(FailureDecision, GivesUpBeyondTheCap) {
  expect_death(decide_failure(kThreeAttempts, {}, 10, kNow), DeathReason::max_attempts,
               DecidedBy::policy);
}

TEST(FailureDecision, WithoutAPolicyTheFirstFailureIsTheLast) {
  for (const std::uint32_t attempts : {0U, 1U}) {
    expect_death(decide_failure({.attempts = attempts, .cooldown = 30s}, {}, 1, kNow),
                 DeathReason::max_attempts, DecidedBy::policy);
  }
}

TEST(FailureDecision, TheClientsFinalComesFirst) {
  const Failure failure{.final = true, .delay = 1min};
  expect_death(decide_failure(kThreeAttempts, failure, 1, kNow), DeathReason::final,
               DecidedBy::client);
  expect_death(decide_failure(kThreeAttempts, failure, 3, kNow), DeathReason::final,
               DecidedBy::client);
}

TEST(FailureDecision, TheClientsDelayReplacesTheCooldown) {
  for (const Duration delay : {Duration(0), Duration(5min)}) {
    expect_retry(decide_failure(kThreeAttempts, {.delay = delay}, 1, kNow), kNow + delay,
                 DecidedBy::client);
  }
}

TEST(FailureDecision, TheClientsDelayDoesNotLiftTheCap) {
  expect_death(decide_failure(kThreeAttempts, {.delay = 5min}, 3, kNow), DeathReason::max_attempts,
               DecidedBy::policy);
  expect_death(decide_failure({}, {.delay = 5min}, 1, kNow), DeathReason::max_attempts,
               DecidedBy::policy);
}

TEST(FailureDecision, AnExpiredLeaseTakesTheSameRoadWithItsOwnReason) {
  const Failure silent{.outcome = AttemptOutcome::lease_expired};
  expect_retry(decide_failure(kThreeAttempts, silent, 2, kNow), kNow + 30s, DecidedBy::policy);
  expect_death(decide_failure(kThreeAttempts, silent, 3, kNow), DeathReason::lease_expired,
               DecidedBy::policy);
  expect_death(decide_failure({}, silent, 1, kNow), DeathReason::lease_expired, DecidedBy::policy);
}

TEST(FailureDecision, TimesBeyondTheCalendarAreNever) {
  expect_retry(decide_failure({.attempts = 2, .cooldown = Duration::max()}, {}, 1, kNow), kNever,
               DecidedBy::policy);
  expect_retry(decide_failure(kThreeAttempts, {.delay = Duration::max()}, 1, kNow), kNever,
               DecidedBy::client);
}

}  // namespace
}  // namespace reprise
