// Processes as tests see them: whose child, whether alive; and this program once more.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace reprise::test {

std::vector<pid_t> children_of(pid_t parent);
// Of /proc/PID/stat: 'R', 'S', 'Z' ...; 0: there is no such process.
char state_of(pid_t pid);
// One that has ended and was not reaped does not count.
bool is_alive(pid_t pid);
std::chrono::nanoseconds cpu_time_of(pid_t pid);
std::size_t open_descriptors();  // of this process

template <class Condition>
bool wait_until(Condition condition,
                std::chrono::milliseconds patience = std::chrono::seconds(20)) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// This test program, started with these arguments; killed and reaped by the destructor.
class ChildProcess {
 public:
  explicit ChildProcess(std::vector<std::string> arguments);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
};

// This test program under another name, by which it can tell what to be.
class OwnProgramAs {
 public:
  explicit OwnProgramAs(const std::string& name);
  ~OwnProgramAs();
  OwnProgramAs(const OwnProgramAs&) = delete;
  OwnProgramAs& operator=(const OwnProgramAs&) = delete;

  std::string path() const { return directory_ / name_; }

 private:
  std::filesystem::path directory_;
  std::string name_;
};

}  // namespace reprise::test
