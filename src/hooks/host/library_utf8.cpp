#include "hooks/host/call_context.h"
#include "hooks/host/library.h"

namespace reprise::hooks {
namespace {

int reading(lua_State* lua) {
  charge_strings(lua, 4);
  return call_original(lua);
}

int script_char(lua_State* lua) {
  context_of(lua).budget.charge(lua, static_cast<std::uint64_t>(lua_gettop(lua)));
  return call_original(lua);
}

constexpr std::string_view kNames[] = {"char",  "charpattern", "codepoint",
                                       "codes", "len",         "offset"};
constexpr Wrapper kWrapped[] = {
    {"char", script_char}, {"codepoint", reading}, {"len", reading}, {"offset", reading}};

}  // namespace

void push_utf8_library(lua_State* lua) {
  push_original(lua, LUA_UTF8LIBNAME, luaopen_utf8);
  keep_only(lua, kNames);
  for (const Wrapper& wrapper : kWrapped) wrap(lua, wrapper);
}

}  // namespace reprise::hooks
