#include "hooks/host/script.h"

#include <gtest/gtest.h>

#include "support/hook_script.h"

namespace reprise::hooks {
namespace {

using test::fault_of;
using test::HookScript;
using test::value_of;

std::string problem(std::string_view source) {
  return HookScript(HookKind::on_failure).load(source);
}

TEST(Script, ProblemsNameTheLine) {
  EXPECT_EQ(problem("function on_failure(msg)\n  return }\nend"),
            "line 2: unexpected symbol near '}'");
  EXPECT_EQ(problem("x = = 1"), "line 1: unexpected symbol near '='");
  EXPECT_EQ(problem("\n\nerror('no')"), "line 3: no");
  EXPECT_EQ(problem("local x = nil + 1"), "line 1: attempt to perform arithmetic on a nil value");
  EXPECT_EQ(problem("error({})"), "the script raised an error that is no text but a table value");
}

TEST(Script, MustDefineItsFunction) {
  EXPECT_EQ(problem(""), "it does not define on_failure");
  EXPECT_EQ(problem("local function on_failure() end"), "it does not define on_failure");
  EXPECT_EQ(problem("function on_enqueue() end"), "it does not define on_failure");
  EXPECT_EQ(problem("on_failure = {}"), "on_failure is not a function");
  EXPECT_EQ(problem("on_failure = 5"), "on_failure is not a function");
  EXPECT_EQ(problem("on_failure = tostring"), "");
  // In an environment of the script's own nobody finds it.
  EXPECT_EQ(problem("_ENV = {} function on_failure() end"), "it does not define on_failure");
}

TEST(Script, OnlyTextIsTaken) {
  EXPECT_EQ(problem(std::string("function on_failure() end\0", 26)),
            "it contains a NUL byte, so it is no text");
  EXPECT_NE(problem("\x1BLua\x54"), "");
  EXPECT_NE(problem("\x1B"), "");
  EXPECT_NE(problem("\xEF\xBB\xBFgarbage"), "");
  EXPECT_EQ(problem("function on_failure() return {action='dlq', reason='\xC3\xA9'} end"), "");
}

TEST(Script, ErrorsNameTheLineAndWhatWasWrong) {
  const auto raised = [](std::string_view body) {
    return fault_of(HookScript(HookKind::on_failure)
                        .outcome("function on_failure(msg)\n" + std::string(body) + "\nend"));
  };
  EXPECT_EQ(raised("return msg.card.number"),
            "error: line 2: attempt to index a nil value (field 'card')");
  EXPECT_EQ(raised("error('boom')"), "error: line 2: boom");
  EXPECT_EQ(raised("error('boom', 0)"), "error: boom");
  EXPECT_EQ(raised("error('boom', 2)"), "error: boom");
  EXPECT_EQ(raised("error()"), "error: the script raised an error that is no text but a nil value");
  EXPECT_EQ(raised("error({code = 1})"),
            "error: the script raised an error that is no text but a table value");
  EXPECT_EQ(raised("error(json.null)"),
            "error: the script raised an error that is no text but a userdata value");
  EXPECT_EQ(raised("error(5)"), "error: 5");
  EXPECT_EQ(raised("error('bad \\xff\\n bytes', 0)"), "error: bad \xEF\xBF\xBD  bytes");
  EXPECT_EQ(raised("error(('x'):rep(5000), 0)").size(), 7 + kMaxHookMessageBytes);
  EXPECT_EQ(raised("error(('x'):rep(5000))").size(), 7 + kMaxHookMessageBytes);
  EXPECT_EQ(raised("string.rep()"),
            "error: line 2: bad argument #1 to 'rep' (string expected, got no value)");
  EXPECT_EQ(raised("print('x')"), "error: line 2: attempt to call a nil value (global 'print')");
}

TEST(Script, NothingOfACallIsThereAtTheNext) {
  HookScript script(HookKind::on_failure);
  ASSERT_EQ(script.load(R"(
    count = (count or 0) + 1
    local kept = 0
    local list = {}
    function helper() kept = kept + 1 list[#list + 1] = kept return kept end
    function on_failure(msg)
      global = (global or 0) + 1
      helper()
      _ENV.leak = (leak or 0) + 1
      string = nil
      tostring = nil
      json = {}
      local seen = count .. kept .. #list .. global .. leak
      on_failure = nil
      helper = nil
      _ENV = nil
      return { action = "dlq", reason = seen }
    end)"),
            "");
  for (int i = 0; i < 5; ++i) {
    const auto result = script.call();
    EXPECT_EQ(fault_of(result.outcome), "");
    EXPECT_EQ(std::get<FailureVerdict>(result.outcome).reason, "11111");
  }
}

TEST(Script, RandomnessAndErrorsDoNotSpoilTheNextCall) {
  HookScript script(HookKind::on_failure);
  script.limits = {.timeout = std::chrono::milliseconds(5), .memory_bytes = 256U << 10};
  ASSERT_EQ(script.load(R"(
    function on_failure(msg)
      if msg.error == "loop" then while true do end end
      if msg.error == "memory" then local t = {} while true do t[#t + 1] = ("x"):rep(1000) .. #t end end
      if msg.error == "deep" then local function f() return 1 + f() end f() end
      if msg.error == "error" then error(msg) end
      if msg.error == "result" then return msg.error end
      return { action = "dlq", reason = "fine" }
    end)"),
            "");
  for (int i = 0; i < 3; ++i) {
    for (const char* what : {"loop", "memory", "deep", "error", "result"}) {
      script.message.error = what;
      EXPECT_NE(fault_of(script.call().outcome), "") << what;
      script.message.error = "";
      EXPECT_EQ(std::get<FailureVerdict>(script.call().outcome).reason, "fine") << what;
    }
  }
}

TEST(Script, GarbageOfOneCallIsNotTheNextOnesTrouble) {
  HookScript script(HookKind::on_failure);
  script.limits.memory_bytes = 256U << 10;
  ASSERT_EQ(script.load(R"(
    function on_failure(msg)
      local t = {}
      for i = 1, 100 do t[i] = ("x"):rep(1000) .. i end
      return {}
    end)"),
            "");
  for (int i = 0; i < 200; ++i) ASSERT_EQ(fault_of(script.call().outcome), "") << i;
}

TEST(Script, MemoryBelowWhatLuaNeedsIsAProblemAndNoCrash) {
  for (const std::uint64_t bytes :
       {1U, 1000U, 5000U, 10'000U, 15'000U, 20'000U, 25'000U, 30'000U}) {
    HookScript script(HookKind::on_failure);
    script.limits.memory_bytes = bytes;
    const std::string why = script.load("function on_failure() return {} end");
    EXPECT_NE(why.find("memory"), why.empty() ? 0 : std::string::npos) << bytes << why;
  }
  // The least that can be set is enough.
  HookScript script(HookKind::on_failure);
  script.limits.memory_bytes = 128U << 10;
  EXPECT_EQ(fault_of(script.outcome("function on_failure() return {} end")), "");
}

TEST(Script, ALargeScriptCompiles) {
  std::string source;
  while (source.size() < 60'000) source += "local function f() return {1, 2, 'three'} end f()\n";
  // Functions and locals have limits of Lua's own; blocks keep below them.
  std::string blocks;
  for (std::size_t at = 0; at < source.size(); at += 5'000) {
    const auto from = source.find('\n', at);
    const auto to = source.find('\n', std::min(at + 5'000, source.size() - 1));
    if (from == std::string::npos || to == std::string::npos) break;
    blocks += "do " + source.substr(from, to - from) + "\nend\n";
  }
  EXPECT_EQ(problem(blocks + "function on_failure() return {} end"), "");
}

TEST(Script, RecipesOfTheGuideWork) {
  HookScript script(HookKind::on_failure);
  script.message.error = "503, Retry-After: 30";
  const char* retry_after = R"lua(
    function on_failure(msg)
      local seconds = tonumber(msg.error:match("Retry%-After: (%d+)"))
      return { delay_ms = seconds and seconds * 1000 or backoff(msg.failures) }
    end)lua";
  EXPECT_EQ(std::get<FailureVerdict>(script.outcome(retry_after)).delay, std::chrono::seconds(30));
  script.message.error = "503";
  EXPECT_EQ(std::get<FailureVerdict>(script.outcome(retry_after)).delay, std::chrono::seconds(1));
  HookScript other(HookKind::on_enqueue);
  other.job.payload = R"({"id": 7, "customer": 12})";
  EXPECT_EQ(std::get<EnqueueVerdict>(other.outcome(R"(
    function on_enqueue(msg)
      if msg.payload_size > 65536 then return { reject = "payload beyond 64 KiB" } end
      local ok, order = pcall(json.decode, msg.payload)
      if not ok or type(order) ~= "table" or not order.id then return { reject = "an order needs an id" } end
      return { throttle_keys = { "api", "customer:" .. tostring(order.customer or "none") } }
    end)"))
                .throttle_keys,
            (std::vector<std::string>{"api", "customer:12"}));
}

// Whether what this on_enqueue answers would be the same for another job with the same headers.
bool is_repeatable(std::string_view body) {
  HookScript script(HookKind::on_enqueue);
  script.job.headers = {{"tenant", "acme"}};
  script.config["key"] = "value";
  EXPECT_EQ(script.load("function on_enqueue(msg)\n" + std::string(body) + "\nend"), "");
  script.call();
  return script.call().repeatable;
}

TEST(Script, AnAnswerIsRepeatableThatFollowsFromHeadersAndAttributes) {
  for (const char* body : {
           "return {}",
           "return { fairness_key = msg.headers.tenant or 'default' }",
           "return { weight = msg.weight, throttle_keys = msg.throttle_keys[1] and {} or {'a'} }",
           "return { fairness_key = msg.queue .. msg.priority .. msg.fairness_key }",
           "return { reject = 'no ' .. tostring(msg.unknown) }",
           "for name, value in pairs(msg.headers) do return { fairness_key = name .. value } end",
           "return { weight = math.floor(backoff(3, 1, 100)) }",
           "pcall(error, 'x') return {}",
       }) {
    EXPECT_TRUE(is_repeatable(body)) << body;
  }
}

TEST(Script, AnAnswerIsNotRepeatableThatMayDependOnMore) {
  for (const char* body : {
           "return { reject = msg.payload }",
           "return { weight = msg.payload_size > 5 and 2 or 1 }",
           "local ignored = msg.payload_size return {}",
           "for name in pairs(msg) do end return {}",
           "return { weight = math.random(1, 5) }",
           "return { weight = math.floor(backoff(3, 10, 100, 0.5)) }",
           "return { fairness_key = config.get('key') }",
           "return { fairness_key = config.get('missing') }",
           "pcall(config.get, 'key') return {}",
           "log('seen') return {}",
           "error('no')",
           "return { weight = 0 }",
           "return 5",
       }) {
    EXPECT_FALSE(is_repeatable(body)) << body;
  }
}

TEST(Script, AFailuresVerdictIsNeverRepeatable) {
  HookScript script(HookKind::on_failure);
  EXPECT_EQ(script.load("function on_failure(msg) return {} end"), "");
  EXPECT_FALSE(script.call().repeatable);
}

}  // namespace
}  // namespace reprise::hooks
