#include "cli/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/text.h"

namespace reprise::cli {
namespace {

// No request of the API may be larger.
constexpr std::size_t kMaxBytes = 24U << 20;

class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : fd_(path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (fd_ > STDIN_FILENO) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  // False: errno says why. Stops soon after the limit; the caller looks at the size.
  bool read_all(std::string& text) const {
    if (fd_ < 0) return false;
    std::array<char, 65536> buffer{};
    while (text.size() <= kMaxBytes) {
      const ssize_t got = read(fd_, buffer.data(), buffer.size());
      if (got == 0) return true;
      if (got > 0) {
        text.append(buffer.data(), static_cast<std::size_t>(got));
      } else if (errno != EINTR) {
        return false;
      }
    }
    return true;
  }

 private:
  int fd_;
};

bool is_text(std::string_view bytes) {
  return is_valid_utf8(bytes) && bytes.find('\0') == std::string_view::npos;
}

std::string shown_name(const std::string& path) { return path == "-" ? "standard input" : path; }

}  // namespace

std::string read_text_file(const std::string& flag, const std::string& path) {
  const std::string name = shown_name(path);
  std::string text;
  if (!OpenFile(path).read_all(text)) {
    throw CLI::ValidationError(flag, fmt::format("cannot read {}: {}", name, std::strerror(errno)));
  }
  if (text.size() > kMaxBytes) throw CLI::ValidationError(flag, name + " is beyond 24 MiB");
  if (!is_text(text)) throw CLI::ValidationError(flag, name + " is not UTF-8 text");
  return text;
}

std::string read_script_file(const std::string& flag, const std::string& path) {
  std::string source = read_text_file(flag, path);
  if (source.empty()) throw CLI::ValidationError(flag, shown_name(path) + " is empty");
  return source;
}

void check_one_standard_input(const std::vector<std::string>& paths) {
  if (std::ranges::count(paths, "-") > 1) {
    throw CLI::ValidationError("only one file can be -, standard input");
  }
}

}  // namespace reprise::cli
