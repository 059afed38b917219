#include "daemon/process.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string_view>
#include <system_error>

#include "base/text.h"

namespace reprise::daemon {
namespace {

namespace fs = std::filesystem;

// What execvp() would find for `name`.
fs::path find_in_path(std::string_view name) {
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "";
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const fs::path candidate = fs::path(rest.substr(0, colon)) / name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return {};
}

}  // namespace

std::uint64_t raise_open_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t soft = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : soft;
}

std::uint64_t free_disk_bytes(const std::string& directory) {
  struct statvfs info {};
  if (statvfs(directory.c_str(), &info) != 0) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
}

Result<std::string> read_whole_file(const std::string& path) {
  const auto failed = [&] {
    return Error{Errc::io, fmt::format("cannot read {}: {}", path, std::strerror(errno))};
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             std::fclose);
  if (!file) return failed();
  std::string text;
  std::array<char, 4096> piece;
  while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), file.get())) {
    text.append(piece.data(), got);
  }
  if (std::ferror(file.get()) != 0) return failed();  // a directory opens, but cannot be read
  return text;
}

Status write_file_atomically(const std::string& path, const std::string& text) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  const auto failed = [&] {
    const int error = errno;
    std::remove(temporary.c_str());
    return Error{Errc::io, fmt::format("cannot write {}: {}", path, std::strerror(error))};
  };
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out || std::rename(temporary.c_str(), path.c_str()) != 0) return failed();
  return ok();
}

std::string command_name() {
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path found = find_in_path("reprise");
  if (!found.empty() && fs::equivalent(found, self, ignored)) return "reprise";
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string typed;
  std::getline(in, typed, '\0');
  // Without a slash it came from PATH under another name, which works again.
  return shell_quoted(typed.empty() ? self.string() : typed);
}

}  // namespace reprise::daemon
