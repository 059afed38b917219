// A queue's breaker: what it is told, and what it tells.
#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {

void Engine::define_guard(QueueState& queue) {
  const auto& policy = queue.record.config.breaker;
  if (queue.guard && policy && queue.guard->policy() == *policy) return;
  if (queue.guard) queue.last_trial = queue.guard->last_trial();
  queue.guard = policy ? std::make_unique<OutageGuard>(*policy, queue.last_trial) : nullptr;
}

void Engine::advance_guard(QueueState& queue, Timestamp now) {
  if (!queue.guard || !queue.guard->advance(now)) return;
  emit(EventType::breaker_trial, queue, Seq{}, now);
  // A claim that comes now may find this out first, and leave something to those that wait.
  look_again_later(queue);
}

void Engine::tell_guard(QueueState& queue, const Lease& lease, LeaseEnd end, Timestamp now) {
  if (!queue.guard) return;
  OutageGuard& guard = *queue.guard;
  bool changed = false;
  switch (end) {
    case LeaseEnd::succeeded:
      changed = guard.succeeded(lease.trial, now);
      break;
    case LeaseEnd::failed:
      changed = guard.failed(lease.trial, now);
      break;
    case LeaseEnd::neither:
      guard.came_back(lease.trial);
      break;
  }
  if (!changed) return;
  const bool open = guard.state() == BreakerState::open;
  emit(open ? EventType::breaker_open : EventType::breaker_closed, queue, Seq{}, now,
       {.retry_at = open ? guard.open_until() : kNever});
  rearm(queue);
}

}  // namespace reprise
