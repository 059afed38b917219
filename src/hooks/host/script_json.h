// json.decode and json.encode of scripts. Their work is charged to the call, their results count
// as its memory.
#pragma once

#include "hooks/host/lua.h"

namespace reprise::hooks {

inline constexpr int kMaxScriptJsonDepth = 100;

int script_json_decode(lua_State* lua);
int script_json_encode(lua_State* lua);

}  // namespace reprise::hooks
