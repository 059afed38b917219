// What scripts can use: exactly the list of docs/hooks.md, under the limits.
//
// Lua's own libraries are opened once for each state and never shown: functions that can do harm
// are left out, functions that can do much work without an instruction are wrapped so that it is
// charged, and scripts see only empty tables in front of the real ones.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "hooks/host/lua.h"

namespace reprise::hooks {

// Pushes the table of all that scripts see, for the __index of their environments. Once for each
// state; raises an error when there is no memory.
void push_environment(lua_State* lua);

// --- For the parts of the library. Each opens one and leaves the table of its functions, real and
// writable, on the stack.

void push_base_functions(lua_State* lua);
void push_string_library(lua_State* lua);
void push_table_library(lua_State* lua);
void push_math_library(lua_State* lua);
void push_utf8_library(lua_State* lua);
void push_json_library(lua_State* lua);
void push_config_library(lua_State* lua);
int script_backoff(lua_State* lua);
int script_log(lua_State* lua);

struct Wrapper {
  const char* name;
  lua_CFunction function;  // its first upvalue is the function of Lua's own library
};
// Pushes one of Lua's own libraries.
void push_original(lua_State* lua, const char* name, lua_CFunction open);
// Replaces the function of that name in the table on top of the stack.
void wrap(lua_State* lua, Wrapper wrapper);
// Leaves only these names in the table on top of the stack, whatever this build of Lua has.
void keep_only(lua_State* lua, std::span<const std::string_view> names);
// In a wrapper: goes on with the function it stands for.
int call_original(lua_State* lua);
// Charges for the bytes of all arguments that are strings: one instruction for so many of them.
void charge_strings(lua_State* lua, std::uint64_t bytes_per_instruction);

// tostring() without addresses: pushes it.
void push_text_of(lua_State* lua, int index);

// json.null, and the metatable that marks a table as an array.
void push_json_null(lua_State* lua);
bool is_json_null(lua_State* lua, int index);
inline constexpr const char* kArrayMetatable = "reprise.array";
inline constexpr const char* kMessageMetatable = "reprise.message";

}  // namespace reprise::hooks
