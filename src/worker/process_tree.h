// The processes below this one, found in /proc, to be ended.
//
// They may be in any group and session, and start others all the while: whoever ends them looks
// again until there are none. For single-threaded processes that are child subreapers, so that
// nothing below them can leave.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <set>
#include <vector>

namespace reprise::worker {

struct FoundProcess {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  bool ended = false;  // and not reaped yet
};

// Those that live, without the ones that `spared` is true for and what is below these.
std::vector<FoundProcess> processes_below_us(const std::function<bool(pid_t)>& spared = {});

// To their groups: that reaches those as well that were started since.
void signal_processes(const std::vector<FoundProcess>& processes, int signal);

// Kills what is below us, look after look. As long as there are new processes the next look is at
// once: they may be started faster than they are found. What will not end is looked for less often.
class TreeKiller {
 public:
  using Steady = std::chrono::steady_clock::time_point;

  void begin(std::chrono::milliseconds first_pause);
  void end() { next_look_ = Steady::max(); }
  Steady next_look() const { return next_look_; }  // max(): it has not begun
  bool is_due() const { return std::chrono::steady_clock::now() >= next_look_; }
  // False: there was nothing.
  bool look(const std::function<bool(pid_t)>& spared = {});

 private:
  Steady next_look_ = Steady::max();
  std::chrono::milliseconds pause_{};
  std::set<pid_t> killed_;  // in the last look
};

}  // namespace reprise::worker
