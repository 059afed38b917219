// StepHostLink: the server's side of a step host (step_wire.h).
//
// Threads: one owner, no locks.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "worker/step_wire.h"

namespace reprise::worker {

class StepHostLink {
 public:
  // `program` is started with the argument "step-host"; empty: this very program.
  // Errc::io: it cannot be.
  static Result<std::unique_ptr<StepHostLink>> start(const std::string& program,
                                                     const std::string& lock_file,
                                                     std::uint64_t descriptors);
  ~StepHostLink();  // kills it; its supervisors end what they have by themselves
  StepHostLink(const StepHostLink&) = delete;
  StepHostLink& operator=(const StepHostLink&) = delete;

  int fd() const { return socket_.get(); }  // readable: something to receive
  // False: it is gone, or takes no more.
  bool request(StepId step, const StepFds& fds);
  // Nothing: there is none for now. Errc::io: the step host is gone.
  Result<std::optional<HostReport>> receive();
  // Has it end, which it does when nothing of any step is left. False: not in that time, and it is
  // left alone.
  bool close(std::chrono::milliseconds patience);

 private:
  StepHostLink(UniqueFd socket, pid_t pid) : socket_(std::move(socket)), pid_(pid) {}

  UniqueFd socket_;
  pid_t pid_;  // 0: reaped, or left alone
};

}  // namespace reprise::worker
