#include "hooks/host/verdict.h"

#include <gtest/gtest.h>

#include "support/hook_script.h"

namespace reprise::hooks {
namespace {

using std::chrono::milliseconds;
using test::fault_of;
using test::HookScript;

CallOutcome on_failure(const std::string& returned) {
  return HookScript(HookKind::on_failure)
      .outcome("function on_failure(msg) return " + returned + " end");
}
CallOutcome on_enqueue(const std::string& returned) {
  return HookScript(HookKind::on_enqueue)
      .outcome("function on_enqueue(msg) return " + returned + " end");
}
std::string failure_problem(const std::string& returned) { return fault_of(on_failure(returned)); }
std::string enqueue_problem(const std::string& returned) { return fault_of(on_enqueue(returned)); }

TEST(FailureVerdict, RetriesAtOnceUnlessToldOtherwise) {
  const CallOutcome at_once = FailureVerdict{};
  for (const char* returned : {"{}", "{action = 'retry'}", "{action = 'retry', delay_ms = 0}",
                               "{delay_ms = -0.0}", "{}, 1"}) {
    EXPECT_EQ(on_failure(returned), at_once) << returned;
  }
}

TEST(FailureVerdict, WaitsForAnyNumberOfMilliseconds) {
  EXPECT_EQ(std::get<FailureVerdict>(on_failure("{delay_ms = 1500}")).delay, milliseconds(1500));
  EXPECT_EQ(std::get<FailureVerdict>(on_failure("{delay_ms = 0.5}")).delay, Duration(500));
  EXPECT_EQ(std::get<FailureVerdict>(on_failure("{delay_ms = 31536000000}")).delay, kMaxHookDelay);
}

TEST(FailureVerdict, DiesWithOrWithoutAReason) {
  EXPECT_EQ(on_failure("{action = 'dlq'}"), CallOutcome(FailureVerdict{.retry = false}));
  EXPECT_EQ(on_failure("{action = 'dlq', reason = 'permanent'}"),
            CallOutcome(FailureVerdict{.retry = false, .reason = "permanent"}));
  EXPECT_EQ(
      std::get<FailureVerdict>(on_failure("{action = 'dlq', reason = ('x'):rep(200)}")).reason,
      std::string(200, 'x'));
}

TEST(FailureVerdict, WhatDoesNotApplyIsCheckedAndForgotten) {
  EXPECT_EQ(on_failure("{action = 'dlq', delay_ms = 5}"),
            CallOutcome(FailureVerdict{.retry = false}));
  EXPECT_EQ(on_failure("{reason = 'unused'}"), CallOutcome(FailureVerdict{}));
  EXPECT_NE(failure_problem("{reason = 5}"), "");
}

TEST(FailureVerdict, MustBeATable) {
  EXPECT_EQ(failure_problem(""), "invalid_result: on_failure returned nil, expected a table");
  EXPECT_EQ(failure_problem("nil"), "invalid_result: on_failure returned nil, expected a table");
  EXPECT_EQ(failure_problem("'retry'"),
            "invalid_result: on_failure returned a string, expected a table");
  EXPECT_EQ(failure_problem("5"), "invalid_result: on_failure returned 5, expected a table");
  EXPECT_EQ(failure_problem("true"), "invalid_result: on_failure returned true, expected a table");
  EXPECT_EQ(failure_problem("on_failure"),
            "invalid_result: on_failure returned a function, expected a table");
  EXPECT_EQ(failure_problem("json.null"),
            "invalid_result: on_failure returned a userdata, expected a table");
}

TEST(FailureVerdict, UnknownFieldsAreNamed) {
  EXPECT_EQ(failure_problem("{delay = 5}"),
            "invalid_result: unknown field 'delay'; did you mean 'delay_ms'?");
  EXPECT_EQ(failure_problem("{weight = 5}"), "invalid_result: unknown field 'weight'");
  EXPECT_EQ(failure_problem("{'retry'}"), "invalid_result: unknown field [1]");
  EXPECT_EQ(failure_problem("{[0.5] = 1}"), "invalid_result: unknown field [0.5]");
  EXPECT_EQ(failure_problem("{[{}] = 1}"), "invalid_result: unknown field [a table]");
  EXPECT_EQ(failure_problem("{['\\xff\\n'] = 1}"), "invalid_result: unknown field '\xEF\xBF\xBD '");
  EXPECT_EQ(failure_problem("{[('x'):rep(500)] = 1}").size(),
            std::string("invalid_result: unknown field ''").size() + 100);
}

TEST(FailureVerdict, NumbersHaveBounds) {
  const std::string rule = "invalid_result: delay_ms must be a number from 0 to 31536000000, not ";
  EXPECT_EQ(failure_problem("{delay_ms = -1}"), rule + "-1");
  EXPECT_EQ(failure_problem("{delay_ms = 31536000001}"), rule + "31536000001");
  EXPECT_EQ(failure_problem("{delay_ms = 0/0}").substr(0, rule.size()), rule);
  EXPECT_EQ(failure_problem("{delay_ms = 1/0}"), rule + "inf");
  EXPECT_EQ(failure_problem("{delay_ms = -1/0}"), rule + "-inf");
  EXPECT_EQ(failure_problem("{delay_ms = 1e300}"), rule + "1e+300");
  EXPECT_EQ(failure_problem("{delay_ms = math.mininteger}"), rule + "-9223372036854775808");
  EXPECT_EQ(failure_problem("{delay_ms = '5'}"), rule + "a string");
  EXPECT_EQ(failure_problem("{delay_ms = {}}"), rule + "a table");
  EXPECT_EQ(failure_problem("{delay_ms = true}"), rule + "true");
}

TEST(FailureVerdict, TextsHaveBounds) {
  EXPECT_EQ(failure_problem("{action = 'dead'}"),
            "invalid_result: action must be \"retry\" or \"dlq\", not \"dead\"");
  EXPECT_EQ(failure_problem("{action = 1}"),
            "invalid_result: action must be \"retry\" or \"dlq\", not 1");
  EXPECT_EQ(failure_problem("{action = false}"),
            "invalid_result: action must be \"retry\" or \"dlq\", not false");
  EXPECT_EQ(failure_problem("{action = 'dlq', reason = ('x'):rep(201)}"),
            "invalid_result: reason has 201 bytes, at most 200 are allowed");
  EXPECT_EQ(failure_problem("{action = 'dlq', reason = '\\xff'}"),
            "invalid_result: reason is not valid UTF-8");
  EXPECT_EQ(failure_problem("{action = 'dlq', reason = 5}"),
            "invalid_result: reason must be a string, not 5");
}

TEST(EnqueueVerdict, NamesWhatItWants) {
  EXPECT_EQ(on_enqueue("{}"), CallOutcome(EnqueueVerdict{}));
  EXPECT_EQ(on_enqueue("{fairness_key = 'acme', weight = 10, throttle_keys = {'api', 'c:1'}}"),
            CallOutcome(EnqueueVerdict{.fairness_key = "acme",
                                       .weight = 10,
                                       .throttle_keys = std::vector<std::string>{"api", "c:1"}}));
  EXPECT_EQ(on_enqueue("{weight = 3.0}"), CallOutcome(EnqueueVerdict{.weight = 3}));
  EXPECT_EQ(on_enqueue("{throttle_keys = {}}"),
            CallOutcome(EnqueueVerdict{.throttle_keys = std::vector<std::string>{}}));
  EXPECT_EQ(on_enqueue("{throttle_keys = json.array({})}"),
            CallOutcome(EnqueueVerdict{.throttle_keys = std::vector<std::string>{}}));
  EXPECT_EQ(on_enqueue("{reject = 'no'}"), CallOutcome(EnqueueVerdict{.reject = "no"}));
}

TEST(EnqueueVerdict, HasBounds) {
  EXPECT_EQ(enqueue_problem("{fairness_key = ''}"),
            "invalid_result: fairness_key must not be empty");
  EXPECT_EQ(enqueue_problem("{fairness_key = ('k'):rep(201)}"),
            "invalid_result: fairness_key has 201 bytes, at most 200 are allowed");
  EXPECT_EQ(enqueue_problem("{fairness_key = '\\xff'}"),
            "invalid_result: fairness_key is not valid UTF-8");
  EXPECT_EQ(enqueue_problem("{fairness_key = 7}"),
            "invalid_result: fairness_key must be a string, not 7");
  const std::string rule = "invalid_result: weight must be a whole number from 1 to 1000, not ";
  EXPECT_EQ(enqueue_problem("{weight = 0}"), rule + "0");
  EXPECT_EQ(enqueue_problem("{weight = 1001}"), rule + "1001");
  EXPECT_EQ(enqueue_problem("{weight = 1.5}"), rule + "1.5");
  EXPECT_EQ(enqueue_problem("{weight = 1/0}"), rule + "inf");
  EXPECT_EQ(enqueue_problem("{weight = '1'}"), rule + "a string");
  EXPECT_EQ(enqueue_problem("{reject = ('r'):rep(1001)}"),
            "invalid_result: reject has 1001 bytes, at most 1000 are allowed");
  EXPECT_EQ(enqueue_problem("{reject = true}"),
            "invalid_result: reject must be a string, not true");
  EXPECT_EQ(enqueue_problem("{fairnes_key = 'k'}"),
            "invalid_result: unknown field 'fairnes_key'; did you mean 'fairness_key'?");
  EXPECT_EQ(enqueue_problem("nil"), "invalid_result: on_enqueue returned nil, expected a table");
}

TEST(EnqueueVerdict, ThrottleKeysAreAList) {
  const std::string rule =
      "invalid_result: throttle_keys must be a list: names at 1, 2, 3 and so on";
  EXPECT_EQ(enqueue_problem("{throttle_keys = {a = 'b'}}"), rule);
  EXPECT_EQ(enqueue_problem("{throttle_keys = {'x', nil, 'z'}}"), rule);
  EXPECT_EQ(enqueue_problem("{throttle_keys = {'x', a = 'y'}}"), rule);
  EXPECT_EQ(enqueue_problem("{throttle_keys = 'api'}"),
            "invalid_result: throttle_keys must be a list of names, not a string");
  EXPECT_EQ(enqueue_problem("{throttle_keys = {'x', 5}}"),
            "invalid_result: throttle_keys[2] must be a string, not 5");
  EXPECT_EQ(enqueue_problem("{throttle_keys = {''}}"),
            "invalid_result: throttle_keys[1] must not be empty");
  EXPECT_EQ(enqueue_problem("{throttle_keys = table.pack(('x'):rep(17):byte(1, -1))}"),
            "invalid_result: throttle_keys has more than 16 names");
}

TEST(Verdicts, TablesThatContainThemselvesAreReadOnce) {
  HookScript script(HookKind::on_enqueue);
  EXPECT_EQ(fault_of(script.outcome(R"(
    function on_enqueue(msg)
      local t = {}
      t.throttle_keys = t
      return t
    end)")),
            "invalid_result: throttle_keys must be a list: names at 1, 2, 3 and so on");
  // A message and a library are tables too, but none of the script's making.
  for (const char* given : {"string", "msg"}) {
    EXPECT_EQ(
        fault_of(script.outcome("function on_enqueue(msg) return " + std::string(given) + " end")),
        "invalid_result: on_enqueue returned a table that is not its own, such as its message");
  }
}

}  // namespace
}  // namespace reprise::hooks
