// OutageGuard: a queue's breaker. When nearly all attempts fail it stops handing out jobs for a
// while, then tries a few, and only goes on when these succeed (docs/scheduling.md).
// Nothing here is durable: it begins closed.
// Threads: the engine's only. Time: comes in; never runs backwards.
#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "base/time.h"
#include "model/outage_policy.h"
#include "model/queue.h"

namespace reprise {

class OutageGuard {
 public:
  // Names the trial that a canary belongs to; 0: the lease is no canary.
  using Trial = std::uint32_t;

  // `before`: the last trial of the guard that the queue had before, whose canaries may be out.
  explicit OutageGuard(const OutagePolicy& policy, Trial before = 0)
      : policy_(policy), trial_(before) {}

  const OutagePolicy& policy() const { return policy_; }
  BreakerState state() const { return state_; }
  Timestamp open_until() const { return open_until_; }
  Trial last_trial() const { return trial_; }
  // Failures do not count, and nothing dies for them.
  bool spares() const { return state_ != BreakerState::closed; }

  // When its pause is over the trial begins. True: it did now.
  bool advance(Timestamp now);
  // How many jobs may be given out.
  std::uint64_t room() const;
  // A job is given out: the trial it belongs to.
  Trial lease_began();

  // How an attempt ended. True: it opened or closed with this.
  bool succeeded(Trial trial, Timestamp now);
  bool failed(Trial trial, Timestamp now);
  // A lease ended in no result; another may be tried instead.
  void came_back(Trial trial);
  void spared() { ++spared_; }

  // How long a canary that failed stays out of the way: longer each time, so that one which always
  // fails leaves room for others.
  Duration canary_delay() const;

  OutageStats stats(Timestamp now);

 private:
  static constexpr std::int64_t kSlices = 20;
  struct Slice {
    std::uint64_t ended = 0;
    std::uint64_t failed = 0;
  };

  void count(bool failed, Timestamp now);
  Slice sum(Timestamp now);
  void advance_window(Timestamp now);
  void open(Timestamp now);
  void close();
  bool is_canary(Trial trial) const { return state_ == BreakerState::trial && trial == trial_; }

  const OutagePolicy policy_;
  BreakerState state_ = BreakerState::closed;
  Timestamp open_until_{};
  Trial trial_;
  std::uint32_t canaries_out_ = 0;
  std::uint32_t canaries_succeeded_ = 0;
  std::uint32_t failed_trials_ = 0;  // since it was closed
  std::uint64_t opened_ = 0;
  std::uint64_t spared_ = 0;
  std::array<Slice, kSlices> window_{};
  std::int64_t current_ = 0;
};

}  // namespace reprise
