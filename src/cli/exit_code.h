// What a shell sees of a command (docs/cli.md, "Exit codes").
#pragma once

#include "base/errc.h"

namespace reprise::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitRefused = 1;      // by the server, or not found
inline constexpr int kExitUsage = 2;        // the command line itself is wrong
inline constexpr int kExitUnreachable = 3;  // no answer from a server
// How a run ended, beyond 0 and 1; `run` and `run wait` only.
inline constexpr int kExitCancelled = 4;
inline constexpr int kExitLost = 5;
inline constexpr int kExitStillRunning = 6;  // when the time to wait was over
// `spool drain` only.
inline constexpr int kExitSpoolLocked = 4;  // another process drains
inline constexpr int kExitMoreToSend = 5;   // stopped early, or a batch failed

constexpr int exit_code_for(Errc code) {
  return code == Errc::unreachable ? kExitUnreachable : kExitRefused;
}

}  // namespace reprise::cli
