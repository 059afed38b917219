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

std::optional<Result<PushReply>> Model::push(RequestId id, const PushCommand& command,
                                             Timestamp now) {
  Queue* queue = find(command.queue);
  if (queue == nullptr) {
    if (!command.create) return error(Errc::queue_not_found);
    queue = &create(command.queue, {}, now);
  }
  WaitingPush push{.id = id, .jobs = command.jobs, .rejected = {}};
  push.rejected.resize(push.jobs.size());
  if (!queue->record.config.hook(HookKind::on_enqueue).empty()) {
    return ask_before_push(*queue, std::move(push), now);
  }
  return accept(*queue, push, now);
}

PushReply Model::accept(Queue& queue, const WaitingPush& push, Timestamp now) {
  PushReply reply;
  for (std::size_t i = 0; i < push.jobs.size(); ++i) {
    const Result<NewJob>& job = push.jobs[i];
    reply.results.push_back(job ? push_one(queue, *job, push.rejected[i], now)
                                : error(job.error().code));
  }
  serve_waiting(queue, now);
  return reply;
}

Result<PushedJob> Model::push_one(Queue& queue, const NewJob& job,
                                  const std::optional<std::string>& rejected, Timestamp now) {
  const auto known = queue.keys.find(job.key);
  if (known != queue.keys.end() && known->second.expires_at > now) {
    ++queue.totals.duplicates;
    return PushedJob{known->second.seq, true};
  }
  if (rejected) return error(Errc::hook_rejected);
  if (disk_low_) return error(Errc::disk_full);
  const QueueConfig& config = queue.record.config;
  const std::optional<Duration> ttl = job.ttl ? job.ttl : config.ttl;
  const JobRecord record{.pushed_at = now,
                         .expires_at = ttl ? now + *ttl : kNever,
                         .priority = job.priority,
                         .payload_kind = job.payload_kind,
                         .key = job.key,
                         .headers = job.headers,
                         .scheduling = job.scheduling,
                         .payload = job.payload};
  REPRISE_TRY(check_room(queue, record));

  const Seq seq = next_seq_++;
  if (!job.key.empty()) queue.keys[job.key] = {seq, now + config.key_window};
  JobState state;
  if (job.delay > Duration::zero()) {
    state.status = JobStatus::scheduled;
    state.due = now + job.delay;
  }
  note_keys(queue);
  forget_idle_keys(queue);
  const auto weight = queue.weights.find(job.scheduling.fairness_key);
  if (weight != queue.weights.end() && weight->second != job.scheduling.weight) {
    for (FairStretch& stretch : queue.stretches) stretch.see({});
  }
  queue.weights[job.scheduling.fairness_key] = job.scheduling.weight;
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
  ClaimReply reply = grant(*queue, id, command, now);
  if (!reply.jobs.empty() || command.wait == Duration::zero()) return reply;
  waiting_.push_back({id, queue->record.number, now + command.wait, command});
  return std::nullopt;
}

void Model::cancel_claim(ClaimId id) {
  if (std::erase_if(waiting_, [&](const WaitingClaim& claim) { return claim.id == id; }) > 0) {
    answers_.emplace(id, ClaimReply{});
  }
}

void Model::learn(const ClaimReply& reply) {
  for (const ClaimedJob& claimed : reply.jobs) {
    Queue* queue = find(claimed.token.job.queue);
    queue->jobs.at(claimed.token.job.seq).state.lease_nonce = claimed.token.nonce;
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
      state.lease_deadline <= now || queue->undecided.contains(found->first)) {
    return error(Errc::lease_lost);
  }
  return Held{queue, found->first, &found->second};
}

Result<Acked> Model::ack(const AckItem& item, Timestamp now) {
  const auto lease = held(item.token, now);
  if (!lease) return lease.error();
  Queue& queue = *lease->queue;
  end_lease(queue, lease->seq, LeaseEnd::succeeded, now);
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

std::optional<ItemResults<Failed>> Model::fail(RequestId id, std::span<const FailItem> items,
                                               Timestamp now) {
  ItemResults<Failed> results;
  std::size_t undecided = 0;
  for (const FailItem& item : items) {
    const auto lease = held(item.token, now);
    if (!lease) {
      results.emplace_back(lease.error());
      continue;
    }
    const auto failed = end_in_failure(
        *lease, {.how = item, .failed_at = now, .request = id, .index = results.size()}, now);
    if (!failed) ++undecided;
    results.emplace_back(failed.value_or(Failed{}));
  }
  if (undecided == 0) return results;
  waiting_fails_[id] = {std::move(results), undecided};
  return std::nullopt;
}

Result<Released> Model::release(const ReleaseItem& item, Timestamp now) {
  const auto lease = held(item.token, now);
  if (!lease) return lease.error();
  Queue& queue = *lease->queue;
  Job& job = *lease->job;
  end_attempt(job, AttemptOutcome::released, {}, now);
  end_lease(queue, lease->seq, LeaseEnd::neither, now);
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
  std::vector<Attempt> history(state.history.begin(), state.history.end());
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
  state.history = AttemptHistory(history);
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
  if (const auto undecided = queue->undecided.find(seq); undecided != queue->undecided.end()) {
    answer_fail(undecided->second, error(Errc::lease_lost));
    queue->undecided.erase(undecided);
  }
  if (is_active(found->second)) end_lease(*queue, seq, LeaseEnd::neither, now);
  queue->jobs.erase(found);
  note_keys(*queue);
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
