#include "worker/step_host_link.h"

#include <poll.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/helper_process.h"
#include "base/pidfd.h"
#include "worker/step_process.h"

namespace reprise::worker {
namespace {

void reap(pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

Result<std::unique_ptr<StepHostLink>> StepHostLink::start(const std::string& program,
                                                          const std::string& lock_file,
                                                          std::uint64_t descriptors) {
  auto started = start_helper(program, "step-host");
  if (!started) return started.error();
  std::unique_ptr<StepHostLink> link(new StepHostLink(std::move(started->socket), started->pid));
  const HostBegin head{.descriptors = descriptors};
  std::string begin(reinterpret_cast<const char*>(&head), sizeof(head));
  begin.append(lock_file);
  // Should it be gone already, receive() tells.
  (void)send_message(link->fd(), std::string_view(begin));
  return link;
}

StepHostLink::~StepHostLink() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);  // not reaped yet, so the number is still its own
  reap(pid_);
}

bool StepHostLink::request(StepId step, const StepFds& fds) {
  const std::array<int, kFdsOfStep> numbers = {fds.control.get(), fds.in.get(), fds.out.get(),
                                               fds.err.get(), fds.spec.get()};
  kill(pid_, SIGCONT);  // somebody may have stopped it
  return send_struct(socket_.get(), StepRequest{.step = step}, numbers);
}

Result<std::optional<HostReport>> StepHostLink::receive() {
  HostReport report;
  const auto got =
      receive_message(socket_.get(), {reinterpret_cast<char*>(&report), sizeof(report)});
  if (!got && errno == EAGAIN) return std::optional<HostReport>{};
  if (!got || *got != sizeof(report)) return Error{Errc::io, "the step host has ended"};
  return std::optional<HostReport>(report);
}

bool StepHostLink::close(std::chrono::milliseconds patience) {
  socket_.reset();
  kill(pid_, SIGCONT);  // as in request()
  const UniqueFd pidfd(pidfd_open(pid_, 0));
  pollfd end{.fd = pidfd.get(), .events = POLLIN};
  const auto until = std::chrono::steady_clock::now() + patience;
  int seen = 0;
  do {
    seen = poll(&end, 1, milliseconds_until(until));
  } while (seen < 0 && errno == EINTR);
  const bool ended = !pidfd || seen == 1;
  if (ended) reap(pid_);
  pid_ = 0;
  return ended;
}

}  // namespace reprise::worker
