// StepRunner: runs shell commands so that nothing of them survives.
//
// The server has many threads and much memory, and may be killed: it never forks. It starts the
// step host (`reprise step-host`, the same binary, one thread), which forks a supervisor for each
// step. The supervisor starts bash in a session of its own, is the reaper of everything below it,
// and ends it all when bash has ended, when it is told to, or when the server is gone: the
// server's end of the control socket closes with it, however it ends.
//
// The step host holds a lock on a file for as long as it or any supervisor lives. The next server's
// step host waits for it, so that no step runs while one of a former server still does.
//
// Threads: start() and stop() from any. Observers are called on the runner's own thread, one at a
// time; they must not block for long (writing to a file is fine), and may call start() and stop().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace reprise::worker {

struct StepSpec {
  std::string script;                    // for bash -euo pipefail
  std::string directory;                 // where it runs
  std::vector<std::string> environment;  // "NAME=value", all of it
  std::string input;                     // its standard input
};

enum class StepStream : std::uint8_t { out, err };

struct StepEnd {
  enum class Kind : std::uint8_t {
    exited,       // code: its exit code
    signalled,    // code: the signal
    not_started,  // detail says why: no such directory, no process; code: E2BIG when it is too
                  // large to be started, else whatever
    lost,  // the step host was killed, or (code: SIGKILL) its supervisor alone; nothing of it
           // is left
  };
  Kind kind{};
  int code = 0;
  std::string detail;
};

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void on_output(StepStream stream, std::string_view bytes) = 0;
  // The last call. Everything that the step has started has ended, and all its output was told.
  virtual void on_end(const StepEnd& end) = 0;
};

using StepId = std::uint64_t;  // never 0

enum class StopManner : std::uint8_t {
  gently,   // SIGTERM, and SIGKILL to what is left after StepRunnerOptions::grace
  at_once,  // SIGKILL
};

struct StepRunnerOptions {
  std::string program;    // what to start as step host; empty: this very program
  std::string lock_file;  // made if missing
  Duration grace = std::chrono::seconds(2);
  std::function<void(std::string_view)> warn;
};

class StepRunner {
 public:
  static Result<std::unique_ptr<StepRunner>> make(StepRunnerOptions options);
  virtual ~StepRunner() = default;  // ends all steps at once, and waits until nothing is left

  // `ready` is called, on the runner's thread, once steps of former servers have ended and steps
  // can be started; at once when that is so already. Steps started before wait until then.
  virtual void when_ready(std::function<void()> ready) = 0;
  // Each observer hears of its end exactly once.
  virtual StepId start(StepSpec spec, std::shared_ptr<StepObserver> observer) = 0;
  // Unknown ids are fine: it may just have ended.
  virtual void stop(StepId id, StopManner manner) = 0;
};

// What `reprise step-host` does; not for people. Returns the exit code.
int run_step_host();

}  // namespace reprise::worker
