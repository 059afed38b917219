// Work in a process of its own, which may crash at any of its steps, or run against a limit.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string_view>

namespace reprise::test {

enum class ChildEnd { succeeded, failed, killed };

// `work` returns whether it succeeded. It shares nothing with the caller but files.
template <class Work>
pid_t start_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work() ? 0 : 1);
  return child;
}

inline ChildEnd wait_for_child(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return ChildEnd::killed;
  return WEXITSTATUS(status) == 0 ? ChildEnd::succeeded : ChildEnd::failed;
}

template <class Work>
ChildEnd run_in_child(Work work) {
  return wait_for_child(start_child(work));
}

// Kills its own process at the n-th step.
class CrashAt {
 public:
  explicit CrashAt(int step) : left_(step) {}
  void operator()(std::string_view) {
    if (--left_ == 0) ::raise(SIGKILL);
  }

 private:
  int left_;
};

// In a child: files beyond this size cannot be written, as on a full disk (EFBIG).
inline void limit_file_size(rlim_t bytes) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

}  // namespace reprise::test
