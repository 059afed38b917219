// Runs a script with the real bash, as a worker does, and collects what it prints.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

namespace reprise::test {

struct BashResult {
  int exit_code = -1;
  std::string out;  // standard output and error
};

inline BashResult run_bash(const std::string& script, const std::string& directory,
                           const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8"};
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  std::vector<char*> envp;
  for (std::string& one : environment) envp.push_back(one.data());
  envp.push_back(nullptr);
  std::vector<std::string> arguments = {"bash", "-euo", "pipefail", "-c", script};
  std::vector<char*> argv;
  for (std::string& one : arguments) argv.push_back(one.data());
  argv.push_back(nullptr);

  BashResult result;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return result;
  const pid_t child = ::fork();
  if (child == 0) {
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, 0);
    ::dup2(ends[1], 1);
    ::dup2(ends[1], 2);
    if (::chdir(directory.c_str()) == 0) ::execve("/bin/bash", argv.data(), envp.data());
    ::_exit(126);
  }
  ::close(ends[1]);
  char buffer[65536];
  for (ssize_t got = 0; (got = ::read(ends[0], buffer, sizeof(buffer))) > 0;) {
    result.out.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace reprise::test
