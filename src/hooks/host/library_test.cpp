#include "hooks/host/library.h"

#include <gtest/gtest.h>

#include <set>

#include "support/hook_script.h"

namespace reprise::hooks {
namespace {

using test::fault_of;
using test::HookScript;
using test::value_of;

// What the pages promise, and nothing else.
const std::vector<std::string> kGlobals = {"assert",   "backoff", "config", "error", "ipairs",
                                           "json",     "log",     "math",   "next",  "pairs",
                                           "pcall",    "select",  "string", "table", "tonumber",
                                           "tostring", "type",    "utf8",   "xpcall"};
const std::vector<std::pair<std::string, std::vector<std::string>>> kLibraries = {
    {"math",
     {"abs",  "acos",   "asin", "atan", "ceil",       "cos",       "deg",        "exp",  "floor",
      "fmod", "huge",   "log",  "max",  "maxinteger", "min",       "mininteger", "modf", "pi",
      "rad",  "random", "sin",  "sqrt", "tan",        "tointeger", "type",       "ult"}},
    {"string",
     {"byte", "char", "find", "format", "gmatch", "gsub", "len", "lower", "match", "pack",
      "packsize", "rep", "reverse", "sub", "unpack", "upper"}},
    {"table", {"concat", "insert", "move", "pack", "remove", "sort", "unpack"}},
    {"utf8", {"char", "charpattern", "codepoint", "codes", "len", "offset"}},
    {"json", {"array", "decode", "encode", "null"}},
    {"config", {"get"}},
};

// All names that could be a variable or a field in Lua: those above, and those of plain Lua.
const std::set<std::string>& all_names() {
  static const std::set<std::string> names = [] {
    std::set<std::string> all = {
        "_G",           "_VERSION", "collectgarbage", "coroutine",  "debug",       "dofile",
        "getmetatable", "io",       "load",           "loadfile",   "loadstring",  "module",
        "newproxy",     "os",       "package",        "print",      "rawequal",    "rawget",
        "rawlen",       "rawset",   "require",        "setfenv",    "getfenv",     "setmetatable",
        "unpack",       "warn",     "dump",           "randomseed", "pow",         "cosh",
        "sinh",         "tanh",     "frexp",          "ldexp",      "log10",       "maxn",
        "on_enqueue",   "set",      "insert",         "__index",    "__metatable", "arg"};
    all.insert(kGlobals.begin(), kGlobals.end());
    for (const auto& [library, functions] : kLibraries)
      all.insert(functions.begin(), functions.end());
    return all;
  }();
  return names;
}

TEST(HookLibrary, ExactlyTheDocumentedNamesAreThere) {
  const std::set<std::string> globals(kGlobals.begin(), kGlobals.end());
  for (const std::string& name : all_names()) {
    EXPECT_EQ(value_of("_ENV['" + name + "'] ~= nil"), globals.contains(name) ? "true" : "false")
        << name;
  }
  for (const auto& [library, functions] : kLibraries) {
    const std::set<std::string> there(functions.begin(), functions.end());
    for (const std::string& name : all_names()) {
      EXPECT_EQ(value_of(library + "['" + name + "'] ~= nil"),
                there.contains(name) ? "true" : "false")
          << library << '.' << name;
    }
  }
}

// The real tables are behind the ones that scripts see; this looks into them.
TEST(HookLibrary, NothingElseIsBehindIt) {
  const ConfigValues config;
  CallContext context(HookLimits{}, config);
  const std::unique_ptr<lua_State, void (*)(lua_State*)> state(
      lua_newstate(&MemoryCap::allocate, &context.memory), lua_close);
  lua_State* lua = state.get();
  *static_cast<CallContext**>(lua_getextraspace(lua)) = &context;
  push_environment(lua);
  std::set<std::string> globals;
  for (lua_pushnil(lua); lua_next(lua, 1) != 0; lua_pop(lua, 1)) {
    globals.insert(lua_tostring(lua, 2));
    if (lua_istable(lua, 3)) {
      lua_pushnil(lua);
      EXPECT_EQ(lua_next(lua, 3), 0) << lua_tostring(lua, 2) << " can be written to";
      lua_settop(lua, 3);
    }
  }
  EXPECT_EQ(globals, std::set<std::string>(kGlobals.begin(), kGlobals.end()));
  for (const auto& [library, functions] : kLibraries) {
    lua_getfield(lua, 1, library.c_str());
    ASSERT_EQ(luaL_getmetafield(lua, 2, "__index"), LUA_TTABLE);
    std::set<std::string> names;
    for (lua_pushnil(lua); lua_next(lua, 3) != 0; lua_pop(lua, 1)) {
      names.insert(lua_tostring(lua, 4));
    }
    EXPECT_EQ(names, std::set<std::string>(functions.begin(), functions.end())) << library;
    lua_settop(lua, 1);
  }
  // Strings have methods and arithmetic, and their table of methods is not Lua's own.
  lua_pushliteral(lua, "");
  ASSERT_EQ(luaL_getmetafield(lua, -1, "__index"), LUA_TTABLE);
  EXPECT_EQ(lua_getfield(lua, -1, "dump"), LUA_TNIL);
  // What opening the libraries left behind.
  lua_pushglobaltable(lua);
  lua_pushnil(lua);
  EXPECT_EQ(lua_next(lua, -2), 0);
}

TEST(HookLibrary, LibrariesCannotBeChanged) {
  for (const auto& [library, functions] : kLibraries) {
    EXPECT_EQ(value_of("select(2, pcall(function() " + library + ".evil = 1 end))"),
              "on_failure:2: the library '" + library + "' cannot be changed");
    EXPECT_EQ(value_of("pcall(function() " + library + "." + functions[0] + " = nil end)"),
              "false");
    EXPECT_EQ(value_of("pcall(table.insert, " + library + ", 1)"), "false");
    EXPECT_EQ(value_of("pcall(table.move, {1}, 1, 1, 1, " + library + ")"), "false");
    EXPECT_EQ(value_of("pcall(json.array, " + library + ")"), "false");
  }
  EXPECT_EQ(value_of("pcall(function() (''). evil = 1 end)"), "false");
  EXPECT_EQ(value_of("pcall(json.array, _ENV)"), "false");
  EXPECT_EQ(value_of("pcall(json.array, msg)"), "false");
}

TEST(HookLibrary, BaseFunctionsWork) {
  EXPECT_EQ(value_of("select('#', assert(1, 2, 3))"), "3");
  EXPECT_EQ(value_of("select(2, pcall(assert, false))"), "assertion failed!");
  EXPECT_EQ(value_of("select(2, pcall(error, 'x', 0))"), "x");
  EXPECT_EQ(value_of("select(2, pcall(error, {code = 7})).code"), "7");
  EXPECT_EQ(
      value_of("sum", "local s = 0 for _, v in ipairs({1, 2, 3, nil, 5}) do s = s + v end sum = s"),
      "6");
  EXPECT_EQ(value_of("next({5})"), "1");
  EXPECT_EQ(value_of("sum", "sum = 0 for k, v in pairs({a = 1, b = 2}) do sum = sum + v end"), "3");
  EXPECT_EQ(value_of("select(-1, 1, 2, 3)"), "3");
  EXPECT_EQ(value_of("tonumber('0x10') + tonumber('11', 2)"), "19");
  EXPECT_EQ(value_of("tonumber('x')"), "nil");
  EXPECT_EQ(value_of("type(type)"), "function");
  EXPECT_EQ(value_of("'10' + 5"), "15");
}

TEST(HookLibrary, ErrorsCanBeCaught) {
  EXPECT_EQ(value_of("table.concat({tostring(pcall(error)), select(2, pcall(error, 'e', 0))})"),
            "falsee");
  EXPECT_EQ(value_of("select('#', pcall(function() return 1, 2, 3 end))"), "4");
  EXPECT_EQ(value_of("pcall()"), "error: line 2: bad argument #1 to 'pcall' (value expected)");
  EXPECT_EQ(value_of("select(2, xpcall(error, function(e) return 'seen ' .. e end, 'this', 0))"),
            "seen this");
  EXPECT_EQ(value_of("select('#', xpcall(function(...) return ... end, error, 1, 2))"), "3");
  EXPECT_EQ(value_of("select('#', xpcall(error, function() return 1, 2, 3 end))"), "2");
  EXPECT_EQ(value_of("select(2, xpcall(error, function() error('again', 0) end))"), "again");
  EXPECT_EQ(value_of("pcall(xpcall, error)"), "false");
  EXPECT_EQ(value_of("pcall(pcall, pcall, error, 1)"), "true");
}

TEST(HookLibrary, NothingTellsAnAddress) {
  for (const char* expression :
       {"tostring({})", "tostring(print or pcall)", "tostring(msg)", "tostring(string)",
        "string.format('%s', {})", "string.format('%s', pcall)", "string.format('%5.20s', {})",
        "string.format('%s', json.null)", "select(2, pcall(function() return {} .. '' end))",
        "select(2, pcall(function() return {} < {} end))",
        "select(2, pcall(function() return #pcall end))",
        "select(2, pcall(string.format, '%d', {}))", "select(2, pcall(string.format, '%q', {}))",
        "select(2, pcall(string.rep, {}))"}) {
    const std::string text = value_of(expression);
    EXPECT_EQ(text.find("0x"), std::string::npos) << expression << ": " << text;
    EXPECT_EQ(text.find("error: "), std::string::npos) << expression << ": " << text;
  }
  EXPECT_EQ(value_of("{}"), "table");
  EXPECT_EQ(value_of("string.format('%s|%5s|%s|%s', {}, 'x', nil, true)"), "table|    x|nil|true");
  EXPECT_EQ(value_of("json.null"), "null");
  for (const char* format : {"%p", "%5p", "%-20p", "%d%p", "%%%p"}) {
    EXPECT_EQ(value_of("pcall(string.format, '" + std::string(format) + "', {}, {})"), "false");
  }
}

TEST(HookLibrary, StringFunctionsWork) {
  EXPECT_EQ(value_of("('abc'):byte(2)"), "98");
  EXPECT_EQ(value_of("select('#', ('abc'):byte(1, -1))"), "3");
  EXPECT_EQ(value_of("string.char(72, 105)"), "Hi");
  EXPECT_EQ(value_of("('a.b'):find('.', 1, true)"), "2");
  EXPECT_EQ(value_of("('key=value'):match('(%w+)=')"), "key");
  EXPECT_EQ(value_of("string.format('%d %5.2f %s %q %x %%', 3, 1.5, 'x', 'y', 255)"),
            "3  1.50 x \"y\" ff %");
  EXPECT_EQ(value_of("all", "all = '' for w in ('a b c'):gmatch('%a') do all = all .. w end"),
            "abc");
  EXPECT_EQ(value_of("('hello'):gsub('l', {l = 'L'})"), "heLLo");
  EXPECT_EQ(value_of("('hello'):gsub('l', function(c) return c:upper() end)"), "heLLo");
  EXPECT_EQ(value_of("('abc'):len() .. #'abc'"), "33");
  EXPECT_EQ(value_of("('AbC'):lower() .. ('AbC'):upper() .. ('AbC'):reverse()"), "abcABCCbA");
  EXPECT_EQ(value_of("('ab'):rep(3, '-')"), "ab-ab-ab");
  EXPECT_EQ(value_of("#('ab'):rep(0) + #('ab'):rep(-5) + #(''):rep(1 << 62) + #(''):rep(9, '')"),
            "0");
  EXPECT_EQ(value_of("('hello'):sub(2, -2)"), "ell");
  EXPECT_EQ(value_of("string.unpack('<I2', string.pack('<I2', 513))"), "513");
  EXPECT_EQ(value_of("string.packsize('<I2i8')"), "10");
}

TEST(HookLibrary, TableFunctionsWork) {
  EXPECT_EQ(value_of("table.concat({1, 2, 3}, '-', 2)"), "2-3");
  EXPECT_EQ(value_of("table.concat({})"), "");
  EXPECT_EQ(value_of("table.concat(t)", "t = {1, 3} table.insert(t, 2, 2) table.insert(t, 4)"),
            "1234");
  EXPECT_EQ(value_of("table.concat(table.move({1, 2, 3}, 2, 3, 1))"), "233");
  EXPECT_EQ(value_of("table.pack(1, nil, 3).n"), "3");
  EXPECT_EQ(value_of("table.remove({1, 2, 3}, 1) .. table.remove({1, 2, 3})"), "13");
  EXPECT_EQ(value_of("table.remove({})"), "nil");
  EXPECT_EQ(value_of("table.concat(t)", "t = {3, 1, 2} table.sort(t)"), "123");
  EXPECT_EQ(
      value_of("table.concat(t)", "t = {3, 1, 2} table.sort(t, function(a, b) return a > b end)"),
      "321");
  EXPECT_EQ(value_of("select('#', table.unpack({1, 2, 3}, 2))"), "2");
  EXPECT_EQ(value_of("table.unpack({1, 2, 3}, 5)"),
            "error: line 2: bad argument #1 to 'tostring' (value expected)");
}

TEST(HookLibrary, MathAndUtf8FunctionsWork) {
  EXPECT_EQ(value_of("math.floor(2.7) + math.max(1, 5) + math.tointeger(3.0)"), "10");
  EXPECT_EQ(value_of("math.type(1) .. math.type(1.0)"), "integerfloat");
  EXPECT_EQ(value_of("utf8.len('h\xC3\xA9') .. utf8.char(233) .. utf8.codepoint('\xC3\xA9')"),
            "2\xC3\xA9"
            "233");
  EXPECT_EQ(value_of("utf8.offset('h\xC3\xA9x', 3)"), "4");
  EXPECT_EQ(value_of("sum", "sum = 0 for p, c in utf8.codes('ab') do sum = sum + c end"), "195");
  EXPECT_EQ(value_of("('\xC3\xA9'):match(utf8.charpattern)"), "\xC3\xA9");
}

TEST(HookLibrary, RandomNumbersStartAnewWithEachCall) {
  HookScript script(HookKind::on_failure);
  ASSERT_EQ(script.load("function on_failure(msg) return {action='dlq', reason=math.random(1, "
                        "1 << 60) .. ' ' .. math.random()} end"),
            "");
  std::set<std::string> seen;
  for (int i = 0; i < 20; ++i) seen.insert(std::get<FailureVerdict>(script.call().outcome).reason);
  EXPECT_EQ(seen.size(), 20U);
  // The same seed, the same numbers: nothing but the seed goes in.
  HookScript again(HookKind::on_failure);
  EXPECT_TRUE(seen.contains(value_of(again, "math.random(1, 1 << 60) .. ' ' .. math.random()")));
  EXPECT_EQ(value_of("ok", R"(
    ok = true
    for i = 1, 1000 do
      local r, f, d = math.random(-3, 3), math.random(), math.random(6)
      ok = ok and r >= -3 and r <= 3 and f >= 0 and f < 1 and d >= 1 and d <= 6
    end
    ok = ok and math.type(math.random(0)) == "integer" and math.random(5, 5) == 5
    ok = ok and math.random(math.mininteger, math.maxinteger) ~= nil)"),
            "true");
  EXPECT_EQ(value_of("pcall(math.random, 2, 1)"), "false");
  EXPECT_EQ(value_of("pcall(math.random, 1, 2, 3)"), "false");
}

TEST(HookLibrary, BackoffDoublesUpToItsMost) {
  EXPECT_EQ(value_of("backoff(1) .. ' ' .. backoff(2) .. ' ' .. backoff(100)"),
            "1000 2000 3600000");
  EXPECT_EQ(value_of("backoff(3, 500, 1500)"), "1500");
  EXPECT_EQ(value_of("backoff(2, 500, 1500)"), "1000");
  EXPECT_EQ(value_of("math.type(backoff(1.5, 333))"), "integer");
  EXPECT_EQ(value_of("backoff(0) .. backoff(-5) .. backoff(math.mininteger)"), "100010001000");
  EXPECT_EQ(value_of("backoff(math.huge)"), "3600000");
  EXPECT_EQ(value_of("backoff(5, 0)"), "0");
  EXPECT_EQ(value_of("ok", R"(
    local least, most = math.huge, 0
    for i = 1, 1000 do
      local wait = backoff(1, 1000, 1100, 0.2)
      least, most = math.min(least, wait), math.max(most, wait)
    end
    ok = least >= 800 and least < 850 and most <= 1100 and most > 1050)"),
            "true");
  for (const char* call : {"backoff()", "backoff('x')", "backoff(0/0)", "backoff(1, -1)",
                           "backoff(1, 0/0)", "backoff(1, 1, 1/0)", "backoff(1, 1, 1, 1.5)",
                           "backoff(1, 1, 1, -0.1)", "backoff(1, 1, 1, 0/0)"}) {
    EXPECT_EQ(value_of(call).substr(0, 14), "error: line 2:") << call;
  }
}

TEST(HookLibrary, ConfigIsWhatItIsNow) {
  HookScript script(HookKind::on_failure);
  script.config["rate"] = "5";
  script.config["empty"] = "";
  ASSERT_EQ(script.load("function on_failure(msg) return {action='dlq', reason=tostring("
                        "config.get('rate')) .. '|' .. tostring(config.get('empty')) .. '|' .. "
                        "tostring(config.get('none'))} end"),
            "");
  EXPECT_EQ(std::get<FailureVerdict>(script.call().outcome).reason, "5||nil");
  script.config["rate"] = "6";
  EXPECT_EQ(std::get<FailureVerdict>(script.call().outcome).reason, "6||nil");
  script.config.erase("rate");
  EXPECT_EQ(std::get<FailureVerdict>(script.call().outcome).reason, "nil||nil");
  EXPECT_EQ(value_of("pcall(config.get)"), "false");
}

TEST(HookLibrary, LogIsBoundedAndClean) {
  HookScript script(HookKind::on_failure);
  ASSERT_EQ(script.load(R"(
    log("each call loads it")
    function on_failure(msg)
      log("first") log(5) log({}) log(nil) log("two\nlines\0\xff")
      log(("x"):rep(5000))
      for i = 1, 1000 do log(i) end
      return {}
    end)"),
            "");
  for (int i = 0; i < 2; ++i) {
    const CallResult result = script.call();
    EXPECT_EQ(fault_of(result.outcome), "");
    ASSERT_EQ(result.log.size(), kMaxLogLines);
    EXPECT_EQ(result.log[0], "each call loads it");
    EXPECT_EQ(result.log[1], "first");
    EXPECT_EQ(result.log[2], "5");
    EXPECT_EQ(result.log[3], "table");
    EXPECT_EQ(result.log[4], "nil");
    EXPECT_EQ(result.log[5], "two lines \xEF\xBF\xBD");
    EXPECT_EQ(result.log[6].size(), kMaxLogLineBytes);
    EXPECT_EQ(result.log[7], "1");
  }
}

}  // namespace
}  // namespace reprise::hooks
