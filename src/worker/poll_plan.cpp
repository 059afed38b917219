#include "worker/poll_plan.h"

#include <algorithm>
#include <array>
#include <utility>

namespace reprise::worker {
namespace {

// Of the interval, after so many failures in a row.
constexpr std::array<std::uint32_t, 5> kFactors = {1, 2, 4, 8, 10};

}  // namespace

void PollPlan::begin(PollReason reason) {
  running_ = true;
  reason_ = reason;
  if (reason != PollReason::freed) left_alone_.clear();
}

bool PollPlan::request(PollReason reason) {
  if (running_) {
    if (!next_ || *next_ == PollReason::freed) next_ = reason;
    return false;
  }
  begin(reason);
  return true;
}

bool PollPlan::finished() {
  running_ = false;
  const auto next = std::exchange(next_, std::nullopt);
  if (next) begin(*next);
  return next.has_value();
}

std::optional<Duration> PollPlan::listed(bool well, std::optional<Duration> poll) {
  failures_ = well ? 0 : failures_ + 1;
  // One that came due, or had room, meanwhile would follow at once.
  if (!well && next_ != PollReason::asked) next_.reset();
  return wait(poll);
}

std::optional<Duration> PollPlan::wait(std::optional<Duration> poll) const {
  if (!poll) return std::nullopt;
  const std::size_t step =
      failures_ == 0 ? 0 : std::min<std::size_t>(failures_, kFactors.size()) - 1;
  return *poll * kFactors[step];
}

void PollPlan::stop() {
  next_.reset();
  failures_ = 0;
  left_alone_.clear();
}

}  // namespace reprise::worker
