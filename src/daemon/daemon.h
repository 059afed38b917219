// The daemon: storage, broker and servers put together, from start to stop.
//
// Order matters. Up: storage, clock, broker, workers, servers; down: the servers first, so that the
// answers under way still come, then the workers, whose jobs go back, then the broker, which
// commits and syncs what it accepted, then the storage. A storage that fails while serving ends the
// process at once and without any further reply: what was not answered was not promised, and only a
// restart can tell what reached the disk.
#pragma once

#include <string>

#include "daemon/settings.h"

namespace reprise::daemon {

inline constexpr int kExitStopped = 0;
inline constexpr int kExitCannotStart = 1;
inline constexpr int kExitBadSettings = 2;
inline constexpr int kExitStorageFailed = 70;  // EX_SOFTWARE of sysexits.h

// Where the real "host:port" is written once requests are answered; empty: nowhere.
struct PortFiles {
  std::string http;
  std::string beanstalk;
};

// Serves until a signal asks it to stop, and returns the exit code. Once per process: it takes over
// the signals and the default logger.
int run_daemon(const LoadedSettings& loaded, const PortFiles& port_files);

}  // namespace reprise::daemon
