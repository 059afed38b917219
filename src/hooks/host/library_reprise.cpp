// config, backoff and log: what only hooks have.
#include <absl/strings/string_view.h>

#include <algorithm>
#include <cmath>

#include "hooks/host/call_context.h"
#include "hooks/host/clean_text.h"
#include "hooks/host/library.h"

namespace reprise::hooks {
namespace {

constexpr double kDefaultBaseMs = 1000;
constexpr double kDefaultMaxMs = 3'600'000;
// Every whole number up to it is exact.
constexpr double kLargestMs = 1e15;

int script_config_get(lua_State* lua) {
  std::size_t size = 0;
  const char* key = luaL_checklstring(lua, 1, &size);
  CallContext& call = context_of(lua);
  call.budget.charge(lua, 1 + size / 16);
  call.saw_more = true;
  const auto found = call.config.find(absl::string_view(key, size));
  if (found == call.config.end()) {
    lua_pushnil(lua);
  } else {
    lua_pushlstring(lua, found->second.data(), found->second.size());
  }
  return 1;
}

double milliseconds_argument(lua_State* lua, int index, double fallback) {
  const double value = luaL_optnumber(lua, index, fallback);
  luaL_argcheck(lua, value >= 0 && value <= kLargestMs, index, "not a number of milliseconds");
  return value;
}

}  // namespace

void push_config_library(lua_State* lua) {
  lua_createtable(lua, 0, 1);
  lua_pushcfunction(lua, script_config_get);
  lua_setfield(lua, -2, "get");
}

int script_backoff(lua_State* lua) {
  const double n = luaL_checknumber(lua, 1);
  luaL_argcheck(lua, !std::isnan(n), 1, "not a number");
  const double base = milliseconds_argument(lua, 2, kDefaultBaseMs);
  const double most = milliseconds_argument(lua, 3, kDefaultMaxMs);
  const double jitter = luaL_optnumber(lua, 4, 0);
  luaL_argcheck(lua, jitter >= 0 && jitter <= 1, 4, "must be from 0 to 1");
  // Beyond 2^64 nothing grows any more, since everything is at its most.
  double wait = std::min(base * std::exp2(std::clamp(n - 1, 0.0, 64.0)), most);
  if (jitter > 0) wait *= 1 + jitter * (2 * context_of(lua).random.next_unit() - 1);
  lua_pushinteger(lua, static_cast<lua_Integer>(std::floor(std::min(wait, most))));
  return 1;
}

int script_log(lua_State* lua) {
  luaL_checkany(lua, 1);
  CallContext& call = context_of(lua);
  call.budget.charge(lua, 100);
  if (call.log.size() >= kMaxLogLines) return 0;
  push_text_of(lua, 1);
  std::size_t size = 0;
  const char* text = lua_tolstring(lua, -1, &size);
  call.log.push_back(clean_text({text, size}, kMaxLogLineBytes));
  return 0;
}

}  // namespace reprise::hooks
