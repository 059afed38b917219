#include "support/child_processes.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <system_error>

namespace reprise::test {
namespace {

struct Stat {
  char state = 0;
  pid_t parent = 0;
};

std::optional<Stat> stat_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text, '\0');  // a process that ends meanwhile is an error, not an exception
  const std::size_t name_end = text.rfind(')');  // the name may have anything in it
  if (name_end == text.npos) return std::nullopt;
  std::istringstream rest(text.substr(name_end + 1));
  Stat stat;
  rest >> stat.state >> stat.parent;
  return stat;
}

}  // namespace

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    const auto stat = stat_of(name);
    if (stat && stat->parent == parent && stat->state != 'Z') children.push_back(std::stoi(name));
  }
  return children;
}

char state_of(pid_t pid) {
  const auto stat = stat_of(std::to_string(pid));
  return stat ? stat->state : 0;
}

bool is_alive(pid_t pid) {
  const char state = state_of(pid);
  return state != 0 && state != 'Z' && state != 'X';
}

std::chrono::nanoseconds cpu_time_of(pid_t pid) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return {};
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

ChildProcess::ChildProcess(std::vector<std::string> arguments) {
  std::string name = "child";
  std::vector<char*> pointers = {name.data()};
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  if (posix_spawn(&pid_, "/proc/self/exe", nullptr, nullptr, pointers.data(), environ) != 0) {
    pid_ = 0;
  }
}

ChildProcess::~ChildProcess() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

OwnProgramAs::OwnProgramAs(const std::string& name) : name_(name) {
  std::string pattern = std::filesystem::temp_directory_path() / "reprise-test-XXXXXX";
  directory_ = mkdtemp(pattern.data());
  std::filesystem::create_symlink(std::filesystem::read_symlink("/proc/self/exe"),
                                  directory_ / name_);
}

OwnProgramAs::~OwnProgramAs() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

}  // namespace reprise::test
