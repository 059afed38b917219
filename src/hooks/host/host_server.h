// The process that runs the hooks of one queue, or tries one script.
#pragma once

#include "hooks/protocol.h"

namespace reprise::hooks {

// How such a process ends by itself.
inline constexpr int kHostDone = 0;            // the broker closed the socket
inline constexpr int kHostNotUnderstood = 70;  // a message made no sense
inline constexpr int kHostNotLockedIn = 71;    // there is no sandbox to be had, so no script either

// Locks the process in, then answers what comes over `socket` until that is closed. `progress` is
// memory that the broker reads. In a process with one thread that has nothing else to do.
[[noreturn]] void run_host(int socket, HostProgress& progress);

}  // namespace reprise::hooks
