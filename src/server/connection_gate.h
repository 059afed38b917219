// ConnectionGate: counts connections, so that stop() can wait for the last one.
// Threads: any.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/time.h"

namespace reprise::server {

class ConnectionGate {
 public:
  void enter() {
    const std::lock_guard lock(mutex_);
    ++inside_;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0) empty_.notify_all();
  }
  // False when it took longer than `longest`.
  bool wait_until_empty(Duration longest) {
    std::unique_lock lock(mutex_);
    return empty_.wait_for(lock, longest, [&] { return inside_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable empty_;
  std::uint64_t inside_ = 0;  // protected by mutex_
};

}  // namespace reprise::server
