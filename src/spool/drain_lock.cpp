#include "spool/drain_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <thread>

#include "base/json.h"
#include "base/json_writer.h"
#include "spool/directory.h"
#include "spool/new_files.h"

namespace reprise::spool {
namespace {

constexpr const char* kLockName = "lock";
constexpr std::size_t kMaxLockBytes = 4096;
constexpr int kMaxTries = 1000;

std::filesystem::path lock_path(const SpoolFiles& files) { return files.directory() / kLockName; }

int lock_now(int fd, int operation) {
  while (::flock(fd, operation | LOCK_NB) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// Whether `fd` is still what has the name: somebody may have deleted it.
bool has_the_name(int root, int fd) {
  struct stat named {};
  struct stat open {};
  return ::fstatat(root, kLockName, &named, AT_SYMLINK_NOFOLLOW) == 0 && ::fstat(fd, &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

// What the file says; a holder that is dead has left it, and the new one has not written it yet.
LockHolder written_holder(const SpoolFiles& files) {
  LockHolder holder;
  const auto json = Json::parse(files.read_head(Folder::root, kLockName, kMaxLockBytes).bytes);
  if (!json) return holder;
  const auto pid = (*json)["pid"].integer();
  if (!pid || *pid <= 0 || *pid > INT32_MAX) return holder;
  if (::kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH) return holder;
  holder.pid = static_cast<pid_t>(*pid);
  holder.since = (*json)["since"].string_or("");
  return holder;
}

Error locked(const SpoolFiles& files) {
  const LockHolder holder = written_holder(files);
  const std::string who =
      holder.pid == 0 ? std::string("another process") : fmt::format("process {}", holder.pid);
  const std::string since = holder.since.empty() ? "" : " since " + holder.since;
  return Error{Errc::spool_locked, fmt::format("{} drains {}{}; only one can at a time", who,
                                               files.directory().string(), since)};
}

int write_holder(int fd, Timestamp now) {
  JsonWriter json;
  json.begin_object();
  json.key("pid").value(::getpid()).key("since").value(format_timestamp(now));
  json.end_object();
  if (TEMP_FAILURE_RETRY(::ftruncate(fd, 0)) != 0) return errno;
  return write_whole(fd, json.take() + "\n");
}

// Who only looks for a holder has it shared, for a moment; that must not turn a drainer away.
// 0: ours; EWOULDBLOCK: a drainer's.
int lock_for_draining(int fd) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    const int code = lock_now(fd, LOCK_EX);
    if (code != EWOULDBLOCK) return code;
    if (const int shared = lock_now(fd, LOCK_SH); shared != 0) return shared;
    ::flock(fd, LOCK_UN);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return EWOULDBLOCK;
}

}  // namespace

Result<DrainLock> DrainLock::acquire(const SpoolFiles& files, Timestamp now) {
  const int root = files.folder_fd(Folder::root);
  for (int tries = 0; tries < kMaxTries; ++tries) {
    UniqueFd fd(
        ::openat(root, kLockName, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    if (!fd) return io_error("open", lock_path(files), errno);
    const int code = lock_for_draining(fd.get());
    if (code == EWOULDBLOCK) return locked(files);
    if (code != 0) return io_error("lock", lock_path(files), code);
    if (!has_the_name(root, fd.get())) continue;
    ::fchmod(fd.get(), 0600);
    if (const int written = write_holder(fd.get(), now); written != 0) {
      return io_error("write", lock_path(files), written);
    }
    return DrainLock(std::move(fd));
  }
  return locked(files);
}

Result<std::optional<LockHolder>> DrainLock::holder(const SpoolFiles& files) {
  FileContent content;
  const UniqueFd fd = open_regular(files.folder_fd(Folder::root), kLockName, content);
  if (!fd && content.state == FileContent::State::vanished) return std::optional<LockHolder>();
  if (!fd) {
    return Error{Errc::io,
                 fmt::format("cannot open {}: {}", lock_path(files).string(), content.problem)};
  }
  const int code = lock_now(fd.get(), LOCK_SH);
  if (code == 0) return std::optional<LockHolder>();
  if (code != EWOULDBLOCK) return io_error("lock", lock_path(files), code);
  return std::optional<LockHolder>(written_holder(files));
}

}  // namespace reprise::spool
