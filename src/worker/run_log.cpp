#include "worker/run_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/text.h"

namespace reprise::worker {
namespace {

constexpr mode_t kFileMode = 0600;
constexpr std::uint64_t kMostRead = 256 * 1024;

int open_for_appending(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kFileMode);
}

std::uint64_t size_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

// How much of it was written.
std::size_t write_some(int fd, std::string_view bytes) {
  std::size_t done = 0;
  while (fd >= 0 && done < bytes.size()) {
    const ssize_t written = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  return done;
}

std::string read_range(const std::string& path, std::uint64_t offset, std::uint64_t length) {
  std::string text;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  text.resize(length);
  std::size_t done = 0;
  while (done < length) {
    const ssize_t got =
        ::pread(fd, text.data() + done, length - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  ::close(fd);
  text.resize(done);
  return text;
}

std::uint64_t first_of(const LogQuery& query, std::uint64_t begin, std::uint64_t end) {
  if (query.tail) return end - std::min(end - begin, *query.tail);
  return std::clamp(query.offset, begin, end);
}

}  // namespace

RunLog::RunLog(std::string path, std::uint64_t bytes_max)
    : path_(std::move(path)), bytes_max_(bytes_max), fd_(open_for_appending(path_)) {}

RunLog::~RunLog() {
  if (fd_ >= 0) ::close(fd_);
}

bool RunLog::write_locked(std::string_view bytes) {
  const std::size_t done = write_some(fd_, bytes);
  bytes_ += done;
  left_out_ += bytes.size() - done;
  return done > 0;
}

bool RunLog::append(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t room = bytes_max_ - std::min(bytes_, bytes_max_);
  const std::string_view kept = bytes.substr(0, std::min<std::uint64_t>(room, bytes.size()));
  left_out_ += bytes.size() - kept.size();
  return !kept.empty() && write_locked(kept);
}

void RunLog::finish() {
  const std::lock_guard lock(mutex_);
  if (fd_ < 0) return;
  if (left_out_ > 0) {
    const std::string note =
        fmt::format("\n==> {} more of output left out\n", format_bytes(left_out_));
    bytes_ += write_some(fd_, note);
  }
  ::close(fd_);
  fd_ = -1;
}

std::uint64_t RunLog::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::uint64_t RunLog::left_out() const {
  const std::lock_guard lock(mutex_);
  return left_out_;
}

LogPart read_log_file(const std::string& path, const LogQuery& query) {
  const std::uint64_t end = size_of(path);
  const std::uint64_t first = first_of(query, 0, end);
  LogPart part;
  part.text = read_range(path, first, std::min({end - first, query.limit, kMostRead}));
  part.next = first + part.text.size();
  return part;
}

WorkerLog::WorkerLog(std::string path, std::uint64_t file_bytes)
    : path_(std::move(path)),
      old_path_(path_ + ".1"),
      file_bytes_(file_bytes),
      fd_(open_for_appending(path_)),
      written_(size_of(path_)),
      old_bytes_(size_of(old_path_)) {
  begin_ = old_bytes_;
}

WorkerLog::~WorkerLog() {
  if (fd_ >= 0) ::close(fd_);
}

void WorkerLog::turn_over() {
  if (fd_ >= 0) ::close(fd_);
  if (std::rename(path_.c_str(), old_path_.c_str()) != 0) ::unlink(path_.c_str());
  fd_ = open_for_appending(path_);
  begin_ += written_;
  old_bytes_ = written_;
  written_ = 0;
}

void WorkerLog::append(std::string_view lines) {
  const std::lock_guard lock(mutex_);
  if (written_ > 0 && written_ + lines.size() > file_bytes_) turn_over();
  written_ += write_some(fd_, lines);
}

LogPart WorkerLog::read(const LogQuery& query) const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t end = begin_ + written_;
  const std::uint64_t first = first_of(query, begin_ - old_bytes_, end);
  const std::uint64_t length = std::min({end - first, query.limit, kMostRead});
  LogPart part;
  if (first < begin_) {
    part.text =
        read_range(old_path_, first - (begin_ - old_bytes_), std::min(length, begin_ - first));
  } else {
    part.text = read_range(path_, first - begin_, length);
  }
  part.next = first + part.text.size();
  return part;
}

std::uint64_t WorkerLog::end() const {
  const std::lock_guard lock(mutex_);
  return begin_ + written_;
}

}  // namespace reprise::worker
