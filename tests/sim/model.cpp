#include "sim/model.h"

#include <algorithm>
#include <utility>

namespace reprise::sim {
namespace {

Error error(Errc code) { return {code, ""}; }

bool is_dead(const Model::Job& job) { return job.state.status == JobStatus::dead; }
bool is_active(const Model::Job& job) { return job.state.status == JobStatus::active; }
bool waits_for_its_time(const Model::Job& job) {
  return !job.in_lane &&
         (job.state.status == JobStatus::scheduled || job.state.status == JobStatus::failed);
}

JobStatus shown_status(const Model::Job& job) {
  return job.in_lane ? JobStatus::pending : job.state.status;
}

std::uint64_t bytes_alive(const Model::Queue& queue) {
  std::uint64_t bytes = 0;
  for (const auto& [seq, job] : queue.jobs) bytes += is_dead(job) ? 0 : job.record.byte_size();
  return bytes;
}

std::uint64_t count_alive(const Model::Queue& queue) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(queue.jobs, [](const auto& entry) { return !is_dead(entry.second); }));
}

}  // namespace

// --- Push.

Result<PushReply> Model::push(const PushCommand& command, Timestamp now) {
  Queue* queue = find(command.queue);
  if (queue == nullptr) {
    if (!command.create) return error(Errc::queue_not_found);
    queue = &create(command.queue, {}, now);
  }
  PushReply reply;
  for (const Result<NewJob>& job : command.jobs) {
    reply.results.push_back(job ? push_one(*queue, *job, now) : error(job.error().code));
  }
  serve_waiting(*queue, now);
  return reply;
}

Result<PushedJob> Model::push_one(Queue& queue, const NewJob& job, Timestamp now) {
  const auto known = queue.keys.find(job.key);
  if (known != queue.keys.end() && known->second.expires_at > now) {
    ++queue.totals.duplicates;
    return PushedJob{known->second.seq, true};
  }
  if (disk_low_) return error(Errc::disk_full);
  const QueueConfig& config = queue.record.config;
  const std::optional<Duration> ttl = job.ttl ? job.ttl : config.ttl;
  const JobRecord record{.pushed_at = now,
                         .expires_at = ttl ? now + *ttl : kNever,
                         .priority = job.priority,
                         .payload_kind = job.payload_kind,
                         .key = job.key,
                         .headers = job.headers,
                         .payload = job.payload};
  REPRISE_TRY(check_room(queue, record));

  const Seq seq = next_seq_++;
  if (!job.key.empty()) queue.keys[job.key] = {seq, now + config.key_window};
  JobState state;
  if (job.delay > Duration::zero()) {
    state.status = JobStatus::scheduled;
    state.due = now + job.delay;
  }
  queue.jobs[seq] = {record, state, state.status == JobStatus::pending};
  ++queue.totals.pushed;
  note(EventType::pushed);
  return PushedJob{seq, false};
}

Status Model::check_room(const Queue& queue, const JobRecord& record) const {
  const QueueConfig& config = queue.record.config;
  if (config.max_jobs && count_alive(queue) + 1 > *config.max_jobs) return error(Errc::queue_full);
  if (config.max_bytes && bytes_alive(queue) + record.byte_size() > *config.max_bytes) {
    return error(Errc::queue_bytes_full);
  }
  return ok();
}

// --- Claim.

std::optional<Result<ClaimReply>> Model::claim(ClaimId id, const ClaimCommand& command,
                                               Timestamp now) {
  Queue* queue = find(command.queue);
  if (queue == nullptr) return error(Errc::queue_not_found);
  ClaimReply reply = grant(*queue, command, now);
  if (!reply.jobs.empty() || command.wait == Duration::zero()) return reply;
  waiting_.push_back({id, queue->record.number, now + command.wait, command});
  return std::nullopt;
}

void Model::cancel_claim(ClaimId id) {
  if (std::erase_if(waiting_, [&](const WaitingClaim& claim) { return claim.id == id; }) > 0) {
    answers_.emplace(id, ClaimReply{});
  }
}

// Fresh jobs by priority, then push order; retries by their retry time, then push order.
Model::Job* Model::head(Queue& queue, Lane lane) {
  Job* best = nullptr;
  const auto place = [&](const Job& job) {
    return lane == Lane::fresh ? job.record.priority : job.state.due.time_since_epoch().count();
  };
  for (auto& [seq, job] : queue.jobs) {  // in push order, so the first of equals stays
    if (!job.in_lane || job.state.lane() != lane) continue;
    if (best == nullptr || place(job) < place(*best)) best = &job;
  }
  return best;
}

// While both lanes have a job, every fifth one given is a retry.
Model::Job* Model::next_job(Queue& queue, LaneChoice choice) {
  Job* fresh = choice == LaneChoice::retry ? nullptr : head(queue, Lane::fresh);
  Job* retry = choice == LaneChoice::fresh ? nullptr : head(queue, Lane::retry);
  if (fresh == nullptr) return retry;
  if (retry == nullptr) return fresh;
  return ++queue.shared_picks % 5 == 0 ? retry : fresh;
}

ClaimReply Model::grant(Queue& queue, const ClaimCommand& command, Timestamp now) {
  ClaimReply reply;
  while (!queue.record.paused && reply.jobs.size() < command.max) {
    Job* job = next_job(queue, command.lane);
    if (job == nullptr) break;
    if (job->record.expires_at <= now) {
      bury(queue, *job, DeathReason::expired, DecidedBy::policy, now);
      continue;
    }
    JobState& state = job->state;
    job->in_lane = false;
    state.status = JobStatus::active;
    if (++state.attempts == 1) state.first_attempt_at = now;
    state.lease_started_at = now;
    state.lease_deadline = now + command.lease.value_or(queue.record.config.lease);
    state.worker = command.worker;
    ++queue.totals.claimed;
    note(EventType::taken);
    reply.jobs.push_back({.token = {key_of(queue, *job), 0},
                          .record = std::make_shared<const JobRecord>(job->record),
                          .attempts = state.attempts,
                          .failures = state.failures,
                          .lease_deadline = state.lease_deadline,
                          .last_error = state.last_error});
  }
  return reply;
}

void Model::learn(const ClaimReply& reply) {
  for (const ClaimedJob& claimed : reply.jobs) {
    Queue* queue = find(claimed.token.job.queue);
    queue->jobs.at(claimed.token.job.seq).state.lease_nonce = claimed.token.nonce;
  }
}

// First come, first served, among those whose lane has a job.
void Model::serve_waiting(Queue& queue, Timestamp now) {
  if (queue.record.paused) return;
  const auto has_job = [&](LaneChoice choice) {
    return (choice != LaneChoice::retry && head(queue, Lane::fresh) != nullptr) ||
           (choice != LaneChoice::fresh && head(queue, Lane::retry) != nullptr);
  };
  while (true) {
    const auto first = std::ranges::find_if(waiting_, [&](const WaitingClaim& claim) {
      return claim.queue == queue.record.number && has_job(claim.command.lane);
    });
    if (first == waiting_.end()) return;
    ClaimReply reply = grant(queue, first->command, now);
    if (reply.jobs.empty()) continue;  // all it could have had was over its ttl
    answers_.emplace(first->id, std::move(reply));
    waiting_.erase(first);
  }
}

// --- Leases.

Result<Model::Held> Model::held(const Result<LeaseToken>& token, Timestamp now) {
  if (!token) return error(token.error().code);
  Queue* queue = find(token->job.queue);
  if (queue == nullptr) return error(Errc::lease_lost);
  const auto found = queue->jobs.find(token->job.seq);
  if (found == queue->jobs.end()) return error(Errc::lease_lost);
  const JobState& state = found->second.state;
  if (!is_active(found->second) || state.lease_nonce != token->nonce ||
      state.lease_deadline <= now) {
    return error(Errc::lease_lost);
  }
  return Held{queue, &found->second};
}

Result<Acked> Model::ack(const AckItem& item, Timestamp now) {
  const auto lease = held(item.token, now);
  if (!lease) return lease.error();
  lease->queue->jobs.erase(item.token->job.seq);
  ++lease->queue->totals.completed;
  note(EventType::completed);
  return Acked{item.token->job};
}

Result<Failed> Model::fail(const FailItem& item, Timestamp now) {
  const auto lease = held(item.token, now);
  if (!lease) return lease.error();
  return end_in_failure(*lease->queue, *lease->job, AttemptOutcome::failed, item, now);
}

Failed Model::end_in_failure(Queue& queue, Job& job, AttemptOutcome outcome, const FailItem& how,
                             Timestamp now) {
  const JobKey key = key_of(queue, job);
  const RetryPolicy& policy = queue.record.config.retry;
  JobState& state = job.state;
  end_attempt(job, outcome, how.error, now);
  ++state.failures;
  state.last_error = how.error;
  ++queue.totals.failed;
  note(EventType::failed);
  const auto die = [&](DeathReason reason, DecidedBy decided_by) {
    bury(queue, job, reason, decided_by, now);
    return Failed{.job = key, .status = JobStatus::dead, .reason = reason};
  };
  const bool expired_lease = outcome == AttemptOutcome::lease_expired;
  if (how.final) return die(DeathReason::final, DecidedBy::client);
  if (state.failures >= std::max(policy.attempts, 1U)) {
    return die(expired_lease ? DeathReason::lease_expired : DeathReason::max_attempts,
               DecidedBy::policy);
  }
  if (job.record.expires_at <= now) return die(DeathReason::expired, DecidedBy::policy);
  state.status = JobStatus::failed;
  state.due = now + how.delay.value_or(policy.cooldown);
  job.in_lane = state.due <= now;
  const Timestamp retry_at = state.due;
  serve_waiting(queue, now);
  return {.job = key, .status = JobStatus::failed, .retry_at = retry_at};
}

Result<Released> Model::release(const ReleaseItem& item, Timestamp now) {
  const auto lease = held(item.token, now);
  if (!lease) return lease.error();
  Queue& queue = *lease->queue;
  Job& job = *lease->job;
  end_attempt(job, AttemptOutcome::released, "", now);
  ++queue.totals.released;
  note(EventType::released);
  if (job.record.expires_at <= now) {
    bury(queue, job, DeathReason::expired, DecidedBy::policy, now);
    return Released{item.token->job};
  }
  job.state.status = JobStatus::pending;
  if (item.delay > Duration::zero()) {
    job.state.status = job.state.failures == 0 ? JobStatus::scheduled : JobStatus::failed;
    job.state.due = now + item.delay;
  }
  job.in_lane = job.state.status == JobStatus::pending;
  serve_waiting(queue, now);
  return Released{item.token->job};
}

Result<Extended> Model::extend(const ExtendItem& item, Timestamp now) {
  const auto lease = held(item.token, now);
  if (!lease) return lease.error();
  JobState& state = lease->job->state;
  state.lease_deadline = now + item.lease.value_or(lease->queue->record.config.lease);
  return Extended{item.token->job, state.lease_deadline};
}

void Model::end_attempt(Job& job, AttemptOutcome outcome, const std::string& error_text,
                        Timestamp now) {
  JobState& state = job.state;
  std::vector<Attempt>& history = state.history;
  history.push_back(
      {.number = state.attempts,
       .started_at = state.lease_started_at,
       .ended_at = outcome == AttemptOutcome::lease_expired ? state.lease_deadline : now,
       .outcome = outcome,
       .worker = state.worker,
       .error = error_text});
  if (history.size() > 10) history.erase(history.begin() + 1);  // the first and the last nine
  state.worker.clear();
  state.lease_nonce = 0;
  state.lease_started_at = {};
  state.lease_deadline = {};
}

void Model::bury(Queue& queue, Job& job, DeathReason reason, DecidedBy decided_by, Timestamp now) {
  job.in_lane = false;
  job.state.status = JobStatus::dead;
  job.state.death_reason = reason;
  job.state.decided_by = decided_by;
  job.state.died_at = now;
  ++queue.totals.died;
  ++queue.totals.dead_now;
  if (reason == DeathReason::expired) ++queue.totals.expired;
  note(EventType::dead);
}

Result<DroppedJob> Model::drop(const QueueName& name, Seq seq, Timestamp now) {
  Queue* queue = find(name);
  if (queue == nullptr) return error(Errc::queue_not_found);
  const auto found = queue->jobs.find(seq);
  if (found == queue->jobs.end()) return error(Errc::job_not_found);
  const JobStatus was = effective_status(&found->second.state, now);
  if (was == JobStatus::dead) --queue->totals.dead_now;
  queue->jobs.erase(found);
  ++queue->totals.dropped;
  note(EventType::dropped);
  return DroppedJob{{queue->record.number, seq}, was};
}

// --- Queues.

bool Model::put_queue(const QueueName& name, const QueueConfig& config, Timestamp now) {
  if (Queue* queue = find(name)) {
    queue->record.config = config;
    return false;
  }
  create(name, config, now);
  return true;
}

Status Model::set_retry(const QueueName& name, const RetryPolicy& retry) {
  Queue* queue = find(name);
  if (queue == nullptr) return error(Errc::queue_not_found);
  queue->record.config.retry = retry;
  return ok();
}

Status Model::pause_queue(const QueueName& name, bool paused, Timestamp now) {
  Queue* queue = find(name);
  if (queue == nullptr) return error(Errc::queue_not_found);
  queue->record.paused = paused;
  serve_waiting(*queue, now);
  return ok();
}

Status Model::delete_queue(const QueueName& name) {
  Queue* queue = find(name);
  if (queue == nullptr) return error(Errc::queue_not_found);
  for (const WaitingClaim& claim : waiting_) {
    if (claim.queue == queue->record.number) {
      answers_.emplace(claim.id, error(Errc::queue_not_found));
    }
  }
  std::erase_if(waiting_, [&](const auto& claim) { return claim.queue == queue->record.number; });
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
  return queue;
}

JobKey Model::key_of(const Queue& queue, const Job& job) {
  const auto found =
      std::ranges::find_if(queue.jobs, [&](const auto& entry) { return &entry.second == &job; });
  return {queue.record.number, found->first};
}

// --- Time.

void Model::tick(Timestamp now) {
  expire_leases(now);
  for (auto& [name, queue] : queues_) {
    for (auto& [seq, job] : queue.jobs) {
      if (is_dead(job) || is_active(job)) continue;  // work in hand may still finish
      if (job.record.expires_at <= now) {
        bury(queue, job, DeathReason::expired, DecidedBy::policy, now);
      } else if (waits_for_its_time(job) && job.state.due <= now) {
        job.in_lane = true;
      }
    }
    serve_waiting(queue, now);
  }
  for (const WaitingClaim& claim : waiting_) {
    if (claim.deadline <= now) answers_.emplace(claim.id, ClaimReply{});
  }
  std::erase_if(waiting_, [&](const WaitingClaim& claim) { return claim.deadline <= now; });
}

// In the order in which they ended: each may go on to a claim that waits.
void Model::expire_leases(Timestamp now) {
  while (true) {
    Held first;
    for (auto& [name, queue] : queues_) {
      for (auto& [seq, job] : queue.jobs) {
        if (!is_active(job) || job.state.lease_deadline > now) continue;
        if (first.job == nullptr || job.state.lease_deadline < first.job->state.lease_deadline) {
          first = {&queue, &job};
        }
      }
    }
    if (first.job == nullptr) return;
    ++first.queue->totals.lease_expired;
    end_in_failure(*first.queue, *first.job, AttemptOutcome::lease_expired,
                   {.error = "lease expired"}, now);
  }
}

void Model::restart() {
  waiting_.clear();
  answers_.clear();
  events_ = {};
  disk_low_ = false;
  for (auto& [name, queue] : queues_) {
    queue.shared_picks = 0;
    for (auto& [seq, job] : queue.jobs) job.in_lane = job.state.status == JobStatus::pending;
  }
}

// --- Looking.

QueueTotals Model::totals_of(const Queue& queue) {
  QueueTotals totals = queue.totals;
  totals.live_bytes = bytes_alive(queue);
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
    if (!job.in_lane) continue;
    if (job.state.lane() == Lane::fresh) {
      older(oldest_fresh, job.record.pushed_at);
    } else {
      older(oldest_retry, job.state.due);
    }
  }
  stats.by_status[static_cast<std::size_t>(JobStatus::completed)] = queue.totals.completed;
  stats.bytes = bytes_alive(queue);
  if (oldest_fresh) stats.oldest_pending_age = now - *oldest_fresh;
  if (oldest_retry) {
    stats.oldest_pending_age =
        std::max(stats.oldest_pending_age.value_or(Duration{}), now - *oldest_retry);
  }
  stats.waiting_claims = static_cast<std::uint64_t>(
      std::ranges::count(waiting_, queue.record.number, &WaitingClaim::queue));
  return stats;
}

Timestamp Model::next_wake() const {
  Timestamp next = kNever;
  for (const WaitingClaim& claim : waiting_) next = std::min(next, claim.deadline);
  for (const auto& [name, queue] : queues_) {
    for (const auto& [seq, job] : queue.jobs) {
      if (is_dead(job)) continue;
      if (is_active(job)) {
        next = std::min(next, job.state.lease_deadline);
        continue;
      }
      next = std::min(next, job.record.expires_at);
      if (waits_for_its_time(job)) next = std::min(next, job.state.due);
    }
  }
  return next;
}

}  // namespace reprise::sim
