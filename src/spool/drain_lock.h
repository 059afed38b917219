// DrainLock: one drainer at a time. A lock of the kernel on the file `lock`, so that it ends with
// the process that holds it, however that ends; the file says who that is.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "base/unique_fd.h"
#include "spool/spool_files.h"

namespace reprise::spool {

struct LockHolder {
  pid_t pid = 0;      // 0: not known
  std::string since;  // ISO 8601; empty: not known
};

class DrainLock {
 public:
  // Errc::spool_locked: the message says who holds it since when.
  static Result<DrainLock> acquire(const SpoolFiles& files, Timestamp now);
  // Who holds it now; nobody: no value. Takes nothing.
  static Result<std::optional<LockHolder>> holder(const SpoolFiles& files);

 private:
  explicit DrainLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace reprise::spool
