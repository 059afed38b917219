// What a script may try to take more than its share, to keep something for the next call, or to get
// out. Each must end as an answer or an error, in time, and the next call must not notice.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "support/hook_script.h"

namespace reprise::hooks {
namespace {

using test::fault_of;
using test::HookScript;
using test::value_of;

// The hook does `attack` unless the error of the job is "calm".
std::string script_with(std::string_view attack) {
  return "function on_failure(msg)\n"
         "if msg.error == 'calm' then return {action = 'dlq', reason = 'calm'} end\n"
         "do " +
         std::string(attack) + " end\nreturn {}\nend";
}

class Attack : public testing::Test {
 protected:
  Attack() : script_(HookKind::on_failure) {
    script_.limits = {.timeout = std::chrono::milliseconds(10), .memory_bytes = 1U << 20};
  }

  // Makes the attack three times, and looks whether a harmless call between is what it was.
  std::string outcome(std::string_view attack) {
    EXPECT_EQ(script_.load(script_with(attack)), "");
    std::string fault;
    for (int i = 0; i < 3; ++i) {
      script_.message.error = "attack";
      const auto start = std::chrono::steady_clock::now();
      fault = fault_of(script_.call().outcome);
      const auto took = std::chrono::steady_clock::now() - start;
      // Many times the limit, for machines that are busy or look after every byte; an attack that
      // succeeds takes minutes.
      EXPECT_LT(took, std::chrono::seconds(5)) << attack;
      script_.message.error = "calm";
      const auto calm = script_.call();
      EXPECT_EQ(fault_of(calm.outcome), "") << "after: " << attack;
      EXPECT_EQ(calm.outcome, CallOutcome(FailureVerdict{.retry = false, .reason = "calm"}))
          << attack;
    }
    return fault;
  }
  void expect_stopped(std::string_view attack) {
    const std::string fault = outcome(attack);
    EXPECT_TRUE(fault.ends_with("the limit of 1000000 instructions was used up") ||
                fault.ends_with("the time limit of 10 ms was used up"))
        << attack << ": " << fault;
  }
  void expect_out_of_memory(std::string_view attack) {
    // Enough time for the memory to be the first to run out on any machine.
    script_.limits.timeout = std::chrono::seconds(1);
    EXPECT_EQ(outcome(attack), "memory: the limit of 1048576 bytes of memory was used up")
        << attack;
  }
  void expect_error(std::string_view attack, std::string_view what) {
    const std::string fault = outcome(attack);
    EXPECT_NE(fault.find(what), std::string::npos) << attack << ": " << fault;
  }
  // One way or another; which one depends on the speed of the machine.
  void expect_ended(std::string_view attack) { EXPECT_NE(outcome(attack), "") << attack; }

  HookScript script_;
};

TEST_F(Attack, EndlessLoopsEnd) {
  expect_stopped("while true do end");
  expect_stopped("repeat until false");
  expect_stopped("::again:: goto again");
  expect_stopped("for i = 1, math.huge do end");
  expect_stopped("for i = 1, math.maxinteger do end");
  expect_stopped("local function f() return f() end f()");
  expect_stopped("while true do local t = {} end");
  expect_stopped("while true do local s = 'x' .. math.random() end");
}

TEST_F(Attack, TheEndCannotBeCaught) {
  expect_stopped("while true do pcall(function() while true do end end) end");
  expect_stopped("pcall(function() while true do end end) return {action='dlq'}");
  expect_stopped("while true do pcall(pcall, pcall, function() while true do end end) end");
  expect_stopped("xpcall(function() while true do end end, function() while true do end end)");
  expect_stopped("while true do xpcall(error, error) end");
  expect_stopped("while true do xpcall(function() while true do end end, error) end");
  expect_stopped("local function again() pcall(again) while true do end end again()");
  expect_stopped("local function f() xpcall(f, f) end while true do f() end");
  expect_stopped("for i = 1, 1000000000 do pcall(error) end");
}

TEST_F(Attack, LoopsInCallbacksEnd) {
  expect_stopped("table.sort({1, 2, 3}, function() while true do end end)");
  expect_stopped("('x'):gsub('x', function() while true do end end)");
  expect_stopped("for _ in function() return 1 end do end");
  expect_stopped("for w in ('x'):rep(1000):gmatch('.') do while true do end end");
  expect_stopped("while true do ('x'):rep(100):gsub('', 'y') end");
  expect_stopped("while true do table.sort({5, 4, 3, 2, 1}) end");
}

TEST_F(Attack, LoadingEndsToo) {
  EXPECT_NE(script_.load("while true do end"), "");
  EXPECT_NE(script_.load("while true do pcall(function() while true do end end) end"), "");
  EXPECT_NE(script_.load("local t = {} while true do t[#t + 1] = ('x'):rep(100) .. #t end"), "");
  EXPECT_NE(script_.load("local function f() return f() + 1 end f()"), "");
  EXPECT_NE(script_.load("function on_failure() end error(setmetatable)"), "");
  // A script that loads well at first and then does not.
  script_.message.error = "calm";
  EXPECT_EQ(
      fault_of(script_.outcome("if math.random(0) then end function on_failure(msg) return {} "
                               "end")),
      "");
}

TEST_F(Attack, WorkWithoutInstructionsIsCharged) {
  expect_stopped("while true do local s = ('x'):rep(100000) end");
  expect_stopped("local s = ('x'):rep(100000) while true do s:upper() end");
  expect_stopped("local s = ('x'):rep(100000) while true do s:find('y') end");
  expect_stopped("local s = ('x'):rep(100000) while true do s:byte(1, 1000) end");
  expect_stopped("local s = ('x'):rep(100000) while true do utf8.len(s) end");
  expect_stopped("local t = {} for i = 1, 10000 do t[i] = i end while true do table.unpack(t) end");
  expect_stopped("local t = {} for i = 1, 10000 do t[i] = i end while true do table.concat(t) end");
  expect_stopped("local t = {} for i = 1, 10000 do t[i] = -i end while true do table.sort(t) end");
  expect_stopped(
      "local t = {} for i = 1, 9999 do t[i] = i end while true do table.insert(t, 1, 1) "
      "table.remove(t, 1) end");
  expect_stopped("local s = '[' .. ('1,'):rep(10000) .. '1]' while true do json.decode(s) end");
  expect_stopped("local t = {} for i = 1, 10000 do t[i] = i end while true do json.encode(t) end");
  expect_stopped(
      "local function f(...) while true do select('#', ...) end end "
      "f(table.unpack({}, 1, 10000))");
  expect_stopped("while true do log('x') end");
  expect_stopped("while true do config.get('x') end");
  expect_stopped("while true do msg.headers = nil local h = msg.headers end");
}

TEST_F(Attack, NothingCountsToTheEndOfTheNumbers) {
  EXPECT_EQ(outcome("local s = (''):rep(math.maxinteger)"), "");
  EXPECT_EQ(outcome("local s = (''):rep(math.maxinteger, '')"), "");
  expect_error("table.move({}, 1, math.maxinteger - 1, 2)", "too many elements");
  expect_error("table.move({}, math.mininteger, math.maxinteger, 2)", "too many elements");
  expect_error("table.move({}, 1, 100000000, 2)", "too many elements");
  expect_error("table.concat({}, '', math.mininteger, math.maxinteger)", "too many elements");
  expect_error("table.concat({}, '', 1, 1 << 40)", "too many elements");
  expect_error("table.unpack({}, 1, 1 << 40)", "too many elements");
  expect_error("table.unpack({}, math.mininteger, math.maxinteger)", "too many elements");
  expect_error("table.insert({}, -(1 << 40), 1)", "too many elements");
  expect_error("table.remove({}, -(1 << 40))", "too many elements");
  expect_error("('x'):byte(1, 1 << 62) error('fine')", "fine");
  expect_error("select(1 << 62, 1) error('fine')", "fine");
  expect_ended("table.unpack({}, 1, 900000)");
}

TEST_F(Attack, MemoryHasItsLimit) {
  expect_out_of_memory("local t = {} for i = 1, 100000 do t[i] = {} end");
  expect_out_of_memory("local s = 'x' while true do s = s .. s end");
  expect_out_of_memory("local s = ('x'):rep(1 << 30)");
  expect_out_of_memory("local s = ('x'):rep(1 << 40)");
  expect_out_of_memory("local s = ('x'):rep(math.maxinteger)");
  expect_out_of_memory("local s = ('x'):rep(1 << 32, ('y'):rep(1 << 10))");
  expect_out_of_memory("local s = (''):rep(1 << 40, 'y')");
  expect_out_of_memory(
      "local x = ('x'):rep(1 << 18) local s = string.format('%s%s%s%s%s', x, x, x, x, x)");
  expect_out_of_memory("local x = ('x'):rep(1 << 18) local s = table.concat({x, x, x, x, x})");
  expect_out_of_memory("local x = ('x'):rep(1 << 10) local s = x:gsub('x', x)");
  expect_out_of_memory("for i = 1, 1000000 do _ENV['g' .. i] = i end");
  expect_out_of_memory("local x = ('x'):rep(1 << 18) local s = json.encode({x, x, x, x, x, x})");
  expect_out_of_memory("local x = ('\\n'):rep(1 << 18) local s = json.encode({x, x, x, x, x, x})");
  expect_out_of_memory("local s = json.decode('[' .. ('{},'):rep(50000) .. '1]')");
  expect_out_of_memory("local s = string.pack('s' , ('x'):rep(1 << 19)) local t = s .. s");
}

TEST_F(Attack, WantOfMemoryMayBeCaughtAndTheLimitHolds) {
  script_.limits.timeout = std::chrono::seconds(1);  // for machines that are busy
  EXPECT_EQ(outcome("pcall(string.rep, 'x', 1 << 40)"), "");
  EXPECT_EQ(outcome("pcall(function() local t = {} while true do t[#t + 1] = {} end end)"), "");
  script_.limits.timeout = std::chrono::milliseconds(10);
  expect_stopped("while true do pcall(string.rep, 'x', 1 << 40) end");
  expect_ended(
      "while true do pcall(function() local t = {} while true do t[#t + 1] = {} end end) end");
  expect_ended(
      "local t = {} while true do pcall(function() while true do t[#t + 1] = {} end end) end");
}

TEST_F(Attack, RecursionEnds) {
  expect_ended("local function f() return 1 + f() end f()");
  expect_ended("local function f(...) return f(1, ...) end f()");
  expect_ended("local function f() pcall(f) end f() error('fine')");
  expect_error("local function f() local ok, e = pcall(f) if not ok then error(e, 0) end end f()",
               "C stack overflow");
  expect_error("local function f() ('x'):gsub('x', f) end f()", "C stack overflow");
  expect_error("local function f() table.sort({1, 2}, f) end f()", "C stack overflow");
  expect_error("local function f() xpcall(f, f) end f() error('fine')", "");
  expect_ended("local t = {} for i = 1, 1000 do t = {t} end json.encode(t)");
  expect_ended("local s = ('['):rep(100000) json.decode(s)");
  expect_ended("local s = ('('):rep(100) .. ('a'):rep(100) s:match(('(.-)'):rep(40))");
  expect_ended("string.rep('x', 100000):match(('x?'):rep(1000) .. ('x'):rep(1000)) error('fine')");
}

TEST_F(Attack, DeepNestingInTheSourceIsRefused) {
  const auto nested = [](const char* open, const char* close) {
    std::string source = "x = ";
    for (int i = 0; i < 5000; ++i) source += open;
    source += "1";
    for (int i = 0; i < 5000; ++i) source += close;
    return source;
  };
  EXPECT_NE(script_.load(nested("{", "}")), "");
  EXPECT_NE(script_.load(nested("(", ")")), "");
  EXPECT_NE(script_.load(nested("-", "")), "");
  EXPECT_NE(script_.load(nested("function() return ", " end")), "");
  std::string locals;
  for (int i = 0; i < 300; ++i) locals += "local x" + std::to_string(i) + "\n";
  EXPECT_NE(script_.load(locals), "");
}

TEST_F(Attack, WhatIsNotThereCannotBeUsed) {
  for (const char* attack :
       {"coroutine.wrap(function() while true do end end)()", "setmetatable({}, {__gc = error})",
        "getmetatable('').__index = {}", "load('x')", "debug.sethook()", "os.exit()",
        "io.open('x')", "require('os')", "collectgarbage('stop')", "rawset(string, 'x', 1)",
        "print(1)", "_G.x = 1", "string.dump(on_failure)", "math.randomseed(1)",
        "package.loadlib('x', 'y')"}) {
    expect_error(attack, "nil value");
  }
  EXPECT_NE(script_.load("function on_failure() local x <close> = {} end function x() end"), "x");
  expect_error("local x <close> = {}", "non-closable value");
}

// Functions of ours that scripts get hold of must look at what they are given.
TEST_F(Attack, TheStepOfPairsTakesTablesOnly) {
  for (const char* given : {"", "0x41414141", "'text'", "pairs", "true", "json.null", "nil, 1"}) {
    expect_error("local step = pairs(msg); step(" + std::string(given) + ")", "table expected");
  }
  expect_error("local step = pairs(msg); step({}, 'no key')", "key");
}

TEST_F(Attack, PoisonDoesNotOutliveTheCall) {
  EXPECT_EQ(outcome("string = {} table = nil msg = nil tostring = error type = nil"), "");
  EXPECT_EQ(outcome("for name in pairs(_ENV) do _ENV[name] = nil end"), "");
  EXPECT_EQ(outcome("local env = _ENV _ENV = {env = env} env.on_failure = nil"), "");
  EXPECT_EQ(outcome("pcall(function() string.upper = error end) pcall(function() (''). x = 1 end)"),
            "");
  EXPECT_EQ(outcome("msg.error = 'calm' msg.headers = error msg.payload = {}"), "");
  EXPECT_EQ(outcome("json.array({}) local a = json.decode('[]') a.x = 1"), "");
}

TEST_F(Attack, ErrorsAndAnswersOfAnyKindAreAnswered) {
  for (const char* attack :
       {"error(msg)", "error(string)", "error(pcall)", "error(nil)", "error(0/0)", "error(true)",
        "error(_ENV)", "error(('x'):rep(100000))", "error('\\xff\\0')", "return msg, msg, msg",
        "return 0/0", "return {[1] = msg}", "return {delay_ms = 0/0}"}) {
    SCOPED_TRACE(attack);
    outcome(attack);
  }
  expect_ended("local t = {} t.action = t return t");
  expect_ended("local t = {} for i = 1, 10000 do t[i] = i end return t");
  expect_ended("return {delay_ms = math.maxinteger}");
}

// The one thing that Lua cannot be interrupted in, except from outside. In a process of its own,
// which the alarm ends as the broker would.
TEST(AttackInAProcess, APatternThatTakesForEverEndsWithItsProcess) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    HookScript script(HookKind::on_failure);
    alarm(1);
    script.outcome(script_with("('x'):rep(30000):find(('.-'):rep(20) .. 'y')"));
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) << status;
}

}  // namespace
}  // namespace reprise::hooks
