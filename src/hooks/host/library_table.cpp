#include <bit>
#include <cstdint>

#include "hooks/host/call_context.h"
#include "hooks/host/library.h"

namespace reprise::hooks {
namespace {

constexpr lua_Integer kMaxRange = 1'000'000;

// Charges for the numbers from `first` to `last`, which Lua goes through one by one whether there
// is anything or not.
void charge_range(lua_State* lua, lua_Integer first, lua_Integer last) {
  if (last < first) return;
  const std::uint64_t count =
      static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first) + 1;
  // Also the whole range of numbers, whose count is 0.
  if (count - 1 >= static_cast<std::uint64_t>(kMaxRange)) {
    luaL_error(lua, "too many elements, at most %I at once", kMaxRange);
  }
  context_of(lua).budget.charge(lua, count);
}

lua_Integer length(lua_State* lua, int index) {
  luaL_checktype(lua, index, LUA_TTABLE);
  return luaL_len(lua, index);
}

int script_concat(lua_State* lua) {
  const lua_Integer size = length(lua, 1);
  charge_range(lua, luaL_optinteger(lua, 3, 1), luaL_optinteger(lua, 4, size));
  return call_original(lua);
}

// Both move what lies behind the place.
int script_insert(lua_State* lua) {
  const lua_Integer size = length(lua, 1);
  if (lua_gettop(lua) == 3) charge_range(lua, luaL_checkinteger(lua, 2), size);
  return call_original(lua);
}

int script_remove(lua_State* lua) {
  const lua_Integer size = length(lua, 1);
  charge_range(lua, luaL_optinteger(lua, 2, size), size);
  return call_original(lua);
}

int script_move(lua_State* lua) {
  charge_range(lua, luaL_checkinteger(lua, 2), luaL_checkinteger(lua, 3));
  return call_original(lua);
}

int script_pack(lua_State* lua) {
  charge_range(lua, 1, lua_gettop(lua));
  return call_original(lua);
}

int script_unpack(lua_State* lua) {
  const lua_Integer first = luaL_optinteger(lua, 2, 1);
  const lua_Integer last = lua_isnoneornil(lua, 3) ? luaL_len(lua, 1) : luaL_checkinteger(lua, 3);
  charge_range(lua, first, last);
  return call_original(lua);
}

// Comparisons that need no function of the script are made without an instruction.
int script_sort(lua_State* lua) {
  const lua_Integer size = length(lua, 1);
  if (size > 1) {
    charge_range(lua, 1, size);
    const auto count = static_cast<std::uint64_t>(size);
    context_of(lua).budget.charge(lua,
                                  4 * count * static_cast<std::uint64_t>(std::bit_width(count)));
  }
  return call_original(lua);
}

constexpr std::string_view kNames[] = {"concat", "insert", "move",  "pack",
                                       "remove", "sort",   "unpack"};
constexpr Wrapper kWrapped[] = {
    {"concat", script_concat}, {"insert", script_insert}, {"move", script_move},
    {"pack", script_pack},     {"remove", script_remove}, {"sort", script_sort},
    {"unpack", script_unpack},
};

}  // namespace

void push_table_library(lua_State* lua) {
  push_original(lua, LUA_TABLIBNAME, luaopen_table);
  keep_only(lua, kNames);
  for (const Wrapper& wrapper : kWrapped) wrap(lua, wrapper);
}

}  // namespace reprise::hooks
