#include "worker/step_shell.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

namespace reprise::worker {
namespace {

// MAX_ARG_STRLEN of Linux: what one argument may have, its NUL character included.
constexpr std::size_t kMaxArgumentBytes = 128 * 1024;
constexpr int kScriptFd = 3;
// Whatever a step allocates, it is the one to go when memory is short.
constexpr std::string_view kOomScore = "500";

enum class Stage : std::uint32_t { descriptors, script, directory, exec };
struct StartFailure {
  Stage stage{};
  std::int32_t error = 0;
};

// A script that is too long for an argument, as a file that closes itself for what it starts.
UniqueFd script_file(std::string_view script) {
  UniqueFd file(memfd_create("script", MFD_CLOEXEC));
  std::string bytes = fmt::format("exec {}<&-; ", kScriptFd);
  bytes.append(script);
  for (std::string_view left = bytes; file && !left.empty();) {
    const ssize_t written = write(file.get(), left.data(), left.size());
    if (written < 0) return UniqueFd();
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  return file;
}

void raise_oom_score() {
  const UniqueFd file(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (file) (void)!write(file.get(), kOomScore.data(), kOomScore.size());
}

// All of them, also those that only the C library knows: it has had them ignored in the step host.
void reset_signals() {
  struct KernelAction {
    void (*handler)(int) = SIG_DFL;
    unsigned long flags = 0;
    void (*restorer)() = nullptr;
    std::uint64_t mask = 0;
  };
  const KernelAction by_default;
  constexpr int kSignals = 64;
  for (int signal = 1; signal <= kSignals; ++signal) {
    syscall(SYS_rt_sigaction, signal, &by_default, nullptr, sizeof(by_default.mask));
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

class ShellStart {
 public:
  ShellStart(const StepFds& fds, SpecView& spec, int failures)
      : fds_(fds), spec_(spec), failures_(failures) {}

  [[noreturn]] void become_shell(pid_t supervisor) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor) _exit(1);  // it ended before it could be told
    setsid();
    raise_oom_score();
    const bool by_file = std::strlen(spec_.script) >= kMaxArgumentBytes;
    take_descriptors(by_file);
    if (chdir(spec_.directory) != 0) fail(Stage::directory);
    reset_signals();
    exec(by_file);
    fail(Stage::exec);
  }

 private:
  void take_descriptors(bool script_by_file) {
    const UniqueFd script = script_by_file ? script_file(spec_.script) : UniqueFd();
    if (script_by_file && !script) fail(Stage::script);
    if (dup2(fds_.in.get(), STDIN_FILENO) < 0 || dup2(fds_.out.get(), STDOUT_FILENO) < 0 ||
        dup2(fds_.err.get(), STDERR_FILENO) < 0 ||
        close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) != 0) {
      fail(Stage::descriptors);
    }
    if (!script) return;
    if (failures_ == kScriptFd) failures_ = fcntl(failures_, F_DUPFD_CLOEXEC, kScriptFd + 1);
    const int done =
        script.get() == kScriptFd ? fcntl(kScriptFd, F_SETFD, 0) : dup2(script.get(), kScriptFd);
    if (done < 0) fail(Stage::script);
  }

  void exec(bool by_file) {
    std::string path = fmt::format("/dev/fd/{}", kScriptFd);
    std::array<std::string, 7> words = {"bash", "--noprofile", "--norc",  "-e",
                                        "-u",   "-o",          "pipefail"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    std::string command = "-c";
    if (!by_file) arguments.push_back(command.data());
    arguments.push_back(by_file ? path.data() : spec_.script);
    arguments.push_back(nullptr);
    // PATH is searched for bash, the step's own.
    environ = spec_.environment.data();
    execvpe("bash", arguments.data(), environ);
    if (errno == ENOENT) execve("/bin/bash", arguments.data(), environ);
  }

  [[noreturn]] void fail(Stage stage) {
    const StartFailure failure{.stage = stage, .error = errno};
    (void)!write(failures_, &failure, sizeof(failure));
    _exit(127);
  }

  const StepFds& fds_;
  SpecView& spec_;
  int failures_;
};

}  // namespace

bool StepShell::start(const StepFds& fds) {
  auto spec = read_spec(fds.spec.get());
  std::array<int, 2> pipe{};
  if (!spec || pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    error_ = errno;
    failure_ = fmt::format("the command cannot be read: {}", std::strerror(error_));
    return false;
  }
  spec_ = std::move(*spec);
  failures_ = UniqueFd(pipe[0]);
  const UniqueFd theirs(pipe[1]);
  const pid_t supervisor = getpid();
  pid_ = fork();
  if (pid_ == 0) ShellStart(fds, spec_, theirs.get()).become_shell(supervisor);
  if (pid_ > 0) return true;
  error_ = errno;
  failure_ = fmt::format("no process can be started: {}", std::strerror(error_));
  return false;
}

std::string StepShell::failure() {
  StartFailure failure;
  if (!failure_.empty() || read(failures_.get(), &failure, sizeof(failure)) != sizeof(failure)) {
    return failure_;
  }
  error_ = failure.error;
  const char* const why = std::strerror(failure.error);
  switch (failure.stage) {
    case Stage::descriptors:
      return fmt::format("the descriptors of the command cannot be opened: {}", why);
    case Stage::script:
      return fmt::format("no memory for the command: {}", why);
    case Stage::directory:
      return fmt::format("the directory {} cannot be entered: {}", spec_.directory, why);
    case Stage::exec:
      break;
  }
  if (failure.error == E2BIG) {
    return fmt::format("the variables of the command are too long for a process: {}", why);
  }
  return fmt::format("bash cannot be started: {}", why);
}

}  // namespace reprise::worker
