#include "storage/rocksdb/directory_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace reprise::storage {
namespace {

Error lock_error(const std::string& path, int error_number) {
  return Error{Errc::io, "cannot lock " + path + ": " +
                             std::error_code(error_number, std::generic_category()).message()};
}

// The pid written in the file; "unknown" in the instant before its owner has written it.
std::string owner_of(int file) {
  std::array<char, 32> text{};
  const ssize_t length = ::pread(file, text.data(), text.size(), 0);
  std::string pid;
  for (ssize_t i = 0; i < length && text[i] >= '0' && text[i] <= '9'; ++i) pid.push_back(text[i]);
  return pid.empty() ? "unknown" : pid;
}

Error in_use(const std::string& directory, int file) {
  return Error{Errc::io, "data directory " + directory + " is in use by another reprise (pid " +
                             owner_of(file) + "); stop it or choose another --data directory"};
}

bool write_owner(int file) {
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (TEMP_FAILURE_RETRY(::ftruncate(file, 0)) != 0) return false;
  for (std::size_t done = 0; done < pid.size();) {
    const ssize_t written =
        ::pwrite(file, pid.data() + done, pid.size() - done, static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

Result<DirectoryLock> DirectoryLock::acquire(const std::string& directory) {
  const std::string path = directory + "/" + kLockFileName;
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return lock_error(path, errno);
  DirectoryLock lock(file);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    return errno == EWOULDBLOCK ? in_use(directory, file) : lock_error(path, errno);
  }
  if (!write_owner(file)) return lock_error(path, errno);
  return lock;
}

Result<std::optional<DirectoryLock>> DirectoryLock::acquire_to_read(const std::string& directory) {
  const std::string path = directory + "/" + kLockFileName;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return std::optional<DirectoryLock>();
  DirectoryLock lock(file);
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) return std::optional(std::move(lock));
  if (errno == EWOULDBLOCK) return in_use(directory, file);
  return std::optional<DirectoryLock>();
}

DirectoryLock::~DirectoryLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace reprise::storage
