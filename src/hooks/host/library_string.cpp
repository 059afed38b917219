#include <cstring>

#include "hooks/host/call_context.h"
#include "hooks/host/library.h"

namespace reprise::hooks {
namespace {

// Of what copies bytes: so many in the time of an instruction.
constexpr std::uint64_t kCopiedBytes = 32;

int copying(lua_State* lua) {
  charge_strings(lua, kCopiedBytes);
  return call_original(lua);
}

// The matcher cannot be interrupted. What a pattern makes of its subject is not known before, but
// it is at least looked at.
int matching(lua_State* lua) {
  charge_strings(lua, 1);
  return call_original(lua);
}

int script_find(lua_State* lua) {
  const bool plain = lua_toboolean(lua, 4) != 0;
  charge_strings(lua, plain ? kCopiedBytes : 1);
  return call_original(lua);
}

// One value for each byte.
int script_byte(lua_State* lua) {
  const lua_Integer first = luaL_optinteger(lua, 2, 1);
  if (luaL_optinteger(lua, 3, first) != first) charge_strings(lua, 2);
  return call_original(lua);
}

int script_char(lua_State* lua) {
  context_of(lua).budget.charge(lua, static_cast<std::uint64_t>(lua_gettop(lua)));
  return call_original(lua);
}

int script_rep(lua_State* lua) {
  std::size_t size = 0;
  std::size_t separator = 0;
  luaL_checklstring(lua, 1, &size);
  const lua_Integer times = luaL_checkinteger(lua, 2);
  luaL_optlstring(lua, 3, "", &separator);
  // Nothing, however often: Lua's own would count to the end.
  if (times <= 0 || size + separator == 0) {
    lua_pushliteral(lua, "");
    return 1;
  }
  CallContext& call = context_of(lua);
  if (static_cast<std::uint64_t>(times) > call.memory.limit_bytes() / (size + separator) + 1) {
    raise_memory_error(lua);
  }
  call.budget.charge(lua, static_cast<std::uint64_t>(times) + static_cast<std::uint64_t>(times) *
                                                                  (size + separator) /
                                                                  kCopiedBytes);
  return call_original(lua);
}

// The arguments of %s that Lua would name by their address become plain text before it sees them;
// the address that is asked for with %p stays a secret.
int script_format(lua_State* lua) {
  charge_strings(lua, kCopiedBytes);
  std::size_t size = 0;
  const char* format = luaL_checklstring(lua, 1, &size);
  const char* const end = format + size;
  int argument = 1;
  for (const char* c = format; c < end; ++c) {
    if (*c != '%') continue;
    if (++c == end) break;
    if (*c == '%') continue;
    ++argument;
    while (c < end && std::memchr("-+ #0123456789.", *c, 15) != nullptr) ++c;
    if (c == end) break;
    if (*c == 'p') return luaL_error(lua, "invalid conversion '%%p' to 'format'");
    const int type = lua_type(lua, argument);
    if (*c == 's' && (type == LUA_TLIGHTUSERDATA || type > LUA_TSTRING)) {
      push_text_of(lua, argument);
      lua_replace(lua, argument);
    }
  }
  return call_original(lua);
}

// Not dump.
constexpr std::string_view kNames[] = {"byte",    "char",  "find",   "format", "gmatch",   "gsub",
                                       "len",     "lower", "match",  "pack",   "packsize", "rep",
                                       "reverse", "sub",   "unpack", "upper"};
constexpr Wrapper kWrapped[] = {
    {"byte", script_byte}, {"char", script_char}, {"find", script_find}, {"format", script_format},
    {"gmatch", matching},  {"gsub", matching},    {"lower", copying},    {"match", matching},
    {"pack", copying},     {"packsize", copying}, {"rep", script_rep},   {"reverse", copying},
    {"sub", copying},      {"unpack", copying},   {"upper", copying},
};

}  // namespace

void push_string_library(lua_State* lua) {
  push_original(lua, LUA_STRLIBNAME, luaopen_string);
  keep_only(lua, kNames);
  for (const Wrapper& wrapper : kWrapped) wrap(lua, wrapper);
}

}  // namespace reprise::hooks
