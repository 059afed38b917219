#include "base/helper_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

namespace reprise {
namespace {

Error system_error(std::string_view what, int code) {
  return Error{Errc::io, fmt::format("{}: {}", what, std::strerror(code))};
}

std::vector<char*> helper_environment(std::vector<std::string>& variables) {
  std::vector<char*> kept;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    if (name == "LD_LIBRARY_PATH" || name.ends_with("SAN_OPTIONS")) kept.push_back(*variable);
  }
  for (std::string& variable : variables) kept.push_back(variable.data());
  kept.push_back(nullptr);
  return kept;
}

class SpawnPlan {
 public:
  explicit SpawnPlan(int socket) {
    posix_spawn_file_actions_init(&files_);
    posix_spawn_file_actions_addopen(&files_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files_, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files_, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&files_, socket, kHelperSocketFd);
    posix_spawn_file_actions_addclosefrom_np(&files_, kHelperSocketFd + 1);

    posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    // In a session of its own: a Ctrl-C on our terminal is for us, who may want to finish.
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  }
  ~SpawnPlan() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&files_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  const posix_spawn_file_actions_t* files() const { return &files_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

Result<HelperProcess> start_helper(const std::string& program, std::string argument,
                                   std::vector<std::string> variables) {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return system_error("socketpair", errno);
  }
  HelperProcess helper{.socket = UniqueFd(pair[0])};
  UniqueFd theirs(pair[1]);
  if (theirs.get() == kHelperSocketFd) {
    // A dup2 onto itself would leave it to be closed by exec.
    UniqueFd moved(fcntl(theirs.get(), F_DUPFD_CLOEXEC, kHelperSocketFd + 1));
    if (!moved) return system_error("fcntl", errno);
    theirs = std::move(moved);
  }
  fcntl(helper.socket.get(), F_SETFL, O_NONBLOCK);

  const SpawnPlan plan(theirs.get());
  std::string path = program.empty() ? "/proc/self/exe" : program;
  std::string name = program.empty() ? program_invocation_short_name : program;
  const std::array<char*, 3> arguments = {name.data(), argument.data(), nullptr};
  const std::vector<char*> environment = helper_environment(variables);
  const int failed = posix_spawn(&helper.pid, path.c_str(), plan.files(), plan.attributes(),
                                 arguments.data(), environment.data());
  if (failed != 0) return system_error(fmt::format("{} cannot be started", path), failed);
  return helper;
}

}  // namespace reprise
