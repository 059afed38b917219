#include "worker/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/unique_fd.h"

namespace reprise::worker {
namespace {

std::optional<FoundProcess> read_stat(int proc, const char* name) {
  FoundProcess found;
  const char* const name_end = name + std::strlen(name);
  if (std::from_chars(name, name_end, found.pid).ptr != name_end) return std::nullopt;
  const UniqueFd file(openat(proc, (std::string(name) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::array<char, 512> text{};
  const ssize_t got = read(file.get(), text.data(), text.size() - 1);
  if (got <= 0) return std::nullopt;
  // The name in parentheses may have anything in it.
  const char* const rest = std::strrchr(text.data(), ')');
  char state = 0;
  if (rest == nullptr ||
      std::sscanf(rest + 1, " %c %d %d", &state, &found.parent, &found.group) != 3) {
    return std::nullopt;
  }
  found.ended = state == 'Z' || state == 'X';
  return found;
}

// In the order of their numbers.
void for_each_process(const std::function<void(const FoundProcess&)>& visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  if (proc == nullptr) return;
  while (const dirent* entry = readdir(proc.get())) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    if (const auto found = read_stat(dirfd(proc.get()), entry->d_name)) visit(*found);
  }
}

// A child that has no group of its own yet is still in ours.
bool has_own_group(const FoundProcess& process) {
  return process.group > 1 && process.group != getpgrp();
}

}  // namespace

std::vector<FoundProcess> processes_below_us(const std::function<bool(pid_t)>& spared) {
  std::unordered_map<pid_t, std::vector<FoundProcess>> children;
  for_each_process(
      [&](const FoundProcess& process) { children[process.parent].push_back(process); });
  std::vector<FoundProcess> below;
  std::vector<pid_t> parents = {getpid()};
  while (!parents.empty()) {
    const auto found = children.find(parents.back());
    parents.pop_back();
    if (found == children.end()) continue;
    for (const FoundProcess& child : found->second) {
      if (spared && spared(child.pid)) continue;
      if (!child.ended) below.push_back(child);
      parents.push_back(child.pid);
    }
    children.erase(found);  // what was read over some time may name a circle
  }
  return below;
}

void signal_processes(const std::vector<FoundProcess>& processes, int signal) {
  std::set<pid_t> groups;
  for (const FoundProcess& process : processes) {
    if (!has_own_group(process)) {
      kill(process.pid, signal);
    } else if (groups.insert(process.group).second) {
      kill(-process.group, signal);
    }
  }
}

void TreeKiller::begin(std::chrono::milliseconds first_pause) {
  pause_ = {};
  next_look_ = std::chrono::steady_clock::now() + first_pause;
}

// Each is killed as soon as it is found: one that forks and ends all the time is gone a moment
// later. A parent mostly has the lower number; who is missed is our own child by the next look.
bool TreeKiller::look(const std::function<bool(pid_t)>& spared) {
  constexpr std::chrono::milliseconds kFirstPause(2);
  constexpr std::chrono::milliseconds kLongestPause(100);
  std::set<pid_t> below = {getpid()};
  std::set<pid_t> groups;
  std::set<pid_t> killed;
  bool found_new = false;
  for_each_process([&](const FoundProcess& process) {
    if (!below.contains(process.parent) || (spared && spared(process.pid))) return;
    below.insert(process.pid);
    if (process.ended) return;
    kill(process.pid, SIGKILL);
    if (has_own_group(process) && groups.insert(process.group).second)
      kill(-process.group, SIGKILL);
    killed.insert(process.pid);
    found_new = found_new || !killed_.contains(process.pid);
  });
  killed_ = std::move(killed);
  pause_ = found_new ? pause_.zero() : std::clamp(pause_ * 2, kFirstPause, kLongestPause);
  next_look_ = std::chrono::steady_clock::now() + pause_;
  return !killed_.empty();
}

}  // namespace reprise::worker
