// Ack, fail, release, extend: how a lease ends. All are fenced by the lease's secret.
#include <algorithm>
#include <utility>

#include "base/duration.h"
#include "base/planted_bug.h"
#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {
namespace {

std::string short_id(Seq seq) { return encode_job_id(seq).substr(0, kShownIdChars); }

template <class Item, class One>
auto for_each_item(std::span<const Item> items, const One& one) {
  std::vector<decltype(one(items.front()))> results;
  results.reserve(items.size());
  for (const Item& item : items) results.push_back(one(item));
  return results;
}

}  // namespace

Result<Engine::Held> Engine::held_lease(const Result<LeaseToken>& token, Timestamp now) {
  if (!token) return token.error();
  const Lease* lease = leases_.find(token->job);
  // A lease past its deadline is over even if the tick that ends it has not come yet.
  const bool stale =
      lease == nullptr || (lease->nonce != token->nonce && !planted(PlantedBug::stale_token));
  if (stale || lease->deadline <= now) {
    return lease_lost(*token, now);
  }
  return Held{by_number_.at(token->job.queue), *lease};
}

// Says what happened as far as it can be known: this is read by whoever wonders why work was lost.
Error Engine::lease_lost(const LeaseToken& token, Timestamp now) {
  const std::string job = "lease of job " + short_id(token.job.seq);
  const auto expired = [&](Timestamp at) {
    return Error{Errc::lease_lost, job + " expired " + humanize_duration(now - at) + " ago"};
  };
  if (const Lease* lease = leases_.find(token.job)) {
    if (lease->nonce == token.nonce) return expired(lease->deadline);
    return {Errc::lease_lost, job + " is over; another lease has been granted since"};
  }
  if (undecided_.contains(token.job)) {
    return {Errc::lease_lost, job + " is over; it was failed, and its on_failure hook is asked"};
  }
  if (const auto state = ledger_.state(token.job); state && *state && !(*state)->history.empty()) {
    const Attempt last = (*state)->history.back();
    if (last.outcome == AttemptOutcome::lease_expired) return expired(last.ended_at);
    return {Errc::lease_lost, job + " is over; it was " + std::string(outcome_name(last.outcome))};
  }
  return {Errc::lease_lost, job + " is over; the job was finished, dropped or is dead"};
}

ItemResults<Acked> Engine::ack(std::span<const AckItem> items, Timestamp now) {
  return for_each_item(items, [&](const AckItem& item) { return ack_one(item, now); });
}

Result<Acked> Engine::ack_one(const AckItem& item, Timestamp now) {
  const auto held = held_lease(item.token, now);
  if (!held) return held.error();
  QueueState& queue = *held->queue;
  const Lease& lease = held->lease;
  end_lease(queue, lease, LeaseEnd::succeeded, now);
  if (queue.record.config.keep_completed) {
    keep_completed(queue, lease, now);
  } else if (!planted(PlantedBug::resurrected, lease.job.seq)) {
    ledger_.erase_job(lease.job);
  }
  forget_job(queue, lease.job, lease.expires_at, lease.byte_size);
  if (!planted(PlantedBug::wrong_stats, lease.job.seq)) ++queue.totals.completed;
  queue.completions.add(now, 1);
  touch(queue);
  emit(EventType::completed, queue, lease.job.seq, now);
  serve_waiting(queue, now);
  return Acked{lease.job};
}

// Finished is finished: a job that cannot be read any more is not kept.
void Engine::keep_completed(QueueState& queue, const Lease& lease, Timestamp now) {
  const auto record = ledger_.record(lease.job);
  auto state = end_attempt(lease, {AttemptOutcome::completed, "", ""}, now);
  if (!record || *record == nullptr || !state) return ledger_.erase_job(lease.job);
  (*state)->status = JobStatus::completed;
  (*state)->ended_at = now;
  ++queue.totals.completed_now;
  ledger_.complete(lease.job, {*record, *std::move(state)});
}

std::optional<ItemResults<Failed>> Engine::fail(RequestId id, std::span<const FailItem> items,
                                                Timestamp now) {
  WaitingFail fail;
  fail.results.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const FailItem& item = items[i];
    const auto held = held_lease(item.token, now);
    if (!held) {
      fail.results.emplace_back(held.error());
      continue;
    }
    auto result = end_in_failure(
        *held->queue,
        {.lease = held->lease,
         .failure = {.outcome = item.outcome, .final = item.final, .delay = item.delay},
         .end = {item.outcome, item.error, item.error_type},
         .failed_at = now,
         .request = id,
         .index = i},
        now);
    if (!result) ++fail.undecided;
    fail.results.push_back(result ? std::move(*result) : Result<Failed>(Failed{}));
  }
  if (fail.undecided == 0) return std::move(fail.results);
  waiting_fails_.emplace(id, std::move(fail));
  return std::nullopt;
}

std::optional<Result<Failed>> Engine::end_in_failure(QueueState& queue, Undecided failed,
                                                     Timestamp now) {
  const JobKey job = failed.lease.job;
  std::uint32_t failures = 1;
  {
    // Not kept: the ledger would have to copy it when it is taken.
    const auto state = ledger_.state(job);
    if (!state) return Result<Failed>(state.error());
    if (*state) failures += (*state)->failures;
  }
  if (queue.guard && queue.guard->spares()) failed.failure.spared = Duration::zero();
  if (!hook_has_a_say(queue.record.config, failed.failure, failures)) {
    return settle_failure(queue, failed, nullptr, now);
  }
  HookLine& line = *queue.hook(HookKind::on_failure);
  if (!line.breaker.admit(now)) {
    const HookOutcome closed = HookFailure{HookFault::breaker_open, ""};
    note_outcome(queue, HookKind::on_failure, closed, now);
    return settle_failure(queue, failed, &closed, now);
  }
  leases_.end(job);
  undecided_.emplace(job, std::move(failed));
  line.waiting.emplace_back(job);
  lines_to_ask_.emplace(queue.record.number, HookKind::on_failure);
  return std::nullopt;
}

Result<Failed> Engine::settle_failure(QueueState& queue, const Undecided& failed,
                                      const HookOutcome* hook, Timestamp now) {
  Failure failure = failed.failure;
  const bool counts = !failure.spared || failure.final;
  const Lease& lease = failed.lease;
  auto ended = end_attempt(lease, failed.end, failed.failed_at);
  if (!ended) return ended.error();
  const StateDraft state = *std::move(ended);
  if (counts) state->failures += 1;
  state->last_error = failed.end.error;
  state->last_error_type = failed.end.error_type;
  end_lease(queue, lease, LeaseEnd::failed, now);
  if (!counts) {
    queue.guard->spared();
    if (lease.trial != 0) failure.spared = queue.guard->canary_delay();
  }
  ++queue.totals.failed;
  if (failed.end.outcome == AttemptOutcome::lease_expired) ++queue.totals.lease_expired;
  queue.failures.add(now, 1);
  touch(queue);

  Decision decision =
      decide_failure(queue.record.config, failure, state->failures, hook, random_, now);
  if (decision.retry && lease.expires_at <= now) {
    decision = {.retry = false, .reason = DeathReason::expired};
  }
  emit(EventType::failed, queue, lease.job.seq, now,
       {.attempts = state->attempts,
        .retry_at = decision.retry ? decision.retry_at : kNever,
        .error = std::make_shared<const std::string>(state->last_error)});
  if (!decision.retry) return give_up(queue, lease, state, std::move(decision), now);
  state->status = state->lane() == Lane::retry ? JobStatus::failed
                  : decision.retry_at > now    ? JobStatus::scheduled
                                               : JobStatus::pending;
  state->due = decision.retry_at;
  if (planted(PlantedBug::lost, lease.job.seq)) {
    forget_job(queue, lease.job, lease.expires_at, lease.byte_size);
    ledger_.erase_job(lease.job);
    return Failed{.job = lease.job, .status = JobStatus::failed, .retry_at = decision.retry_at};
  }
  place(queue, lease.job, lease.priority, lease.strand, *state, now);
  ledger_.put_state(lease.job, state);
  rearm(queue);
  serve_waiting(queue, now);
  return Failed{.job = lease.job, .status = JobStatus::failed, .retry_at = decision.retry_at};
}

Result<Failed> Engine::give_up(QueueState& queue, const Lease& lease, StateDraft state,
                               Decision decision, Timestamp now) {
  forget_job(queue, lease.job, lease.expires_at, lease.byte_size);
  RecordPtr record = record_for_burial(lease.job, decision.reason);
  if (decision.reason == DeathReason::corrupt) {
    decision.decided_by = DecidedBy::policy;
    decision.note.clear();
  }
  if (decision.decided_by == DecidedBy::hook) {
    state->death_note = decision.note;
    state->hook_version = queue.hook(HookKind::on_failure)->version;
  }
  bury(queue, lease.job, std::move(record), std::move(state), decision.reason, decision.decided_by,
       now);
  serve_waiting(queue, now);
  return Failed{.job = lease.job,
                .status = JobStatus::dead,
                .reason = decision.reason,
                .death_note = std::move(decision.note)};
}

bool Engine::is_leased(JobKey job) const {
  return leases_.find(job) != nullptr || undecided_.contains(job);
}

std::optional<Lease> Engine::take_lease(QueueState& queue, JobKey job, Timestamp now) {
  std::optional<Lease> lease;
  if (const Lease* found = leases_.find(job)) {
    lease = *found;
  } else if (const auto undecided = undecided_.find(job); undecided != undecided_.end()) {
    const Undecided failed = std::move(undecided->second);
    undecided_.erase(undecided);
    answer_fail(failed, Error{Errc::lease_lost, "lease of job " + short_id(job.seq) +
                                                    " is over; the job was dropped"});
    lease = failed.lease;
  }
  if (lease) end_lease(queue, *lease, LeaseEnd::neither, now);
  return lease;
}

ItemResults<Released> Engine::release(std::span<const ReleaseItem> items, Timestamp now) {
  return for_each_item(items, [&](const ReleaseItem& item) { return release_one(item, now); });
}

std::size_t Engine::release_own(Timestamp now) {
  std::size_t released = 0;
  for (const Lease& lease : leases_.endless()) {
    const ReleaseItem item{.token = LeaseToken{lease.job, lease.nonce}};
    if (release_one(item, now)) ++released;
  }
  return released;
}

Result<Released> Engine::release_one(const ReleaseItem& item, Timestamp now) {
  const auto held = held_lease(item.token, now);
  if (!held) return held.error();
  QueueState& queue = *held->queue;
  const Lease& lease = held->lease;
  auto ended = end_attempt(lease, {item.outcome, "", ""}, now);
  if (!ended) return ended.error();
  const Priority priority = set_priority(lease, item.priority);
  const StateDraft state = *std::move(ended);
  end_lease(queue, lease, LeaseEnd::neither, now);
  if (item.undelivered) throttles_.refund(*lease.strand, now);
  ++queue.totals.released;
  touch(queue);
  emit(EventType::released, queue, lease.job.seq, now, {.attempts = state->attempts});
  if (lease.expires_at <= now) {
    forget_job(queue, lease.job, lease.expires_at, lease.byte_size);
    DeathReason reason = DeathReason::expired;
    RecordPtr record = record_for_burial(lease.job, reason);
    bury(queue, lease.job, std::move(record), state, reason, DecidedBy::policy, now);
    serve_waiting(queue, now);
    return Released{lease.job};
  }
  state->status = JobStatus::pending;
  if (item.delay > Duration::zero()) {
    state->status = state->lane() == Lane::fresh ? JobStatus::scheduled : JobStatus::failed;
    state->due = add_saturating(now, item.delay);
  }
  place(queue, lease.job, priority, lease.strand, *state, now);
  ledger_.put_state(lease.job, state);
  rearm(queue);
  serve_waiting(queue, now);
  return Released{lease.job};
}

// The priority that the job has now. One that cannot be read keeps what it had.
Priority Engine::set_priority(const Lease& lease, std::optional<Priority> priority) {
  if (!priority || *priority == lease.priority) return lease.priority;
  const auto before = ledger_.record(lease.job);
  if (!before || *before == nullptr) return lease.priority;
  auto record = std::make_shared<JobRecord>(**before);
  record->priority = *priority;
  constexpr std::uint64_t kJobsAhead = 0;  // it is among the next again
  ledger_.put_job(lease.job, std::move(record), kJobsAhead);
  return *priority;
}

ItemResults<Buried> Engine::bury_leased(std::span<const BuryItem> items, Timestamp now) {
  return for_each_item(items, [&](const BuryItem& item) -> Result<Buried> {
    const auto held = held_lease(item.token, now);
    if (!held) return held.error();
    QueueState& queue = *held->queue;
    const Lease& lease = held->lease;
    auto state = end_attempt(lease, {AttemptOutcome::buried, "", ""}, now);
    if (!state) return state.error();
    set_priority(lease, item.priority);
    end_lease(queue, lease, LeaseEnd::neither, now);
    forget_job(queue, lease.job, lease.expires_at, lease.byte_size);
    DeathReason reason = DeathReason::buried;
    RecordPtr record = record_for_burial(lease.job, reason);
    const DecidedBy by = reason == DeathReason::buried ? DecidedBy::client : DecidedBy::policy;
    bury(queue, lease.job, std::move(record), *std::move(state), reason, by, now);
    serve_waiting(queue, now);
    return Buried{lease.job};
  });
}

ItemResults<Extended> Engine::extend(std::span<const ExtendItem> items, Timestamp now) {
  return for_each_item(items, [&](const ExtendItem& item) -> Result<Extended> {
    const auto held = held_lease(item.token, now);
    if (!held) return held.error();
    const JobKey job = held->lease.job;
    const Duration lease = item.lease ? *item.lease : usual_lease(*held->queue, job);
    auto state = ledger_.take_state(job);
    if (!state) return state.error();
    if (*state == nullptr) return Error{Errc::corrupt, "the job's state is missing"};
    const Timestamp deadline = (*state)->lease_deadline = add_saturating(now, lease);
    if (!planted(PlantedBug::double_lease)) leases_.extend(job, deadline);
    ledger_.put_state(job, *std::move(state));
    return Extended{job, deadline};
  });
}

Duration Engine::lease_of(const QueueState& queue, const JobRecord& record) {
  return record.lease.value_or(queue.record.config.lease);
}

Duration Engine::usual_lease(const QueueState& queue, JobKey job) {
  const auto record = ledger_.record(job);
  return record && *record ? lease_of(queue, **record) : queue.record.config.lease;
}

// The state after the attempt, with the attempt in its history, taken from the ledger: the caller
// puts it back. One that cannot be read leaves the lease as it was.
Result<StateDraft> Engine::end_attempt(const Lease& lease, const AttemptEnd& end,
                                       Timestamp ended_at) {
  auto taken = ledger_.take_state(lease.job);
  if (!taken) return taken.error();
  StateDraft state = *std::move(taken);
  if (!state) {
    state = std::make_shared<JobState>(JobState{.attempts = 1, .lease_started_at = ended_at});
  }
  // Whenever that was noticed: after a restart it may be hours later.
  const bool expired = end.outcome == AttemptOutcome::lease_expired;
  state->history.add({.number = state->attempts,
                      .generation = state->generation,
                      .started_at = state->lease_started_at,
                      .ended_at = expired ? lease.deadline : ended_at,
                      .outcome = end.outcome,
                      .worker = state->worker,
                      .error = end.error,
                      .error_type = end.error_type});
  state->worker.clear();
  state->lease_nonce = 0;
  state->lease_started_at = {};
  state->lease_deadline = {};
  return state;
}

void Engine::end_lease(QueueState& queue, const Lease& held, LeaseEnd end, Timestamp now) {
  const std::optional<Lease> ended = leases_.end(held.job);
  const Lease& lease = ended ? *ended : held;  // that one may have been the table's own
  --queue.active;
  if (lease.lane == Lane::retry) --queue.retry_in_flight;
  queue.jobs.lease_ended(*lease.strand, queue.record.config.concurrency_per_key);
  tell_guard(queue, lease, end, now);
}

void Engine::grant_lease(QueueState& queue, const Lease& lease) {
  leases_.grant(lease);
  queue.jobs.lease_began(*lease.strand);
  ++queue.active;
  if (lease.lane == Lane::retry) ++queue.retry_in_flight;
}

void Engine::place(QueueState& queue, JobKey key, Priority priority, const StrandRef& strand,
                   const JobState& state, Timestamp now) {
  const bool due = effective_status(&state, now) == JobStatus::pending;
  const TimedSeq timed{state.due, key.seq};
  if (state.lane() == Lane::fresh) {
    if (due) return queue.jobs.insert_fresh(*strand, priority, key.seq);
    queue.scheduled.emplace(timed, QueueState::Delayed{priority, strand});
  } else if (due) {
    queue.jobs.insert_retry(strand, timed, state.failures);
  } else {
    queue.cooling.insert(timed, state.failures, strand);
  }
}

}  // namespace reprise
