// Queues: create, edit, pause, delete, and what people see about them.
#include <algorithm>

#include "base/text.h"
#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {

QueueState* Engine::lookup(const QueueName& name) const {
  const auto found = queues_.find(name);
  return found == queues_.end() ? nullptr : found->second.get();
}

Error Engine::queue_not_found(const QueueName& name) const {
  std::vector<std::string> candidates;
  for (const auto& [other, queue] : queues_) {
    if (other.ns == name.ns) candidates.push_back(other.name);
  }
  std::ranges::sort(candidates);  // the hash map's order would make the hint a matter of chance
  std::string detail = "no queue '" + name.name + "' in namespace '" + name.ns + "'";
  if (const auto meant = did_you_mean(name.name, candidates)) {
    detail += "; did you mean '" + *meant + "'?";
  }
  return {Errc::queue_not_found, std::move(detail)};
}

Result<QueueNumber> Engine::find_queue(const QueueName& name) const {
  const QueueState* queue = lookup(name);
  if (queue == nullptr) return queue_not_found(name);
  return queue->record.number;
}

QueueState& Engine::create_queue(const QueueName& name, const QueueConfig& config, Timestamp now) {
  const QueueNumber number = server_.next_queue++;
  server_changed_ = true;
  restore_queue({.number = number, .name = name, .config = config, .created_at = now}, {});
  QueueState& queue = *lookup(name);
  ledger_.put_queue(queue.record);
  touch(queue);
  return queue;
}

Result<PutQueueReply> Engine::put_queue(const PutQueueCommand& command, Timestamp now) {
  QueueState* queue = lookup(command.queue);
  const bool created = queue == nullptr;
  if (!created && command.only_if_absent) {
    return Error{Errc::queue_exists, "queue '" + command.queue.name + "' exists already"};
  }
  REPRISE_TRY(check_dead_letter_queue(command.queue, command.config));
  if (created) {
    queue = &create_queue(command.queue, command.config, now);
  } else if (queue->record.config != command.config) {
    queue->record.config = command.config;
    config_changed(*queue, now);
  }
  return PutQueueReply{created, stats_of(*queue, now)};
}

Result<QueueStats> Engine::edit_queue(const QueueName& name, const ConfigEdit& edit,
                                      Timestamp now) {
  QueueState* queue = lookup(name);
  if (queue == nullptr) return queue_not_found(name);
  QueueConfig edited = queue->record.config;
  REPRISE_TRY(edit(edited));
  REPRISE_TRY(check_dead_letter_queue(name, edited));
  queue->record.config = edited;
  config_changed(*queue, now);
  return stats_of(*queue, now);
}

void Engine::config_changed(QueueState& queue, Timestamp now) {
  ledger_.put_queue(queue.record);
  queue.payload_vars = PayloadVars::make(queue.record.config);
  define_guard(queue);
  queue.jobs.look_at_limits_again();
  define_hooks(queue, now);  // failures that this decides may be followed by deliveries
  rearm(queue);
  serve_waiting(queue, now);  // more may be allowed in flight
}

Result<QueueStats> Engine::pause_queue(const QueueName& name, bool paused, Timestamp now) {
  QueueState* queue = lookup(name);
  if (queue == nullptr) return queue_not_found(name);
  if (queue->record.paused != paused) {
    queue->record.paused = paused;
    ledger_.put_queue(queue->record);
    serve_waiting(*queue, now);
  }
  return stats_of(*queue, now);
}

Status Engine::rest_queue(const QueueName& name, Duration pause, Timestamp now) {
  QueueState* queue = lookup(name);
  if (queue == nullptr) return queue_not_found(name);
  queue->rest.reset();
  if (pause > Duration::zero()) {
    queue->rest = QueueState::Rest{.until = add_saturating(now, pause), .asked = pause};
  }
  rearm(*queue);
  serve_waiting(*queue, now);
  return ok();
}

Result<QueueStats> Engine::delete_queue(const QueueName& name, const std::string& asked_by,
                                        Timestamp now) {
  QueueState* queue = lookup(name);
  if (queue == nullptr) return queue_not_found(name);
  QueueStats last = stats_of(*queue, now);
  const QueueNumber number = queue->record.number;
  write_audit({.action = AuditAction::delete_queue,
               .queue = name,
               .asked_by = asked_by,
               .done = queue->alive() + queue->totals.dead_now},
              now);
  for (auto& [id, operation] : operations_) {
    if (operation.queue == number && operation.state == OperationState::running) {
      end_operation(operation, OperationState::failed, "the queue was deleted", now);
    }
  }
  for (WaitingClaim& claim : waiting_.take_all_of(number)) {
    answers_.push_back({claim.id, Error{Errc::queue_not_found,
                                        "queue '" + name.name + "' was deleted while waiting"}});
  }
  leases_.end_all_of(number);
  forget_hooks(*queue, {Errc::queue_not_found,
                        "queue '" + name.name + "' was deleted while its hook was asked"});
  ledger_.erase_queue(queue->record);
  wakes_.erase({queue->wake_at, number});
  touched_.erase(number);
  server_changed_ = true;
  by_number_.erase(number);
  queues_.erase(name);
  return last;
}

// A dead-letter queue has none of its own: a job that dies there stays, and none goes round.
Status Engine::check_dead_letter_queue(const QueueName& name, const QueueConfig& config) const {
  const std::string& target = config.dead_letter_queue;
  if (target.empty()) return ok();
  const auto refuse = [](const std::string& why) {
    return Error{Errc::invalid_field, "dead_letter_queue: " + why};
  };
  if (target == name.name) return refuse("a queue cannot be its own");
  if (const QueueState* other = lookup({name.ns, target});
      other != nullptr && !other->record.config.dead_letter_queue.empty()) {
    return refuse("queue '" + target + "' has one of its own, '" +
                  other->record.config.dead_letter_queue + "'; a dead-letter queue may not");
  }
  for (const auto& [user, queue] : queues_) {
    if (user.ns == name.ns && queue->record.config.dead_letter_queue == name.name) {
      return refuse("this queue is that of '" + user.name + "', and so may have none of its own");
    }
  }
  return ok();
}

const QueueRecord* Engine::queue_record(QueueNumber number) const {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : &found->second->record;
}

Result<QueueStats> Engine::queue_stats(const QueueName& name, Timestamp now) {
  QueueState* queue = lookup(name);
  if (queue == nullptr) return queue_not_found(name);
  return stats_of(*queue, now);
}

std::vector<QueueStats> Engine::list_queues(const std::string& ns, Timestamp now) {
  std::vector<QueueStats> list;
  for (const auto& [name, queue] : queues_) {
    if (ns.empty() || name.ns == ns) list.push_back(stats_of(*queue, now));
  }
  std::ranges::sort(list, {}, [](const QueueStats& stats) { return stats.queue.name; });
  return list;
}

QueueStats Engine::stats_of(QueueState& queue, Timestamp now) {
  QueueStats stats;
  stats.queue = queue.record;
  const auto set = [&](JobStatus status, std::uint64_t count) {
    stats.by_status[static_cast<std::size_t>(status)] = count;
  };
  set(JobStatus::scheduled, queue.scheduled.size());
  set(JobStatus::pending, queue.pending());
  set(JobStatus::active, queue.active);
  set(JobStatus::failed, queue.cooling.size());
  set(JobStatus::dead, queue.totals.dead_now);
  set(JobStatus::completed, queue.totals.completed);
  stats.bytes = queue.totals.live_bytes;
  stats.oldest_pending_age = oldest_pending_age(queue, now);
  stats.waiting_claims = waiting_.count_of(queue.record.number);
  stats.lanes = {.fresh = queue.jobs.fresh_size(),
                 .retry = queue.jobs.retry_size(),
                 .retry_in_flight = queue.retry_in_flight,
                 .retry_credit = queue.lane_share.credit(),
                 .retries_by_failures = queue.cooling.counts()};
  for (std::size_t i = 0; i < kFailureBuckets; ++i) {
    stats.lanes.retries_by_failures[i] += queue.jobs.retry_counts()[i];
  }
  stats.keys = queue.jobs.stats(now);
  if (queue.guard) stats.breaker = queue.guard->stats(now);
  for (std::size_t kind = 0; kind < kHookKindCount; ++kind) {
    if (queue.hooks[kind]) stats.hooks[kind] = queue.hooks[kind]->stats(now);
  }
  stats.totals = queue.totals;
  stats.push_rate = queue.pushes.per_second(now);
  stats.claim_rate = queue.claims.per_second(now);
  stats.completion_rate = queue.completions.per_second(now);
  stats.failure_rate = queue.failures.per_second(now);
  return stats;
}

// A fresh job has waited since its push, a retry since it was due.
std::optional<Duration> Engine::oldest_pending_age(const QueueState& queue, Timestamp now) {
  std::optional<Duration> age;
  if (const auto oldest = queue.jobs.oldest_fresh()) {
    const auto record = ledger_.record({queue.record.number, *oldest});
    if (record && *record) age = now - (*record)->pushed_at;
  }
  if (const auto oldest = queue.jobs.oldest_retry()) {
    age = std::max(age.value_or(Duration{}), now - oldest->at);
  }
  return age;
}

// Registers when the queue's own timers want it next; leases and waiting claims have tables of
// their own.
void Engine::rearm(QueueState& queue) {
  Timestamp next = kNever;
  if (!queue.scheduled.empty()) next = std::min(next, queue.scheduled.begin()->first.at);
  if (!queue.cooling.empty()) next = std::min(next, queue.cooling.front().at);
  if (!queue.expiries.empty()) next = std::min(next, queue.expiries.begin()->at);
  if (queue.guard && queue.guard->state() == BreakerState::open) {
    next = std::min(next, queue.guard->open_until());
  }
  if (queue.rest) next = std::min(next, queue.rest->until);
  if (queue.look_again) next = Timestamp{};  // long ago
  if (next == queue.wake_at) return;
  wakes_.erase({queue.wake_at, queue.record.number});
  if (next != kNever) wakes_.emplace(next, queue.record.number);
  queue.wake_at = next;
}

}  // namespace reprise
