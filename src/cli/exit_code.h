// What a shell sees of a command (docs/cli.md, "Exit codes").
#pragma once

#include "base/errc.h"

namespace reprise::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitRefused = 1;      // by the server, or not found
inline constexpr int kExitUsage = 2;        // the command line itself is wrong
inline constexpr int kExitUnreachable = 3;  // no answer from a server

constexpr int exit_code_for(Errc code) {
  return code == Errc::unreachable ? kExitUnreachable : kExitRefused;
}

}  // namespace reprise::cli
