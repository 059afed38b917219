// The lock around a process that runs scripts of strangers.
//
// Afterwards the process can read and write one socket, use the memory it may have, look at the
// clock, and end; nothing else. Any other system call ends it with SIGSYS. So a script that breaks
// out of Lua finds itself in a process that has nothing and may do nothing.
#pragma once

#include "base/result.h"

namespace reprise::hooks {

// Closes every descriptor but `socket`, and locks the calling process in for good. For a process
// with one thread. Errc::io: it could not be done, and the process must end at once.
Status enter_sandbox(int socket);

}  // namespace reprise::hooks
