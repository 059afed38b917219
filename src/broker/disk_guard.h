// DiskGuard: is there enough free space for pushes? Looks at most a few times a second.
// Threads: any.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

namespace reprise {

class DiskGuard {
 public:
  // Without a probe space is never low.
  DiskGuard(std::function<std::uint64_t()> free_bytes, std::uint64_t reserve_bytes)
      : probe_(std::move(free_bytes)), reserve_bytes_(reserve_bytes) {}

  bool is_low() const { return free_bytes() < reserve_bytes_; }

  std::uint64_t free_bytes() const {
    if (!probe_) return UINT64_MAX;
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    auto next = next_look_.load();
    // One caller looks; the others take the latest answer.
    if (now >= next && next_look_.compare_exchange_strong(next, now + kInterval.count())) {
      latest_ = probe_();
    }
    return latest_;
  }

 private:
  static constexpr std::chrono::steady_clock::duration kInterval = std::chrono::milliseconds(200);

  const std::function<std::uint64_t()> probe_;
  const std::uint64_t reserve_bytes_;
  mutable std::atomic<std::chrono::steady_clock::rep> next_look_{0};
  mutable std::atomic<std::uint64_t> latest_{UINT64_MAX};
};

}  // namespace reprise
