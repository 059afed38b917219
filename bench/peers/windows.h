// How many commands a connection keeps under way: a window that is filled again when half of it is
// free, so that one send carries many commands and the server still never waits for the next.
// Pure arithmetic; the callers pass the time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "clock.h"
#include "peers/peer_protocol.h"

namespace reprise::bench::peers {

inline std::size_t refill_at(std::size_t window) { return std::max<std::size_t>(window / 2, 1); }

// Pushes that are not acknowledged yet.
class PushWindow {
 public:
  explicit PushWindow(std::size_t window) : window_(window) {}

  // How many to push now.
  std::size_t room() const {
    const std::size_t free = window_ - sent_.size();
    return free >= refill_at(window_) ? free : 0;
  }
  bool idle() const { return sent_.empty(); }

  // `since` is when its time begins: when it was sent, or was due.
  void on_push(TimePoint since) { sent_.push_back(since); }
  // How long the oldest one took.
  Nanoseconds on_pushed(TimePoint now);

 private:
  std::size_t window_;
  std::deque<TimePoint> sent_;
};

// Jobs that were asked for, or are held and not ended yet.
//
// To ask a server for more than it has wastes its time. So after an empty reply a connection waits
// for jobs when it holds none, and otherwise not at all; with commands for single jobs it then asks
// for more by and by, one for each that came.
class ClaimWindow {
 public:
  static constexpr std::chrono::milliseconds kRest{1};  // of one that cannot wait at the server

  ClaimWindow(ClaimStyle style, std::size_t window)
      : style_(style), window_(window), appetite_(window) {}

  struct Ask {
    std::size_t jobs = 0;
    bool wait = false;
  };
  // What to ask for now, at most `allowed` jobs. It counts as asked for.
  Ask next(std::uint64_t allowed, TimePoint now);

  void on_job();
  void on_none(std::size_t jobs, TimePoint now);
  void on_ended() { open_--; }

  // Nothing is asked for until then.
  TimePoint rests_until() const { return rests_until_; }

 private:
  ClaimStyle style_;
  std::size_t window_;
  std::size_t appetite_;  // jobs to ask for at once
  std::size_t open_ = 0;
  bool fed_ = false;  // a job has come since the last empty reply
  TimePoint rests_until_{};
};

}  // namespace reprise::bench::peers
