// The `msg` of a hook: a table that fills itself as fields are asked for.
#pragma once

#include "hooks/host/lua.h"

namespace reprise::hooks {

// Pushes the metatable of messages. Once for each state.
void push_message_metatable(lua_State* lua);

// Of the message of the call that runs: gives the table at `index` all its fields.
void fill_message(lua_State* lua, int index);

}  // namespace reprise::hooks
