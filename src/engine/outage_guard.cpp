#include "engine/outage_guard.h"

#include <algorithm>

namespace reprise {

bool OutageGuard::advance(Timestamp now) {
  if (state_ != BreakerState::open || now < open_until_) return false;
  state_ = BreakerState::trial;
  ++trial_;
  canaries_out_ = 0;
  canaries_succeeded_ = 0;
  return true;
}

std::uint64_t OutageGuard::room() const {
  switch (state_) {
    case BreakerState::closed:
      return std::numeric_limits<std::uint64_t>::max();
    case BreakerState::open:
      return 0;
    case BreakerState::trial:
      return policy_.canaries - std::min(policy_.canaries, canaries_out_ + canaries_succeeded_);
  }
  return 0;
}

OutageGuard::Trial OutageGuard::lease_began() {
  if (state_ != BreakerState::trial) return 0;
  ++canaries_out_;
  return trial_;
}

bool OutageGuard::succeeded(Trial trial, Timestamp now) {
  if (state_ == BreakerState::closed) count(false, now);
  if (!is_canary(trial)) return false;
  --canaries_out_;
  if (++canaries_succeeded_ < policy_.canaries) return false;
  close();
  return true;
}

bool OutageGuard::failed(Trial trial, Timestamp now) {
  if (state_ == BreakerState::closed) {
    count(true, now);
    const Slice all = sum(now);
    const bool enough = all.ended >= policy_.min &&
                        all.failed * kWholeShare >= all.ended * policy_.failure_rate_ppm;
    if (enough) open(now);
    return enough;
  }
  if (!is_canary(trial)) return false;
  ++failed_trials_;
  open(now);
  return true;
}

void OutageGuard::came_back(Trial trial) {
  if (is_canary(trial)) --canaries_out_;
}

Duration OutageGuard::canary_delay() const {
  return std::min(policy_.pause * (failed_trials_ + 1), Duration(std::chrono::hours(24 * 7)));
}

void OutageGuard::open(Timestamp now) {
  state_ = BreakerState::open;
  open_until_ = add_saturating(now, policy_.pause);
  canaries_out_ = 0;
  ++opened_;
}

void OutageGuard::close() {
  state_ = BreakerState::closed;
  failed_trials_ = 0;
  window_ = {};
}

OutageStats OutageGuard::stats(Timestamp now) {
  const Slice all = sum(now);
  return {.state = state_,
          .open_until = open_until_,
          .opened = opened_,
          .spared = spared_,
          .failure_rate =
              all.ended == 0 ? 0 : static_cast<double>(all.failed) / static_cast<double>(all.ended),
          .ended = all.ended,
          .canaries_out = canaries_out_};
}

void OutageGuard::count(bool failed, Timestamp now) {
  advance_window(now);
  Slice& slice = window_[static_cast<std::size_t>(current_ % kSlices)];
  ++slice.ended;
  if (failed) ++slice.failed;
}

OutageGuard::Slice OutageGuard::sum(Timestamp now) {
  advance_window(now);
  Slice sum;
  for (const Slice& slice : window_) {
    sum.ended += slice.ended;
    sum.failed += slice.failed;
  }
  return sum;
}

void OutageGuard::advance_window(Timestamp now) {
  const std::int64_t slice = now.time_since_epoch() / (policy_.window / kSlices);
  if (slice - current_ >= kSlices) {
    window_ = {};
    current_ = slice;
  }
  while (current_ < slice) window_[static_cast<std::size_t>(++current_ % kSlices)] = {};
}

}  // namespace reprise
