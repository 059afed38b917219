#include "hooks/host/call_context.h"
#include "hooks/host/library.h"

namespace reprise::hooks {
namespace {

// Runs the function below `arguments` on the stack. False: it failed, and the error is in its
// place. What cannot be caught is not.
bool try_call(lua_State* lua, int arguments) {
  const int status = lua_pcall(lua, arguments, LUA_MULTRET, 0);
  if (status == LUA_OK) return true;
  Budget& budget = context_of(lua).budget;
  budget.pass_on(lua);
  // No error of Lua but an exception of C++, and the only one there is means that no memory is
  // left.
  if (status < LUA_OK) budget.stop(lua, Budget::Stop::memory);
  return false;
}

int script_pcall(lua_State* lua) {
  luaL_checkany(lua, 1);
  const bool succeeded = try_call(lua, lua_gettop(lua) - 1);
  luaL_checkstack(lua, 1, nullptr);
  lua_pushboolean(lua, succeeded ? 1 : 0);
  lua_insert(lua, 1);
  return lua_gettop(lua);
}

// Lua's own calls the handler where the error is raised, with all counting of instructions off when
// it was raised for too many. Here the handler is a call like any other, after the fact.
int script_xpcall(lua_State* lua) {
  luaL_checktype(lua, 2, LUA_TFUNCTION);
  const int arguments = lua_gettop(lua) - 2;
  lua_pushvalue(lua, 1);
  lua_insert(lua, 3);
  // function, handler, function, arguments...
  const bool succeeded = try_call(lua, arguments);
  if (!succeeded) {
    lua_pushvalue(lua, 2);
    lua_insert(lua, 3);
    try_call(lua, 1);
    lua_settop(lua, 3);
  }
  luaL_checkstack(lua, 1, nullptr);
  lua_pushboolean(lua, succeeded ? 1 : 0);
  lua_replace(lua, 2);
  return lua_gettop(lua) - 1;
}

int script_tostring(lua_State* lua) {
  luaL_checkany(lua, 1);
  push_text_of(lua, 1);
  return 1;
}

int script_tonumber(lua_State* lua) {
  charge_strings(lua, 8);
  return call_original(lua);
}

int script_select(lua_State* lua) {
  context_of(lua).budget.charge(lua, static_cast<std::uint64_t>(lua_gettop(lua)) / 4);
  return call_original(lua);
}

constexpr const char* kUnchanged[] = {"assert", "error", "ipairs", "next", "pairs", "type"};
constexpr Wrapper kWrapped[] = {{"select", script_select}, {"tonumber", script_tonumber}};

}  // namespace

void push_base_functions(lua_State* lua) {
  lua_createtable(lua, 0, 32);
  push_original(lua, LUA_GNAME, luaopen_base);
  for (const Wrapper& wrapper : kWrapped) {
    wrap(lua, wrapper);
    lua_getfield(lua, -1, wrapper.name);
    lua_setfield(lua, -3, wrapper.name);
  }
  for (const char* name : kUnchanged) {
    lua_getfield(lua, -1, name);
    lua_setfield(lua, -3, name);
  }
  lua_pop(lua, 1);
  lua_pushcfunction(lua, script_pcall);
  lua_setfield(lua, -2, "pcall");
  lua_pushcfunction(lua, script_xpcall);
  lua_setfield(lua, -2, "xpcall");
  lua_pushcfunction(lua, script_tostring);
  lua_setfield(lua, -2, "tostring");
}

void push_text_of(lua_State* lua, int index) {
  switch (lua_type(lua, index)) {
    case LUA_TSTRING:
      lua_pushvalue(lua, index);
      break;
    case LUA_TNUMBER:
    case LUA_TBOOLEAN:
    case LUA_TNIL:
      luaL_tolstring(lua, index, nullptr);
      break;
    default:
      if (is_json_null(lua, index)) {
        lua_pushliteral(lua, "null");
      } else {
        lua_pushstring(lua, luaL_typename(lua, index));
      }
  }
}

}  // namespace reprise::hooks
