// The step host: forks a supervisor for each step (step_runner.h, step_wire.h).
//
// A supervisor that ends as it should leaves nothing behind. One that is killed leaves what it had
// to us, who are the next reaper above: all that is below us and not below a supervisor is killed.
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "base/helper_process.h"
#include "worker/descriptor_limit.h"
#include "worker/process_tree.h"
#include "worker/step_process.h"
#include "worker/step_supervisor.h"
#include "worker/step_wire.h"

namespace reprise::worker {
namespace {

// For the lock of a former step host, which ends as soon as it can.
constexpr int kLockPauseMs = 10;
// One look may pass between a process that forks and ends, and its child.
constexpr int kQuietLooks = 3;

class StepHost {
 public:
  StepHost(int server, UniqueFd signals) : server_(server), signals_(std::move(signals)) {}

  int serve();

 private:
  bool take_lock();
  void watch();
  void take_request();
  void start(StepId step, StepFds fds);
  void reap();
  void kill_orphans();
  void tell(HostNews news, StepId step = 0, int error = 0) {
    (void)send_struct(server_.get(), HostReport{.news = news, .error = error, .step = step});
  }

  UniqueFd server_;  // none: it is gone
  const UniqueFd signals_;
  UniqueFd lock_;
  std::map<pid_t, StepId> supervisors_;
  std::vector<StepId> abandoned_;  // their supervisors were killed, something may be left
  TreeKiller killer_;
  int quiet_looks_ = 0;
};

int StepHost::serve() {
  if (!take_lock()) return 1;
  tell(HostNews::ready);
  while (server_ || !supervisors_.empty() || !abandoned_.empty()) watch();
  return 0;
}

// False: it cannot be had, or the server is gone.
bool StepHost::take_lock() {
  std::array<char, sizeof(HostBegin) + PATH_MAX> message{};
  const auto got = receive_message(server_.get(), {message.data(), message.size() - 1});
  HostBegin begin;
  if (!got || *got <= sizeof(begin)) return false;
  std::memcpy(&begin, message.data(), sizeof(begin));
  limit_descriptors(begin.descriptors);
  const char* const path = message.data() + sizeof(begin);
  lock_ = UniqueFd(open(path, O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
  pollfd server{.fd = server_.get(), .events = POLLRDHUP};
  while (!lock_ || flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (!lock_ || (errno != EWOULDBLOCK && errno != EINTR)) {
      tell(HostNews::no_lock, 0, errno);
      return false;
    }
    if (poll(&server, 1, kLockPauseMs) == 1) return false;
  }
  return true;
}

void StepHost::watch() {
  std::array<pollfd, 2> watched = {pollfd{.fd = signals_.get(), .events = POLLIN},
                                   pollfd{.fd = server_.get(), .events = POLLIN}};
  poll(watched.data(), watched.size(), milliseconds_until(killer_.next_look()));
  if (watched[0].revents != 0) {
    signalfd_siginfo seen{};
    while (read(signals_.get(), &seen, sizeof(seen)) > 0) {
    }
    reap();
  }
  if (watched[1].revents != 0) take_request();
  if (killer_.is_due()) kill_orphans();
}

void StepHost::take_request() {
  StepRequest request;
  std::array<UniqueFd, kFdsOfStep> fds;
  const auto got =
      receive_message(server_.get(), {reinterpret_cast<char*>(&request), sizeof(request)}, fds);
  if (!got || *got != sizeof(request)) return server_.reset();
  // They are cut off when we have as many as we may.
  if (!fds.back()) return tell(HostNews::failed, request.step, EMFILE);
  start(request.step, {.control = std::move(fds[0]),
                       .in = std::move(fds[1]),
                       .out = std::move(fds[2]),
                       .err = std::move(fds[3]),
                       .spec = std::move(fds[4])});
}

void StepHost::start(StepId step, StepFds fds) {
  const pid_t host = getpid();
  const pid_t child = fork();
  if (child == 0) run_supervisor(host, lock_.get(), std::move(fds));
  if (child < 0) return tell(HostNews::failed, step, errno);
  supervisors_.emplace(child, step);
  tell(HostNews::taken, step);
}

void StepHost::reap() {
  int status = 0;
  for (pid_t child = 0; (child = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
    const auto found = supervisors_.find(child);
    if (found == supervisors_.end()) continue;
    if (WIFSTOPPED(status)) {
      kill(child, SIGCONT);  // a step must not get rid of it in this way either
      continue;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      tell(HostNews::gone, found->second);
    } else {
      abandoned_.push_back(found->second);
      quiet_looks_ = 0;
      killer_.begin({});
    }
    supervisors_.erase(found);
  }
}

void StepHost::kill_orphans() {
  const bool found = killer_.look([&](pid_t pid) { return supervisors_.contains(pid); });
  quiet_looks_ = found ? 0 : quiet_looks_ + 1;
  if (quiet_looks_ < kQuietLooks) return;
  killer_.end();
  for (const StepId step : std::exchange(abandoned_, {})) tell(HostNews::gone, step);
}

}  // namespace

int run_step_host() {
  close_descriptors_but({kHelperSocketFd});
  prctl(PR_SET_NAME, "step-host");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Somebody may have stopped us: then the end of the server would not end us.
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  UniqueFd signals = block_signals({SIGCHLD});
  if (!signals) return 1;
  return StepHost(kHelperSocketFd, std::move(signals)).serve();
}

}  // namespace reprise::worker
