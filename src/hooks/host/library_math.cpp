#include <cstdint>

#include "hooks/host/call_context.h"
#include "hooks/host/library.h"

namespace reprise::hooks {
namespace {

// Not randomseed, and nothing of what a build may keep for older versions.
constexpr std::string_view kNames[] = {
    "abs",  "acos",   "asin", "atan", "ceil",       "cos",       "deg",        "exp",  "floor",
    "fmod", "huge",   "log",  "max",  "maxinteger", "min",       "mininteger", "modf", "pi",
    "rad",  "random", "sin",  "sqrt", "tan",        "tointeger", "type",       "ult"};

// 0 <= result <= most, each as likely as the others.
std::uint64_t random_up_to(CallRandom& random, std::uint64_t most) {
  if (most + 1 == 0) return random.next_u64();
  const std::uint64_t range = most + 1;
  // Numbers from the last, incomplete range would favour small results.
  const std::uint64_t unfair = -range % range;
  std::uint64_t number = random.next_u64();
  while (number < unfair) number = random.next_u64();
  return number % range;
}

// As Lua's own, from a generator that starts anew with each call.
int script_random(lua_State* lua) {
  CallRandom& random = context_of(lua).random;
  lua_Integer low = 1;
  lua_Integer high = 0;
  switch (lua_gettop(lua)) {
    case 0:
      lua_pushnumber(lua, random.next_unit());
      return 1;
    case 1:
      high = luaL_checkinteger(lua, 1);
      if (high == 0) {
        lua_pushinteger(lua, static_cast<lua_Integer>(random.next_u64()));
        return 1;
      }
      break;
    case 2:
      low = luaL_checkinteger(lua, 1);
      high = luaL_checkinteger(lua, 2);
      break;
    default:
      return luaL_error(lua, "wrong number of arguments");
  }
  luaL_argcheck(lua, low <= high, lua_gettop(lua), "interval is empty");
  const std::uint64_t offset =
      random_up_to(random, static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low));
  lua_pushinteger(lua, static_cast<lua_Integer>(static_cast<std::uint64_t>(low) + offset));
  return 1;
}

}  // namespace

void push_math_library(lua_State* lua) {
  push_original(lua, LUA_MATHLIBNAME, luaopen_math);
  keep_only(lua, kNames);
  lua_pushcfunction(lua, script_random);
  lua_setfield(lua, -2, "random");
}

}  // namespace reprise::hooks
