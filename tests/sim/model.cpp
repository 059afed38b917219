#include "sim/model.h"

#include <algorithm>
#include <utility>

namespace reprise::sim {
namespace {

Error error(Errc code) { return {code, ""}; }

std::uint64_t bytes_alive(const Model::Queue& queue) {
  std::uint64_t bytes = 0;
  for (const auto& [seq, job] : queue.jobs) bytes += is_alive(job) ? job.record.byte_size() : 0;
  return bytes;
}

std::uint64_t count_alive(const Model::Queue& queue) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(queue.jobs, [](const auto& entry) { return is_alive(entry.second); }));
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
std::map<Seq, Model::Job>::iterator Model::head(Queue& queue, Lane lane) {
  auto best = queue.jobs.end();
  const auto place = [&](const Job& job) {
    return lane == Lane::fresh ? job.record.priority : job.state.due.time_since_epoch().count();
  };
  for (auto at = queue.jobs.begin(); at != queue.jobs.end(); ++at) {
    const Job& job = at->second;  // in push order, so the first of equals stays
    if (!job.in_lane || job.state.lane() != lane) continue;
    if (best == queue.jobs.end() || place(job) < place(best->second)) best = at;
  }
  return best;
}

bool Model::has_room_for_retry(const Queue& queue) {
  const auto& most = queue.record.config.fetch.retry_in_flight;
  const auto in_flight = std::ranges::count_if(queue.jobs, [](const auto& entry) {
    return is_active(entry.second) && is_retry(entry.second);
  });
  return !most || static_cast<std::uint64_t>(in_flight) < *most;
}

// While both lanes have a job, each one given earns the retry lane its share of a job.
std::map<Seq, Model::Job>::iterator Model::next_job(Queue& queue, LaneChoice choice) {
  const auto none = queue.jobs.end();
  const auto fresh = choice == LaneChoice::retry ? none : head(queue, Lane::fresh);
  const auto retry =
      choice == LaneChoice::fresh || !has_room_for_retry(queue) ? none : head(queue, Lane::retry);
  if (fresh == none) return retry;
  if (retry == none) return fresh;
  queue.credit += queue.record.config.fetch.retry_share_ppm;
  if (queue.credit < 1'000'000) return fresh;
  queue.credit -= 1'000'000;
  return retry;
}

ClaimReply Model::grant(Queue& queue, const ClaimCommand& command, Timestamp now) {
  ClaimReply reply;
  while (!queue.record.paused && reply.jobs.size() < command.max) {
    const auto found = next_job(queue, command.lane);
    if (found == queue.jobs.end()) break;
    auto& [seq, job] = *found;
    if (job.record.expires_at <= now) {
      bury(queue, seq, DeathReason::expired, DecidedBy::policy, now);
      continue;
    }
    JobState& state = job.state;
    job.in_lane = false;
    state.status = JobStatus::active;
    if (++state.attempts == 1) state.first_attempt_at = now;
    state.lease_started_at = now;
    state.lease_deadline = now + command.lease.value_or(queue.record.config.lease);
    state.worker = command.worker;
    ++queue.totals.claimed;
    if (is_retry(job)) ++queue.totals.claimed_retry;
    note(EventType::taken);
    reply.jobs.push_back({.token = {{queue.record.number, seq}, 0},
                          .record = std::make_shared<const JobRecord>(job.record),
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
    return (choice != LaneChoice::retry && head(queue, Lane::fresh) != queue.jobs.end()) ||
           (choice != LaneChoice::fresh && head(queue, Lane::retry) != queue.jobs.end() &&
            has_room_for_retry(queue));
  };
  while (true) {
    const auto first = std::ranges::find_if(waiting_, [&](const WaitingClaim& claim) {
      return claim.queue == queue.record.number && has_job(claim.command.lane);
    });
    if (first == waiting_.end()) return;
    const WaitingClaim claim = *first;  // others may be served meanwhile, elsewhere
    ClaimReply reply = grant(queue, claim.command, now);
    if (reply.jobs.empty()) continue;  // all it could have had was over its ttl
    answers_.emplace(claim.id, std::move(reply));
    std::erase_if(waiting_, [&](const WaitingClaim& other) { return other.id == claim.id; });
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
  return Held{queue, found->first, &found->second};
}

Result<Acked> Model::ack(const AckItem& item, Timestamp now) {
  const auto lease = held(item.token, now);
  if (!lease) return lease.error();
  Queue& queue = *lease->queue;
  if (queue.record.config.keep_completed) {
    end_attempt(*lease->job, AttemptOutcome::completed, {}, now);
    lease->job->state.status = JobStatus::completed;
    lease->job->state.ended_at = now;
  } else {
    queue.jobs.erase(lease->seq);
  }
  ++queue.totals.completed;
  note(EventType::completed);
  serve_waiting(queue, now);
  return Acked{item.token->job};
}

Result<Failed> Model::fail(const FailItem& item, Timestamp now) {
  const auto lease = held(item.token, now);
  if (!lease) return lease.error();
  return end_in_failure(*lease, item, now);
}

Result<Released> Model::release(const ReleaseItem& item, Timestamp now) {
  const auto lease = held(item.token, now);
  if (!lease) return lease.error();
  Queue& queue = *lease->queue;
  Job& job = *lease->job;
  end_attempt(job, AttemptOutcome::released, {}, now);
  ++queue.totals.released;
  note(EventType::released);
  if (job.record.expires_at <= now) {
    bury(queue, lease->seq, DeathReason::expired, DecidedBy::policy, now);
    serve_waiting(queue, now);
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

void Model::end_attempt(Job& job, AttemptOutcome outcome, const FailItem& how, Timestamp now) {
  JobState& state = job.state;
  std::vector<Attempt>& history = state.history;
  history.push_back(
      {.number = state.attempts,
       .generation = state.generation,
       .started_at = state.lease_started_at,
       .ended_at = outcome == AttemptOutcome::lease_expired ? state.lease_deadline : now,
       .outcome = outcome,
       .worker = state.worker,
       .error = how.error,
       .error_type = how.error_type});
  if (history.size() > 10) history.erase(history.begin() + 1);  // the first and the last nine
  state.worker.clear();
  state.lease_nonce = 0;
  state.lease_started_at = {};
  state.lease_deadline = {};
}

Result<DroppedJob> Model::drop(const QueueName& name, Seq seq, const std::string& asked_by,
                               Timestamp now) {
  Queue* queue = find(name);
  if (queue == nullptr) return error(Errc::queue_not_found);
  const auto found = queue->jobs.find(seq);
  if (found == queue->jobs.end()) return error(Errc::job_not_found);
  const JobStatus was = effective_status(&found->second.state, now);
  queue->jobs.erase(found);
  if (was != JobStatus::completed) ++queue->totals.dropped;
  note(EventType::dropped);
  write_audit({.action = AuditAction::drop,
               .queue = name,
               .asked_by = asked_by,
               .ids = {encode_job_id(seq)},
               .done = 1},
              now);
  serve_waiting(*queue, now);
  return DroppedJob{{queue->record.number, seq}, was};
}

}  // namespace reprise::sim
