// DirectoryLock: one process per data directory. The kernel holds the lock, so it goes away with
// the process, however that ends; the file's text, the owner's pid, is for messages only.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/result.h"

namespace reprise::storage {

inline constexpr char kLockFileName[] = "LOCK";

class DirectoryLock {
 public:
  // Errc::io: another process has it (the message names its pid), or the file cannot be written.
  static Result<DirectoryLock> acquire(const std::string& directory);
  // The same without writing anything. Nothing when there is no lock to take: no such file, or one
  // that cannot be read or locked.
  static Result<std::optional<DirectoryLock>> acquire_to_read(const std::string& directory);

  DirectoryLock(DirectoryLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~DirectoryLock();

 private:
  explicit DirectoryLock(int file) : file_(file) {}

  int file_;
};

}  // namespace reprise::storage
