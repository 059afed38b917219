// NurseryLink: the broker's side of a nursery (nursery.h).
//
// Threads: one owner, no locks. The thread that starts a nursery must live as long as it is
// wanted: the kernel ends it with that thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "hooks/nursery.h"

namespace reprise::hooks {

class NurseryLink {
 public:
  // `program` is started with the argument "hook-host"; empty: this very program.
  // Errc::io: it cannot be.
  static Result<std::unique_ptr<NurseryLink>> start(const std::string& program);
  ~NurseryLink();  // ends it, and with it its hosts; takes milliseconds
  NurseryLink(const NurseryLink&) = delete;
  NurseryLink& operator=(const NurseryLink&) = delete;

  int control_fd() const { return control_.get(); }  // readable: something to receive
  pid_t pid() const { return pid_; }

  // Errc::io: it is gone, or so far behind that it is as good as gone.
  Status request(std::uint32_t host);

  struct Report {
    NurseryReport what;
    // Of a host that started.
    UniqueFd socket;
    UniqueFd pidfd;
    UniqueFd page;
  };
  // Nothing: there is none for now. Errc::io: the nursery is gone.
  Result<std::optional<Report>> receive();

  // Asks it to end, which it does when it has ended and reaped its hosts, and waits so long for
  // that before it is killed.
  void close(std::chrono::milliseconds patience);

 private:
  NurseryLink(UniqueFd control, pid_t pid) : control_(std::move(control)), pid_(pid) {}

  UniqueFd control_;
  pid_t pid_;  // 0: reaped
};

}  // namespace reprise::hooks
