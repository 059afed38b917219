// StopSignals: SIGINT, SIGTERM and SIGHUP as a request to stop, and SIGPIPE ignored.
//
// Until arm() nothing has been promised to anybody, so a signal ends the process at once (exit 0;
// the storage is safe against that as against any crash). After arm() the first signal makes
// wait() return; a second one means that somebody has lost patience and ends the process at once
// with 128 + its number.
// A signal that was ignored when the process started stays so: nohup keeps working.
// Threads: one instance per process, made by the main thread; any thread may take the signals.
#pragma once

namespace reprise::daemon {

class StopSignals {
 public:
  StopSignals();
  ~StopSignals() = default;
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  void arm();
  // Blocks until the first signal since arm(), and returns its number.
  int wait();
};

}  // namespace reprise::daemon
