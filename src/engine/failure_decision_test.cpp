#include "engine/failure_decision.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

using namespace std::chrono_literals;

constexpr Timestamp kNow{1000s};
constexpr RetryPolicy kThreeAttempts{.attempts = 3, .wait = 30s};

Random& random() {
  static SeededRandom seeded{1};
  return seeded;
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
    expect_retry(decide_failure(kThreeAttempts, {}, failures, random(), kNow), kNow + 30s,
                 DecidedBy::policy);
  }
}

TEST(FailureDecision, GivesUpAtTheCap) {
  expect_death(decide_failure(kThreeAttempts, {}, 3, random(), kNow), DeathReason::max_attempts,
               DecidedBy::policy);
}

// The policy may have been edited below what a job has already failed.
TEST(FailureDecision, GivesUpBeyondTheCap) {
  expect_death(decide_failure(kThreeAttempts, {}, 10, random(), kNow), DeathReason::max_attempts,
               DecidedBy::policy);
}

TEST(FailureDecision, WithoutAPolicyTheFirstFailureIsTheLast) {
  for (const std::uint32_t attempts : {0U, 1U}) {
    expect_death(decide_failure({.attempts = attempts, .wait = 30s}, {}, 1, random(), kNow),
                 DeathReason::max_attempts, DecidedBy::policy);
  }
}

TEST(FailureDecision, TheClientsFinalComesFirst) {
  const Failure failure{.final = true, .delay = 1min};
  expect_death(decide_failure(kThreeAttempts, failure, 1, random(), kNow), DeathReason::final,
               DecidedBy::client);
  expect_death(decide_failure(kThreeAttempts, failure, 3, random(), kNow), DeathReason::final,
               DecidedBy::client);
}

TEST(FailureDecision, TheClientsDelayReplacesTheCooldown) {
  for (const Duration delay : {Duration(0), Duration(5min)}) {
    expect_retry(decide_failure(kThreeAttempts, {.delay = delay}, 1, random(), kNow), kNow + delay,
                 DecidedBy::client);
  }
}

TEST(FailureDecision, TheClientsDelayDoesNotLiftTheCap) {
  expect_death(decide_failure(kThreeAttempts, {.delay = 5min}, 3, random(), kNow),
               DeathReason::max_attempts, DecidedBy::policy);
  expect_death(decide_failure({}, {.delay = 5min}, 1, random(), kNow), DeathReason::max_attempts,
               DecidedBy::policy);
}

TEST(FailureDecision, AnExpiredLeaseTakesTheSameRoadWithItsOwnReason) {
  const Failure silent{.outcome = AttemptOutcome::lease_expired};
  expect_retry(decide_failure(kThreeAttempts, silent, 2, random(), kNow), kNow + 30s,
               DecidedBy::policy);
  expect_death(decide_failure(kThreeAttempts, silent, 3, random(), kNow),
               DeathReason::lease_expired, DecidedBy::policy);
  expect_death(decide_failure({}, silent, 1, random(), kNow), DeathReason::lease_expired,
               DecidedBy::policy);
}

TEST(FailureDecision, TimesBeyondTheCalendarAreNever) {
  expect_retry(decide_failure({.attempts = 2, .wait = Duration::max()}, {}, 1, random(), kNow),
               kNever, DecidedBy::policy);
  expect_retry(decide_failure(kThreeAttempts, {.delay = Duration::max()}, 1, random(), kNow),
               kNever, DecidedBy::client);
}

TEST(FailureDecision, AWorkerThatWasLostIsTheReasonAtTheCap) {
  const Failure lost{.outcome = AttemptOutcome::worker_lost};
  expect_death(decide_failure(kThreeAttempts, lost, 3, random(), kNow), DeathReason::worker_lost,
               DecidedBy::policy);
}

TEST(FailureDecision, WaitsGrowWithTheBackoff) {
  const RetryPolicy policy{.attempts = 4, .wait = Backoff{}};
  for (const auto& [failures, wait] : {std::pair{1U, 1s}, {2U, 4s}, {3U, 16s}}) {
    expect_retry(decide_failure(policy, {}, failures, random(), kNow), kNow + wait,
                 DecidedBy::policy);
  }
}

TEST(FailureDecision, JitterSpreadsTheWaitOverItsWholeRange) {
  const RetryPolicy policy{.attempts = std::nullopt,
                           .wait = Backoff{.base = 10s, .factor = 1, .jitter = 0.5}};
  Duration shortest = Duration::max();
  Duration longest{};
  for (int i = 0; i < 1000; ++i) {
    const Duration wait = decide_failure(policy, {}, 1, random(), kNow).retry_at - kNow;
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
  expect_retry(decide_failure(policy, {}, 4'000'000'000U, random(), kNow), kNow + 1s,
               DecidedBy::policy);
}

}  // namespace
}  // namespace reprise
