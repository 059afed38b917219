// HostLink: one host process as the broker sees it: its socket, its pidfd, its page.
//
// Nothing here waits. What the host writes is bounded before it is kept.
// Threads: one owner, no locks.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "hooks/call_watch.h"
#include "hooks/nursery_link.h"
#include "hooks/protocol.h"
#include "hooks/steady_time.h"

namespace reprise::hooks {

class HostLink {
 public:
  // Errc::io: its page cannot be mapped; the host is told to end by its closed socket.
  static Result<std::unique_ptr<HostLink>> make(NurseryLink::Report started);
  ~HostLink();  // kills it
  HostLink(const HostLink&) = delete;
  HostLink& operator=(const HostLink&) = delete;

  int socket_fd() const { return socket_.get(); }
  int pidfd() const { return pidfd_.get(); }  // readable: it has ended
  pid_t pid() const { return pid_; }

  template <class Message>
  void send(const Message& message) {
    append_frame(unsent_, message);
  }
  // Writes what the socket takes. A host that has gone loses it, which its pidfd tells.
  void flush();
  bool has_unsent() const { return !unsent_.empty(); }

  enum class Received : std::uint8_t { some, nothing, end };
  Received receive();
  // The next message that is complete. Errc::corrupt: nonsense.
  Result<std::optional<FromHost>> next_message();

  void kill();
  Nanoseconds cpu_time() const;
  std::optional<RunningCall> running_call() const;

 private:
  HostLink(pid_t pid, UniqueFd socket, UniqueFd pidfd, const HostProgress* progress);

  const pid_t pid_;
  UniqueFd socket_;
  UniqueFd pidfd_;
  const HostProgress* const progress_;
  std::string unsent_;
  std::size_t sent_ = 0;  // of unsent_
  std::string received_;
  std::size_t consumed_ = 0;  // of received_
};

}  // namespace reprise::hooks
