#include "worker/step_process.h"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace reprise::worker {

int milliseconds_until(std::chrono::steady_clock::time_point when) {
  using Clock = std::chrono::steady_clock;
  if (when == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      std::max(when - Clock::now(), Clock::duration::zero()));
  constexpr std::int64_t kLongest = 60'000;
  return static_cast<int>(std::min<std::int64_t>(left.count(), kLongest));
}

void set_process_name(const char* name) {
  prctl(PR_SET_NAME, name);
  // The arguments stand one after the other, from the first one on.
  std::ifstream file("/proc/self/cmdline");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string arguments = text.str();
  if (!arguments.starts_with(program_invocation_name)) return;
  const std::string shown = std::string(name).substr(0, arguments.size() - 1);
  std::memset(program_invocation_name, 0, arguments.size());
  std::memcpy(program_invocation_name, shown.data(), shown.size());
}

void close_descriptors_but(std::initializer_list<int> kept) {
  std::vector<int> sorted(kept);
  std::ranges::sort(sorted);
  unsigned int first = STDERR_FILENO + 1;
  for (const int fd : sorted) {
    const auto number = static_cast<unsigned int>(fd);
    if (fd < 0 || number < first) continue;
    if (number > first) close_range(first, number - 1, 0);
    first = number + 1;
  }
  close_range(first, ~0U, 0);
}

UniqueFd block_signals(std::initializer_list<int> watched) {
  sigset_t signals;
  sigfillset(&signals);
  // Bugs of ours end us as ever.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP}) {
    sigdelset(&signals, fault);
  }
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  sigemptyset(&signals);
  for (const int signal : watched) sigaddset(&signals, signal);
  return UniqueFd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace reprise::worker
