#include "worker/step_supervisor.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <set>
#include <string>

#include "worker/process_tree.h"
#include "worker/step_process.h"
#include "worker/step_shell.h"

namespace reprise::worker {
namespace {

// From the kernel when the step host ends. Whatever else there is to wake us from is no harm.
constexpr int kHostEnded = SIGCONT;
// What is in bash's group is mostly gone by then, and nothing has to be looked for: five hundred
// that look at once keep a processor busy.
constexpr std::chrono::milliseconds kBeforeLook(20);
constexpr int kUrgent = -20;
constexpr int kLooksToTerminate = 5;

class Supervisor {
 public:
  Supervisor(pid_t host, StepFds fds, UniqueFd signals)
      : host_(host), fds_(std::move(fds)), signals_(std::move(signals)) {}

  void run();

 private:
  enum class Mode : std::uint8_t { running, terminating, killing };

  bool was_killed_early();
  void watch();
  void take_signals();
  void take_orders();
  void terminate();
  void begin_to_kill();
  void reap();
  void report(StepEnd::Kind kind, int code, const std::string& detail);
  void report_end();

  const pid_t host_;
  StepFds fds_;
  const UniqueFd signals_;
  StepShell shell_;
  Mode mode_ = Mode::running;
  bool shell_reaped_ = false;
  int shell_status_ = 0;
  bool all_gone_ = false;
  bool lost_ = false;  // the step host ended while it ran
  TreeKiller killer_;
};

void Supervisor::run() {
  if (was_killed_early()) {
    return report(StepEnd::Kind::not_started, 0, "it was stopped before it could start");
  }
  if (!shell_.start(fds_)) {
    const std::string failure = shell_.failure();
    return report(StepEnd::Kind::not_started, shell_.error(), failure);
  }
  // Of the pipes only the step has the other ends, or they would never end.
  fds_.in.reset();
  fds_.out.reset();
  fds_.err.reset();
  fds_.spec.reset();
  while (!all_gone_) watch();
  report_end();
}

bool Supervisor::was_killed_early() {
  pollfd control{.fd = fds_.control.get(), .events = POLLIN};
  return poll(&control, 1, 0) == 1;
}

void Supervisor::watch() {
  std::array<pollfd, 2> watched = {pollfd{.fd = signals_.get(), .events = POLLIN},
                                   pollfd{.fd = fds_.control.get(), .events = POLLIN}};
  poll(watched.data(), watched.size(), milliseconds_until(killer_.next_look()));
  if (watched[0].revents != 0) take_signals();
  if (watched[1].revents != 0) take_orders();
  reap();
  if (!all_gone_ && killer_.is_due()) killer_.look();
}

void Supervisor::take_signals() {
  signalfd_siginfo seen{};
  while (read(signals_.get(), &seen, sizeof(seen)) > 0) {
  }
  if (getppid() == host_) return;
  lost_ = lost_ || mode_ == Mode::running;
  begin_to_kill();
}

void Supervisor::take_orders() {
  char order = 0;
  const auto got = receive_message(fds_.control.get(), {&order, 1});
  if (!got || *got == 0) {
    fds_.control.reset();  // nobody is there any more
    begin_to_kill();
  } else if (order == static_cast<char>(StepOrder::kill)) {
    begin_to_kill();
  } else if (order == static_cast<char>(StepOrder::terminate) && mode_ == Mode::running) {
    terminate();
  }
}

void Supervisor::terminate() {
  mode_ = Mode::terminating;
  // Who has left a group between the look and the signal has not heard it: look again.
  std::set<pid_t> told;
  for (int look = 0; look < kLooksToTerminate; ++look) {
    auto processes = processes_below_us();
    std::erase_if(processes, [&](const FoundProcess& found) { return told.contains(found.group); });
    if (processes.empty()) return;
    signal_processes(processes, SIGTERM);
    signal_processes(processes, SIGCONT);  // who is stopped would not hear it
    for (const FoundProcess& found : processes) told.insert(found.group);
  }
}

void Supervisor::begin_to_kill() {
  if (mode_ == Mode::killing) return;
  mode_ = Mode::killing;
  killer_.begin(kBeforeLook);
  setpriority(PRIO_PROCESS, 0, kUrgent);  // if we may: there may be many of them
  if (shell_reaped_) return;
  // Not reaped, so the number is still its own. It may not have its group yet.
  kill(shell_.pid(), SIGKILL);
  kill(-shell_.pid(), SIGKILL);
}

void Supervisor::reap() {
  siginfo_t ended{};
  if (mode_ == Mode::running && !shell_reaped_ &&
      waitid(P_PID, static_cast<id_t>(shell_.pid()), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      ended.si_pid == shell_.pid()) {
    begin_to_kill();  // the others, before its group's number can be anybody's
  }
  int status = 0;
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid != shell_.pid()) continue;
    shell_reaped_ = true;
    shell_status_ = status;
  }
  all_gone_ = pid < 0 && errno == ECHILD;
}

void Supervisor::report_end() {
  const std::string failure = shell_.failure();
  if (lost_) return report(StepEnd::Kind::lost, 0, "the step host was killed");
  if (!failure.empty()) return report(StepEnd::Kind::not_started, shell_.error(), failure);
  if (WIFSIGNALED(shell_status_)) {
    return report(StepEnd::Kind::signalled, WTERMSIG(shell_status_), "");
  }
  report(StepEnd::Kind::exited, WEXITSTATUS(shell_status_), "");
}

void Supervisor::report(StepEnd::Kind kind, int code, const std::string& detail) {
  if (!fds_.control) return;
  const StepReport head{.kind = kind, .code = code};
  std::string message(reinterpret_cast<const char*>(&head), sizeof(head));
  message.append(detail, 0, kMaxReportBytes - sizeof(head));
  (void)send_message(fds_.control.get(), std::string_view(message));
}

}  // namespace

void run_supervisor(pid_t host, int lock, StepFds fds) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_PDEATHSIG, kHostEnded);
  setsid();  // what is meant for the step host's group is not for us
  set_process_name("step-supervisor");
  close_descriptors_but(
      {lock, fds.control.get(), fds.in.get(), fds.out.get(), fds.err.get(), fds.spec.get()});
  UniqueFd signals = block_signals({SIGCHLD, kHostEnded});
  // Without a host it is as if it had ended now; without signals nothing can be supervised.
  if (getppid() == host && signals) Supervisor(host, std::move(fds), std::move(signals)).run();
  _exit(0);
}

}  // namespace reprise::worker
