// The supervisor of a step: a process that the step host forks for it (step_runner.h).
//
// It starts bash in a session of its own and is the reaper of all that is below: whatever daemon a
// step makes, it stays below its supervisor. When bash has ended, or on StepOrder::kill, or when
// the server or the step host is gone, everything gets SIGKILL until nothing is left; only then it
// tells the server. After StepOrder::terminate what bash leaves behind has time until the kill.
#pragma once

#include <sys/types.h>

#include "worker/step_wire.h"

namespace reprise::worker {

// For a process just forked from `host`. It keeps `lock` open for as long as it lives.
[[noreturn]] void run_supervisor(pid_t host, int lock, StepFds fds);

}  // namespace reprise::worker
