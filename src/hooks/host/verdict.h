// What a hook returned, read strictly: what is not in docs/hooks.md is an error that names it.
// Tables are read raw, so no script runs meanwhile.
#pragma once

#include "hooks/host/call_context.h"
#include "hooks/host/lua.h"

namespace reprise::hooks {

// The value on top of the stack as the answer of `hook`, or HookFault::invalid_result.
CallOutcome read_verdict(lua_State* lua, HookKind hook);

}  // namespace reprise::hooks
