// HookBreaker: keeps a hook that fails again and again from being asked.
// Three failures in a row open it; while it is open nothing is asked. After its time one call is
// tried: its answer closes the breaker, its failure opens it again.
// Pure: time comes in. Threads: the engine's only.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "model/queue.h"

namespace reprise {

class HookBreaker {
 public:
  static constexpr std::uint32_t kFailuresToOpen = 3;
  static constexpr Duration kOpenFor = std::chrono::seconds(10);

  // Whether a call may be made now. Of a breaker whose time is over the first one may: the trial.
  bool admit(Timestamp now) {
    if (state_ == BreakerState::closed) return true;
    if (state_ == BreakerState::trial || now < open_until_) return false;
    state_ = BreakerState::trial;
    return true;
  }

  // The call was answered. Whether that closed the breaker.
  bool succeeded() {
    // What was asked before it opened says nothing about now.
    if (state_ == BreakerState::open) return false;
    const bool closes = state_ == BreakerState::trial;
    *this = {};
    return closes;
  }

  // It was not. Whether that opened the breaker.
  bool failed(Timestamp now) {
    if (state_ == BreakerState::open) return false;
    ++failures_in_a_row_;
    if (state_ == BreakerState::closed && failures_in_a_row_ < kFailuresToOpen) return false;
    state_ = BreakerState::open;
    open_until_ = add_saturating(now, kOpenFor);
    return true;
  }

  // The call that was admitted is not made after all: it must not be waited for.
  void withdraw() {
    if (state_ == BreakerState::trial) state_ = BreakerState::open;
  }

  BreakerState state(Timestamp now) const {
    const bool over = state_ == BreakerState::open && open_until_ <= now;
    return over ? BreakerState::trial : state_;
  }
  Timestamp open_until() const { return open_until_; }
  std::uint32_t failures_in_a_row() const { return failures_in_a_row_; }

 private:
  BreakerState state_ = BreakerState::closed;
  std::uint32_t failures_in_a_row_ = 0;
  Timestamp open_until_{};
};

}  // namespace reprise
