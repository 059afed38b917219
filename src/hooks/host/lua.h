// Lua 5.4, the build whose errors are C++ exceptions: destructors run. So catch (...) would swallow
// errors of Lua, and nothing here does that.
#pragma once

#include <lua.hpp>
