// The breaker of a queue.
#include <algorithm>

#include "sim/model.h"

namespace reprise::sim {

// It begins closed when it is new, or another.
void Model::define_guard(Queue& queue) {
  const auto& policy = queue.record.config.breaker;
  if (queue.guard && policy && queue.guard->policy == *policy) return;
  queue.guard.reset();
  if (policy) queue.guard = Guard{.policy = *policy};
}

void Model::advance_guard(Queue& queue, Timestamp now) {
  if (!queue.guard || queue.guard->state != BreakerState::open) return;
  if (now < queue.guard->open_until) return;
  queue.guard->state = BreakerState::trial;
  queue.guard->canaries.clear();
  queue.guard->succeeded = 0;
  note(EventType::breaker_trial);
}

// How many jobs it lets go.
std::uint64_t Model::guard_room(const Queue& queue) {
  if (!queue.guard || queue.guard->state == BreakerState::closed) return UINT64_MAX;
  if (queue.guard->state == BreakerState::open) return 0;
  return queue.guard->policy.canaries - queue.guard->canaries.size() - queue.guard->succeeded;
}

void Model::end_lease(Queue& queue, Seq seq, LeaseEnd end, Timestamp now) {
  queue.jobs.at(seq).canary = false;
  if (!queue.guard) return;
  Guard& guard = *queue.guard;
  const bool is_canary = guard.canaries.erase(seq) > 0;
  if (guard.state == BreakerState::closed && end != LeaseEnd::neither) {
    guard.ended.emplace_back(now, end == LeaseEnd::failed);
    if (end != LeaseEnd::failed) return;
    const auto [ended, failed] = ended_in_window(guard, now);
    if (ended >= guard.policy.min && failed * 1'000'000 >= ended * guard.policy.failure_rate_ppm) {
      open_guard(guard, now);
    }
  } else if (is_canary && end == LeaseEnd::failed) {
    ++guard.failed_trials;
    open_guard(guard, now);
  } else if (is_canary && end == LeaseEnd::succeeded) {
    if (++guard.succeeded < guard.policy.canaries) return;
    guard.state = BreakerState::closed;
    guard.failed_trials = 0;
    guard.ended.clear();
    note(EventType::breaker_closed);
  }
}

void Model::open_guard(Guard& guard, Timestamp now) {
  guard.state = BreakerState::open;
  guard.open_until = now + guard.policy.pause;
  guard.canaries.clear();
  ++guard.opened;
  note(EventType::breaker_open);
}

// All, and those that failed. The window moves on in steps of a twentieth.
std::pair<std::uint64_t, std::uint64_t> Model::ended_in_window(const Guard& guard, Timestamp now) {
  const auto step = [&](Timestamp at) {
    return at.time_since_epoch() / (guard.policy.window / 20);
  };
  std::uint64_t ended = 0;
  std::uint64_t failed = 0;
  for (const auto& [at, was_failure] : guard.ended) {
    if (step(now) - step(at) >= 20) continue;
    ++ended;
    if (was_failure) ++failed;
  }
  return {ended, failed};
}

OutageStats Model::shown_stats(const Guard& guard, Timestamp now) {
  const auto [ended, failed] = ended_in_window(guard, now);
  return {.state = guard.state,
          .open_until = guard.open_until,
          .opened = guard.opened,
          .spared = guard.spared,
          .failure_rate = ended == 0 ? 0 : static_cast<double>(failed) / static_cast<double>(ended),
          .ended = ended,
          .canaries_out = static_cast<std::uint32_t>(guard.canaries.size())};
}

}  // namespace reprise::sim
