// Starts the bash of a step, from the supervisor (step_supervisor.h).
//
// It begins in a session, and so a process group, of its own, with the default signals, three
// descriptors and nothing else of ours; the kernel kills it when the supervisor ends.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"
#include "worker/step_wire.h"

namespace reprise::worker {

class StepShell {
 public:
  // False: there is no process; failure() says why.
  bool start(const StepFds& fds);
  pid_t pid() const { return pid_; }
  // Once it has ended: why there never was a bash; empty: there was.
  std::string failure();
  int error() const { return error_; }  // errno of that

 private:
  pid_t pid_ = 0;
  SpecView spec_;
  UniqueFd failures_;  // what became of the way from fork to exec
  std::string failure_;
  int error_ = 0;
};

}  // namespace reprise::worker
