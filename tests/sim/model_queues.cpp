// Queues, what time does to them, and what people see of them.
#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/model.h"

namespace reprise::sim {
namespace {

Error error(Errc code) { return {code, ""}; }

bool waits_for_its_time(const Model::Job& job) {
  return !job.in_lane &&
         (job.state.status == JobStatus::scheduled || job.state.status == JobStatus::failed);
}

JobStatus shown_status(const Model::Job& job) {
  return job.in_lane ? JobStatus::pending : job.state.status;
}

}  // namespace

Result<bool> Model::put_queue(const QueueName& name, const QueueConfig& config, Timestamp now) {
  REPRISE_TRY(check_dead_letter_queue(name, config));
  if (Queue* queue = find(name)) {
    queue->record.config = config;
    define_guard(*queue);
    define_hooks(*queue, now);
    serve_waiting(*queue, now);
    return false;
  }
  create(name, config, now);
  return true;
}

Status Model::edit_queue(const QueueName& name, const ConfigEdit& edit, Timestamp now) {
  Queue* queue = find(name);
  if (queue == nullptr) return error(Errc::queue_not_found);
  QueueConfig config = queue->record.config;
  REPRISE_TRY(edit(config));
  REPRISE_TRY(check_dead_letter_queue(name, config));
  queue->record.config = config;
  define_guard(*queue);
  define_hooks(*queue, now);
  serve_waiting(*queue, now);
  return ok();
}

// A queue that has one is none, and one that is one has none.
Status Model::check_dead_letter_queue(const QueueName& name, const QueueConfig& config) const {
  if (config.dead_letter_queue.empty()) return ok();
  std::map<std::string, std::string> targets;
  for (const auto& [other, queue] : queues_) {
    if (other.ns == name.ns) targets[other.name] = queue.record.config.dead_letter_queue;
  }
  targets[name.name] = config.dead_letter_queue;
  for (const auto& [user, target] : targets) {
    const auto next = targets.find(target);
    if (!target.empty() && next != targets.end() && !next->second.empty()) {
      return error(Errc::invalid_field);
    }
  }
  return ok();
}

Status Model::pause_queue(const QueueName& name, bool paused, Timestamp now) {
  Queue* queue = find(name);
  if (queue == nullptr) return error(Errc::queue_not_found);
  if (queue->record.paused == paused) return ok();
  queue->record.paused = paused;
  serve_waiting(*queue, now);
  return ok();
}

Status Model::delete_queue(const QueueName& name, const std::string& asked_by, Timestamp now) {
  Queue* queue = find(name);
  if (queue == nullptr) return error(Errc::queue_not_found);
  const auto completed = std::ranges::count_if(queue->jobs, [](const auto& entry) {
    return entry.second.state.status == JobStatus::completed;
  });
  write_audit({.action = AuditAction::delete_queue,
               .queue = name,
               .asked_by = asked_by,
               .done = queue->jobs.size() - static_cast<std::uint64_t>(completed)},
              now);
  for (auto& [id, operation] : operations_) {
    const bool is_its = operation.queue == queue->record.number;
    if (is_its && operation.state == OperationState::running) {
      end_operation(operation, OperationState::failed, now);
    }
  }
  for (const WaitingClaim& claim : waiting_) {
    if (claim.queue == queue->record.number) {
      answers_.emplace(claim.id, error(Errc::queue_not_found));
    }
  }
  std::erase_if(waiting_, [&](const auto& claim) { return claim.queue == queue->record.number; });
  forget_hooks(*queue);
  queues_.erase(name);
  return ok();
}

void Model::forget_key(QueueNumber number, const std::string& key, Timestamp now) {
  Queue* queue = find(number);
  if (queue == nullptr) return;
  const auto found = queue->keys.find(key);
  if (found != queue->keys.end() && found->second.expires_at <= now) queue->keys.erase(found);
}

Model::Queue* Model::find(const QueueName& name) {
  const auto found = queues_.find(name);
  return found == queues_.end() ? nullptr : &found->second;
}

Model::Queue* Model::find(QueueNumber number) {
  const auto found = std::ranges::find_if(
      queues_, [&](const auto& entry) { return entry.second.record.number == number; });
  return found == queues_.end() ? nullptr : &found->second;
}

Model::Queue& Model::create(const QueueName& name, const QueueConfig& config, Timestamp now) {
  Queue& queue = queues_[name];
  queue.record = {.number = next_queue_++, .name = name, .config = config, .created_at = now};
  define_guard(queue);
  define_hooks(queue, now);
  return queue;
}

// --- Time.

void Model::tick(Timestamp now) {
  told_.tick_is_due = true;  // who is left out now may be served before it is over
  allow_lateness(now);
  expire_leases(now);
  // In the order that was told: the first of its key to come to a dead-letter queue says how much
  // it weighs there.
  std::vector<std::pair<std::size_t, Queue*>> queues;  // as they are now: a death may make one more
  for (auto& [name, queue] : queues_) {
    const std::map<std::size_t, Seq> over = deaths_of_age(queue, now);
    queues.emplace_back(over.empty() ? SIZE_MAX : over.begin()->first, &queue);
  }
  std::ranges::stable_sort(queues, {}, &std::pair<std::size_t, Queue*>::first);
  for (const auto& [place, queue] : queues) {
    for (const auto& [death, seq] : deaths_of_age(*queue, now)) {
      bury(*queue, seq, DeathReason::expired, DecidedBy::policy, now);
    }
    for (auto& [seq, job] : queue->jobs) {
      if (waits_for_its_time(job) && job.state.due <= now) job.in_lane = true;
    }
    advance_guard(*queue, now);
    serve_waiting(*queue, now);
  }
  for (const WaitingClaim& claim : waiting_) {
    if (claim.deadline <= now) answers_.emplace(claim.id, ClaimReply{});
  }
  std::erase_if(waiting_, [&](const WaitingClaim& claim) { return claim.deadline <= now; });
  settle_lateness(now);
}

// Work in hand may still finish.
std::map<std::size_t, Seq> Model::deaths_of_age(const Queue& queue, Timestamp now) const {
  std::map<std::size_t, Seq> deaths;
  for (const auto& [seq, job] : queue.jobs) {
    if (!is_alive(job) || is_active(job) || job.record.expires_at > now) continue;
    deaths.emplace(death_place(queue, seq), seq);
  }
  return deaths;
}

// In the order in which they ended: each may go on to a claim that waits.
void Model::expire_leases(Timestamp now) {
  while (true) {
    Held first;
    const auto place = [](const Queue& queue, Seq seq, const Job& job) {
      return std::tuple(job.state.lease_deadline, queue.record.number, seq);
    };
    for (auto& [name, queue] : queues_) {
      for (auto& [seq, job] : queue.jobs) {
        if (!is_active(job) || job.state.lease_deadline > now) continue;
        if (queue.undecided.contains(seq)) continue;
        if (first.job == nullptr ||
            place(queue, seq, job) < place(*first.queue, first.seq, *first.job)) {
          first = {&queue, seq, &job};
        }
      }
    }
    if (first.job == nullptr) return;
    FailItem silent;
    silent.error = "lease expired";
    silent.outcome = AttemptOutcome::lease_expired;
    end_in_failure(first, {.how = silent, .failed_at = now, .request = {}}, now);
  }
}

// Queues take their turns in a tick in an order that is nobody's business, unless jobs go from one
// to the other and somebody waits there, or there is more than one to be made.
std::set<QueueName> Model::targets_of_a_tick(Timestamp now) const {
  std::set<QueueName> targets;
  for (const auto& [name, queue] : queues_) {
    const std::string& target = queue.record.config.dead_letter_queue;
    const bool moves = std::ranges::any_of(queue.jobs, [&](const auto& entry) {
      const Job& job = entry.second;
      return is_alive(job) && !is_active(job) && job.record.expires_at <= now;
    });
    if (!target.empty() && moves) targets.insert({name.ns, target});
  }
  return targets;
}

std::vector<ClaimId> Model::claims_that_a_tick_may_race(Timestamp now) const {
  std::vector<ClaimId> claims;
  for (const QueueName& target : targets_of_a_tick(now)) {
    const auto graves = queues_.find(target);
    if (graves == queues_.end()) continue;
    for (const WaitingClaim& claim : waiting_) {
      if (claim.queue == graves->second.record.number) claims.push_back(claim.id);
    }
  }
  return claims;
}

std::set<QueueName> Model::queues_that_a_tick_may_make(Timestamp now) const {
  std::set<QueueName> targets = targets_of_a_tick(now);
  std::erase_if(targets, [&](const QueueName& name) { return queues_.contains(name); });
  return targets;
}

void Model::restart() {
  waiting_.clear();
  answers_.clear();
  told_ = {};
  events_ = {};
  disk_low_ = false;
  hook_work_.clear();
  waiting_fails_.clear();
  push_answers_.clear();
  fail_answers_.clear();
  for (auto& [name, queue] : queues_) {
    queue.credits = {0};
    queue.stretches = {};
    queue.weights.clear();
    for (auto& [seq, job] : queue.jobs) {
      job.in_lane = job.state.status == JobStatus::pending;
      job.canary = false;
      // Of the jobs that are there, the latest says it.
      const Scheduling& scheduling = job.record.scheduling;
      if (is_alive(job)) queue.weights[scheduling.fairness_key] = scheduling.weight;
    }
    queue.guard.reset();
    define_guard(queue);
    queue.hooks = {};
    queue.hook_limits = {};
    queue.undecided.clear();
    queue.pushes.clear();
    define_hooks(queue, {});
  }
  for (const auto& [key, entry] : config_) {
    hook_work_.emplace_back(ConfigChange{entry.ns, entry.key, entry.value});
  }
}

void Model::keep_credit_of(const Model& before) {
  for (auto& [name, queue] : queues_) {
    const auto found = before.queues_.find(name);
    if (found != before.queues_.end()) queue.credits = found->second.credits;
  }
}

// --- Looking.

QueueTotals Model::totals_of(const Queue& queue) {
  QueueTotals totals = queue.totals;
  for (const auto& [seq, job] : queue.jobs) {
    if (is_alive(job)) totals.live_bytes += job.record.byte_size();
    if (job.state.status == JobStatus::dead) ++totals.dead_now;
    if (job.state.status == JobStatus::completed) ++totals.completed_now;
  }
  return totals;
}

QueueStats Model::stats_of(const QueueName& name, Timestamp now) const {
  const Queue& queue = queues_.at(name);
  QueueStats stats{.queue = queue.record, .totals = totals_of(queue)};
  std::optional<Timestamp> oldest_fresh;  // pushed
  std::optional<Timestamp> oldest_retry;  // due
  const auto older = [](std::optional<Timestamp>& oldest, Timestamp time) {
    oldest = oldest ? std::min(*oldest, time) : time;
  };
  for (const auto& [seq, job] : queue.jobs) {
    ++stats.by_status[static_cast<std::size_t>(shown_status(job))];
    if (is_retry(job) && is_active(job)) ++stats.lanes.retry_in_flight;
    if (is_retry(job) && is_alive(job) && !is_active(job)) {
      ++stats.lanes.retries_by_failures[std::min(job.state.failures, 10U) - 1];
    }
    if (!job.in_lane) continue;
    if (job.state.lane() == Lane::fresh) {
      ++stats.lanes.fresh;
      older(oldest_fresh, job.record.pushed_at);
    } else {
      ++stats.lanes.retry;
      older(oldest_retry, job.state.due);
    }
  }
  stats.by_status[static_cast<std::size_t>(JobStatus::completed)] = queue.totals.completed;
  stats.bytes = stats.totals.live_bytes;
  stats.lanes.retry_credit = static_cast<double>(*queue.credits.begin()) / 1'000'000;
  if (oldest_fresh) stats.oldest_pending_age = now - *oldest_fresh;
  if (oldest_retry) {
    stats.oldest_pending_age =
        std::max(stats.oldest_pending_age.value_or(Duration{}), now - *oldest_retry);
  }
  if (queue.guard) stats.breaker = shown_stats(*queue.guard, now);
  for (std::size_t kind = 0; kind < kHookKindCount; ++kind) {
    if (queue.hooks[kind]) stats.hooks[kind] = shown_stats(*queue.hooks[kind], now);
  }
  stats.waiting_claims = static_cast<std::uint64_t>(
      std::ranges::count(waiting_, queue.record.number, &WaitingClaim::queue));
  return stats;
}

Timestamp Model::next_wake(Timestamp now) const {
  Timestamp next = next_token_that_is_awaited(now);
  for (const WaitingClaim& claim : waiting_) next = std::min(next, claim.deadline);
  for (const auto& [name, queue] : queues_) {
    if (queue.guard && queue.guard->state == BreakerState::open) {
      next = std::min(next, queue.guard->open_until);
    }
    for (const auto& [seq, job] : queue.jobs) {
      if (!is_alive(job)) continue;
      if (is_active(job)) {
        if (!queue.undecided.contains(seq)) next = std::min(next, job.state.lease_deadline);
        continue;
      }
      next = std::min(next, job.record.expires_at);
      if (waits_for_its_time(job)) next = std::min(next, job.state.due);
    }
  }
  return next;
}

}  // namespace reprise::sim
