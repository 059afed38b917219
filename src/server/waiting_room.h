// WaitingRoom: how many replies may wait for something to happen elsewhere at once. What waits is
// remembered by others until then, also when the client has gone, so there must be an end to it.
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/result.h"

namespace reprise::server {

inline constexpr std::uint64_t kMaxWaitingReplies = 10'000;

class WaitingRoom {
  using Count = std::shared_ptr<std::atomic<std::uint64_t>>;

 public:
  // A place, held until it is destroyed; it may outlive the room.
  class Place {
   public:
    explicit Place(Count count) : count_(std::move(count)) {}
    Place(Place&&) noexcept = default;
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (count_) count_->fetch_sub(1);
    }

   private:
    Count count_;
  };

  explicit WaitingRoom(std::uint64_t most = kMaxWaitingReplies) : most_(most) {}

  // Errc::too_many_waiting.
  Result<Place> enter() {
    if (count_->fetch_add(1) < most_) return Place(count_);
    count_->fetch_sub(1);
    return Error{Errc::too_many_waiting, "too many requests wait for a run or a log"};
  }
  std::uint64_t size() const { return count_->load(); }

 private:
  const std::uint64_t most_;
  const Count count_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace reprise::server
