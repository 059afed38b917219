#include "model/hook.h"

#include <gtest/gtest.h>

#include "model/limits.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;

TEST(HookVersion, IsTheFrontOfTheSha256) {
  EXPECT_EQ(hook_version("abc"), "ba7816bf8f01");
  EXPECT_EQ(hook_version(""), "e3b0c44298fc");
  EXPECT_NE(hook_version("abc\n"), hook_version("abc"));
}

TEST(HookNames, AreThoseOfThePages) {
  EXPECT_EQ(hook_name(HookKind::on_enqueue), "on_enqueue");
  EXPECT_EQ(hook_name(HookKind::on_failure), "on_failure");
  EXPECT_EQ(hook_fault_name(HookFault::error), "error");
  EXPECT_EQ(hook_fault_name(HookFault::timeout), "timeout");
  EXPECT_EQ(hook_fault_name(HookFault::memory), "memory");
  EXPECT_EQ(hook_fault_name(HookFault::invalid_result), "invalid_result");
  EXPECT_EQ(hook_fault_name(HookFault::host_lost), "host_lost");
  EXPECT_EQ(hook_fault_name(HookFault::breaker_open), "breaker_open");
  EXPECT_EQ(breaker_state_name(BreakerState::closed), "closed");
  EXPECT_EQ(breaker_state_name(BreakerState::open), "open");
  EXPECT_EQ(breaker_state_name(BreakerState::trial), "trial");
}

TEST(HookNames, OfWhatIsDoneWithoutAnAnswerReadBack) {
  for (const OnHookError what : {OnHookError::retry, OnHookError::policy, OnHookError::dlq}) {
    EXPECT_EQ(on_hook_error_from_name(on_hook_error_name(what)), what);
  }
  EXPECT_EQ(on_hook_error_from_name("Retry"), std::nullopt);
  EXPECT_EQ(on_hook_error_from_name(""), std::nullopt);
}

TEST(HookLimits, AreTheQueuesOrElseTheServers) {
  const Limits server{.hook_timeout_ms = 7, .hook_memory_bytes = 1 << 22};
  EXPECT_EQ(hook_limits({}, server), (HookLimits{.timeout = 7ms, .memory_bytes = 1 << 22}));
  EXPECT_EQ(hook_limits({.hook_timeout_ms = 50, .hook_memory_bytes = 1 << 20}, server),
            (HookLimits{.timeout = 50ms, .memory_bytes = 1 << 20}));
}

TEST(EnqueueVerdict, ChangesWhatItNames) {
  Scheduling scheduling{.fairness_key = "a", .weight = 2, .throttle_keys = {"t"}};
  apply_verdict(scheduling, {});
  EXPECT_EQ(scheduling, (Scheduling{.fairness_key = "a", .weight = 2, .throttle_keys = {"t"}}));
  apply_verdict(scheduling, {.fairness_key = "b", .throttle_keys = std::vector<std::string>{}});
  EXPECT_EQ(scheduling, (Scheduling{.fairness_key = "b", .weight = 2, .throttle_keys = {}}));
  apply_verdict(scheduling, {.weight = 9});
  EXPECT_EQ(scheduling.weight, 9U);
}

TEST(EnqueueVerdict, NamesEachThrottleOnce) {
  Scheduling scheduling{.throttle_keys = {"old"}};
  apply_verdict(scheduling, {.throttle_keys = std::vector<std::string>{"b", "a", "b", "a", "c"}});
  EXPECT_EQ(scheduling.throttle_keys, (std::vector<std::string>{"b", "a", "c"}));
}

TEST(DeathText, IsTheHooksOwnWhereItGaveAny) {
  JobState dead{.death_reason = DeathReason::hook, .decided_by = DecidedBy::hook};
  dead.hook_version = "ba7816bf8f01";
  EXPECT_EQ(death_reason_text(dead), "hook");
  EXPECT_EQ(decided_by_text(dead), "hook:ba7816bf8f01");
  dead.death_note = "card expired";
  EXPECT_EQ(death_reason_text(dead), "card expired");
  const JobState given_up{.death_reason = DeathReason::hook_error};
  EXPECT_EQ(death_reason_text(given_up), "hook_error");
  EXPECT_EQ(decided_by_text(given_up), "policy");
  EXPECT_EQ(death_reason_from_name("hook"), DeathReason::hook);
  EXPECT_EQ(death_reason_from_name("hook_error"), DeathReason::hook_error);
}

}  // namespace
}  // namespace reprise
