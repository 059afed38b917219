// The runner with the real thing: Lua in processes that are locked in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "hooks/hook_runner.h"

namespace reprise::hooks {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string text_of(const HookOutcome& outcome) {
  if (const auto* failure = std::get_if<HookFailure>(&outcome)) {
    return std::string(hook_fault_name(failure->fault)) + ": " + failure->message;
  }
  if (const auto* verdict = std::get_if<FailureVerdict>(&outcome)) {
    return verdict->retry ? "retry " + std::to_string(verdict->delay / 1ms)
                          : "dead " + verdict->reason;
  }
  return "fairness key " + std::get<EnqueueVerdict>(outcome).fairness_key.value_or("none");
}

class HookRunnerLuaTest : public testing::Test {
 protected:
  // One text for each error that the script is told of; or the problem of the script.
  std::vector<std::string> decide(std::string source, const std::vector<std::string>& errors,
                                  HookKind hook = HookKind::on_failure) {
    ScriptTrial trial{.queue = {.name = "orders"},
                      .hook = hook,
                      .source = std::move(source),
                      .limits = {.timeout = 50ms}};
    auto record = std::make_shared<JobRecord>();
    record->payload = R"({"tenant": "acme"})";
    for (const std::string& error : errors) {
      trial.messages.push_back({.job = record, .failures = 2, .error = error});
    }
    std::promise<Result<std::vector<TrialResult>>> promise;
    runner->try_script(std::move(trial),
                       [&](auto result) { promise.set_value(std::move(result)); });
    const auto result = promise.get_future().get();
    if (!result) {
      return {std::string(errc_info(result.error().code).wire_name) + ": " + result.error().detail};
    }
    std::vector<std::string> texts;
    for (const TrialResult& each : *result) texts.push_back(text_of(each.outcome));
    return texts;
  }
  std::unique_ptr<HookRunner> runner = HookRunner::start({});
};

TEST_F(HookRunnerLuaTest, AScriptDecides) {
  EXPECT_THAT(decide(R"(
      function on_failure(msg)
        if msg.error:find("invalid card", 1, true) then
          return { action = "dlq", reason = "permanent" }
        end
        return { delay_ms = backoff(msg.failures, 1000, 600000) }
      end)",
                     {"timeout", "invalid card 4"}),
              ElementsAre("retry 2000", "dead permanent"));
}

TEST_F(HookRunnerLuaTest, APayloadIsThereForThoseWhoWantIt) {
  EXPECT_THAT(decide(R"(
      function on_enqueue(msg)
        return { fairness_key = json.decode(msg["pay" .. "load"]).tenant }
      end)",
                     {""}, HookKind::on_enqueue),
              ElementsAre("fairness key acme"));
}

TEST_F(HookRunnerLuaTest, ConfigIsThereWhileAScriptIsLoaded) {
  runner->submit({ConfigChange{.ns = "default", .key = "most", .value = "3"}});
  EXPECT_THAT(decide(R"(
      local most = config.get("most") + 4
      function on_failure(msg) return { delay_ms = most } end)",
                     {""}),
              ElementsAre("retry 7"));
}

TEST_F(HookRunnerLuaTest, AProblemNamesHookAndLine) {
  EXPECT_THAT(decide("local x = 1\nfunction on_failure(msg", {}),
              ElementsAre(StartsWith("invalid_script: on_failure: line 2: ")));
}

TEST_F(HookRunnerLuaTest, WhatLoopsIsStoppedOneWayOrAnother) {
  const auto decided = decide(R"(
      function on_failure(msg)
        if msg.error == "loop" then while true do end end
        if msg.error == "find" then
          -- One instruction of Lua and years of matching.
          return { reason = string.rep("a", 50000):find(string.rep(".-", 12) .. "b") }
        end
        return {}
      end)",
                              {"", "loop", "find", ""});
  ASSERT_EQ(decided.size(), 4U);
  EXPECT_EQ(decided[0], "retry 0");
  EXPECT_THAT(decided[1], testing::AnyOf(StartsWith("error: "), StartsWith("timeout: ")));
  EXPECT_THAT(decided[2], StartsWith("timeout: "));
  EXPECT_EQ(decided[3], "retry 0");
}

}  // namespace
}  // namespace reprise::hooks
