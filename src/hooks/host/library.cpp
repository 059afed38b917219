#include "hooks/host/library.h"

#include <algorithm>

#include "hooks/host/call_context.h"

namespace reprise::hooks {
namespace {

int refuse_change(lua_State* lua) {
  return luaL_error(lua, "the library '%s' cannot be changed",
                    lua_tostring(lua, lua_upvalueindex(1)));
}

// In place of the table on top of the stack: an empty one that reads from it.
void make_read_only(lua_State* lua, const char* name) {
  lua_createtable(lua, 0, 0);
  lua_createtable(lua, 0, 3);
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  lua_pushstring(lua, name);
  lua_pushcclosure(lua, refuse_change, 1);
  lua_setfield(lua, -2, "__newindex");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_setmetatable(lua, -2);
  lua_remove(lua, -2);
}

// The methods of strings are those of the library, not Lua's own.
void use_for_string_methods(lua_State* lua) {
  lua_pushliteral(lua, "");
  lua_getmetatable(lua, -1);
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  lua_pop(lua, 2);
}

void forget_originals(lua_State* lua) {
  // Opening libraries left their real tables here.
  lua_createtable(lua, 0, 0);
  lua_rawseti(lua, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
  lua_pushnil(lua);
  lua_setfield(lua, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
}

}  // namespace

void push_environment(lua_State* lua) {
  push_base_functions(lua);
  push_string_library(lua);
  use_for_string_methods(lua);
  make_read_only(lua, "string");
  lua_setfield(lua, -2, "string");
  const struct {
    const char* name;
    void (*push)(lua_State*);
  } libraries[] = {{"table", push_table_library},
                   {"math", push_math_library},
                   {"utf8", push_utf8_library},
                   {"json", push_json_library},
                   {"config", push_config_library}};
  for (const auto& library : libraries) {
    library.push(lua);
    make_read_only(lua, library.name);
    lua_setfield(lua, -2, library.name);
  }
  lua_pushcfunction(lua, script_backoff);
  lua_setfield(lua, -2, "backoff");
  lua_pushcfunction(lua, script_log);
  lua_setfield(lua, -2, "log");
  forget_originals(lua);
}

void push_original(lua_State* lua, const char* name, lua_CFunction open) {
  luaL_requiref(lua, name, open, 0);
}

void wrap(lua_State* lua, Wrapper wrapper) {
  lua_getfield(lua, -1, wrapper.name);
  lua_pushcclosure(lua, wrapper.function, 1);
  lua_setfield(lua, -2, wrapper.name);
}

void keep_only(lua_State* lua, std::span<const std::string_view> names) {
  for (lua_pushnil(lua); lua_next(lua, -2) != 0; lua_pop(lua, 1)) {
    if (std::ranges::find(names, std::string_view(lua_tostring(lua, -2))) != names.end()) continue;
    // A field may be cleared while one goes through a table.
    lua_pushvalue(lua, -2);
    lua_pushnil(lua);
    lua_rawset(lua, -5);
  }
}

int call_original(lua_State* lua) { return lua_tocfunction(lua, lua_upvalueindex(1))(lua); }

void charge_strings(lua_State* lua, std::uint64_t bytes_per_instruction) {
  std::uint64_t bytes = 0;
  for (int i = lua_gettop(lua); i > 0; --i) {
    if (lua_type(lua, i) == LUA_TSTRING) bytes += lua_rawlen(lua, i);
  }
  context_of(lua).budget.charge(lua, 1 + bytes / bytes_per_instruction);
}

}  // namespace reprise::hooks
