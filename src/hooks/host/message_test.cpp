#include "hooks/host/message.h"

#include <gtest/gtest.h>

#include "support/hook_script.h"

namespace reprise::hooks {
namespace {

using test::fault_of;
using test::HookScript;
using test::value_of;

HookScript failed_job() {
  HookScript script(HookKind::on_failure);
  script.job.headers = {{"tenant", "acme"}, {"plan", "gold"}};
  script.job.payload = std::string("{\"a\":1}\0\xFF", 9);
  script.message.id = "01J9";
  script.message.attempts = 4;
  script.message.failures = 3;
  script.message.error = "card declined";
  script.message.error_type = "CardError";
  script.message.first_attempt_at = Timestamp(std::chrono::milliseconds(1'700'000'000'123));
  return script;
}

TEST(HookMessage, OnFailureSeesEveryFieldOfItsOwn) {
  auto script = failed_job();
  EXPECT_EQ(value_of(script, "msg.id"), "01J9");
  EXPECT_EQ(value_of(script, "msg.queue"), "orders");
  EXPECT_EQ(value_of(script, "msg.headers.tenant .. msg.headers.plan"), "acmegold");
  EXPECT_EQ(value_of(script, "msg.headers.none"), "nil");
  EXPECT_EQ(value_of(script, "msg.attempts"), "4");
  EXPECT_EQ(value_of(script, "msg.failures + msg.failures"), "6");
  EXPECT_EQ(value_of(script, "msg.error"), "card declined");
  EXPECT_EQ(value_of(script, "msg.error_type"), "CardError");
  EXPECT_EQ(value_of(script, "msg.first_attempt_at"), "1700000000123");
  EXPECT_EQ(value_of(script, "msg.payload_size"), "9");
  EXPECT_EQ(value_of(script, "#msg.payload .. msg.payload:byte(8) .. msg.payload:byte(9)"),
            "90255");
}

TEST(HookMessage, WhatIsNotOfTheKindIsNil) {
  auto script = failed_job();
  for (const char* name : {"priority", "fairness_key", "weight", "throttle_keys", "other"}) {
    EXPECT_EQ(value_of(script, std::string("msg.") + name), "nil") << name;
  }
  EXPECT_EQ(value_of(script, "msg[1]"), "nil");
  EXPECT_EQ(value_of(script, "msg[json.null]"), "nil");
}

TEST(HookMessage, WithoutHeadersThereIsAnEmptyTable) {
  EXPECT_EQ(value_of("next(msg.headers)"), "nil");
  EXPECT_EQ(value_of("msg.error == '' and msg.error_type == '' and msg.payload_size == 0"), "true");
}

TEST(HookMessage, OnEnqueueSeesTheAttributes) {
  HookScript script(HookKind::on_enqueue);
  script.job.headers = {{"tenant", "acme"}};
  script.job.payload = "12345";
  script.job.priority = 7;
  script.job.scheduling = {.fairness_key = "k", .weight = 3, .throttle_keys = {"a", "b"}};
  const auto outcome = script.outcome(R"(
    function on_enqueue(msg)
      assert(msg.id == nil and msg.error == nil and msg.attempts == nil and msg.failures == nil)
      return { reject = table.concat({ msg.queue, msg.headers.tenant, msg.payload,
        msg.payload_size, msg.priority, msg.fairness_key, msg.weight, #msg.throttle_keys,
        msg.throttle_keys[1], msg.throttle_keys[2] }, " ") }
    end)");
  EXPECT_EQ(fault_of(outcome), "");
  EXPECT_EQ(std::get<EnqueueVerdict>(outcome).reject, "orders acme 12345 5 7 k 3 2 a b");
}

TEST(HookMessage, PairsSeesAllFields) {
  auto script = failed_job();
  const auto outcome = script.outcome(R"(
    function on_failure(msg)
      msg.mine = 1
      local all = {}
      for name, value in pairs(msg) do all[#all + 1] = name end
      table.sort(all)
      return { action = "dlq", reason = table.concat(all, " ") }
    end)");
  EXPECT_EQ(std::get<FailureVerdict>(outcome).reason,
            "attempts error error_type failures first_attempt_at headers id mine payload "
            "payload_size queue");
}

TEST(HookMessage, ItIsTheScriptsToChangeForTheCallAlone) {
  auto script = failed_job();
  ASSERT_EQ(script.load(R"(
    function on_failure(msg)
      local seen = msg.error .. tostring(msg.extra)
      msg.error = "changed"
      msg.extra = 1
      msg.headers.tenant = nil
      return { action = "dlq", reason = seen .. msg.error }
    end)"),
            "");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(std::get<FailureVerdict>(script.call().outcome).reason, "card declinednilchanged");
  }
}

TEST(HookMessage, APayloadThatIsNotThereIsAskedFor) {
  auto script = failed_job();
  script.with_payloads = false;
  EXPECT_EQ(value_of(script, "msg.payload_size"), "9");
  for (const char* way :
       {"msg.payload", "pcall(function() return msg.payload end)",
        "xpcall(function() return msg.payload end, function() return 1 end)",
        "(function() for name in pairs(msg) do end end)()", "json.encode(msg)",
        "(function() while true do pcall(function() return msg.payload end) end end)()",
        "('x'):gsub('x', function() return msg.payload end)",
        "table.sort({1, 2, 3}, function() return msg.payload end)"}) {
    EXPECT_EQ(value_of(script, way), "needs payload") << way;
  }
  script.with_payloads = true;
  EXPECT_EQ(value_of(script, "#msg.payload"), "9");
}

TEST(HookMessage, HeadersOfAnyBytesComeThrough) {
  HookScript script(HookKind::on_failure);
  script.job.headers = {{"", std::string("\0x", 2)}, {"same", "1"}, {"same", "2"}};
  EXPECT_EQ(value_of(script, "#msg.headers[''] .. msg.headers.same"), "22");
}

}  // namespace
}  // namespace reprise::hooks
