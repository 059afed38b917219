// A hook's script and a message to try it with, in the test's own process: limits hold, but there
// is no sandbox and nobody kills what does not end.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "hooks/host/script.h"
#include "hooks/protocol.h"

namespace reprise::test {

class HookScript {
 public:
  explicit HookScript(HookKind hook) : hook_(hook) {
    // Time is not what most tests are about, and machines that test are busy; instructions go with
    // it, though, so tests that spend them all have less.
    limits.timeout = std::chrono::seconds(1);
    job.priority = 1000;
  }

  HookLimits limits;
  hooks::ConfigValues config;
  JobRecord job;
  HookMessage message;
  bool with_payloads = true;

  // Why the script cannot be used; empty: it can.
  std::string load(std::string_view source) {
    auto loaded = hooks::Script::load(
        {.hook = hook_, .queue = "orders", .limits = limits, .random_seed = 7}, source, config);
    if (!loaded) {
      EXPECT_EQ(loaded.error().code, Errc::invalid_script);
      return loaded.error().detail;
    }
    script_ = std::move(*loaded);
    return "";
  }
  hooks::CallResult call() {
    message.job = std::make_shared<JobRecord>(job);
    std::string bytes;
    hooks::append_frame(
        bytes,
        hooks::RunBatch{.hook = hook_, .with_payloads = with_payloads, .messages = {message}});
    std::string_view in = bytes;
    auto frame = hooks::take_frame(in);
    auto decoded = hooks::decode_to_host(**frame);
    auto& batch = std::get<hooks::BatchView>(*decoded);
    auto result =
        script_->call(batch.messages.at(0), with_payloads, hooks::monotonic_nanoseconds());
    script_->tidy();
    return result;
  }
  // Loads it and calls it once.
  hooks::CallOutcome outcome(std::string_view source) {
    const std::string problem = load(source);
    EXPECT_EQ(problem, "");
    if (!problem.empty()) return HookFailure{};
    return call().outcome;
  }

 private:
  const HookKind hook_;
  std::unique_ptr<hooks::Script> script_;
};

// The reason that on_failure gave, as a way to look at a value: `expression` is Lua, and tostring()
// is applied.
inline std::string value_of(HookScript& script, std::string_view expression,
                            std::string_view before = "") {
  const auto outcome = script.outcome(std::string(before) +
                                      "\nfunction on_failure(msg) return {action='dlq', reason="
                                      "tostring(" +
                                      std::string(expression) + ")} end");
  if (const auto* verdict = std::get_if<FailureVerdict>(&outcome)) return verdict->reason;
  if (const auto* failure = std::get_if<HookFailure>(&outcome)) {
    return std::string(hook_fault_name(failure->fault)) + ": " + failure->message;
  }
  return "needs payload";
}
inline std::string value_of(std::string_view expression, std::string_view before = "") {
  HookScript script(HookKind::on_failure);
  return value_of(script, expression, before);
}

// "fault: message", or "" for an answer.
inline std::string fault_of(const hooks::CallOutcome& outcome) {
  const auto* failure = std::get_if<HookFailure>(&outcome);
  if (failure == nullptr) return "";
  return std::string(hook_fault_name(failure->fault)) + ": " + failure->message;
}

}  // namespace reprise::test
