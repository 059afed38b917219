// Ack, fail, release, extend: how a lease ends. All are fenced by the lease's secret.
#include <algorithm>
#include <utility>

#include "base/duration.h"
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
  if (lease == nullptr || lease->nonce != token->nonce || lease->deadline <= now) {
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
  if (const auto state = ledger_.state(token.job); state && *state && !(*state)->history.empty()) {
    const Attempt& last = (*state)->history.back();
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
  end_lease(queue, lease);
  if (queue.record.config.keep_completed) {
    keep_completed(queue, lease, now);
  } else {
    ledger_.erase_job(lease.job);
  }
  forget_job(queue, lease.job, lease.expires_at, lease.byte_size);
  ++queue.totals.completed;
  queue.completions.add(now, 1);
  touch(queue);
  emit(EventType::completed, queue, lease.job.seq, now);
  if (lease.lane == Lane::retry) serve_waiting(queue, now);
  return Acked{lease.job};
}

// Finished is finished: a job that cannot be read any more is not kept.
void Engine::keep_completed(QueueState& queue, const Lease& lease, Timestamp now) {
  const auto record = ledger_.record(lease.job);
  auto state = end_attempt(lease, {AttemptOutcome::completed, "", ""}, now);
  if (!record || *record == nullptr || !state) return ledger_.erase_job(lease.job);
  state->status = JobStatus::completed;
  state->ended_at = now;
  ++queue.totals.completed_now;
  ledger_.complete(lease.job, {*record, std::make_shared<const JobState>(*std::move(state))});
}

ItemResults<Failed> Engine::fail(std::span<const FailItem> items, Timestamp now) {
  return for_each_item(items, [&](const FailItem& item) -> Result<Failed> {
    const auto held = held_lease(item.token, now);
    if (!held) return held.error();
    const Failure failure{.outcome = item.outcome, .final = item.final, .delay = item.delay};
    return end_in_failure(*held->queue, held->lease, failure,
                          {item.outcome, item.error, item.error_type}, now);
  });
}

Result<Failed> Engine::end_in_failure(QueueState& queue, const Lease& lease, const Failure& failure,
                                      const AttemptEnd& end, Timestamp now) {
  auto ended = end_attempt(lease, end, now);
  if (!ended) return ended.error();
  JobState state = std::move(*ended);
  state.failures += 1;
  state.last_error = end.error;
  state.last_error_type = end.error_type;
  end_lease(queue, lease);
  ++queue.totals.failed;
  queue.failures.add(now, 1);
  touch(queue);

  Decision decision =
      decide_failure(queue.record.config.retry, failure, state.failures, random_, now);
  if (decision.retry && lease.expires_at <= now) {
    decision = {.retry = false, .reason = DeathReason::expired};
  }
  emit(EventType::failed, queue, lease.job.seq, now,
       {.attempts = state.attempts,
        .retry_at = decision.retry ? decision.retry_at : kNever,
        .error = std::make_shared<const std::string>(state.last_error)});
  if (!decision.retry) {
    forget_job(queue, lease.job, lease.expires_at, lease.byte_size);
    RecordPtr record = record_for_burial(lease.job, decision.reason);
    if (decision.reason == DeathReason::corrupt) decision.decided_by = DecidedBy::policy;
    bury(queue, lease.job, std::move(record), std::move(state), decision.reason,
         decision.decided_by, now);
    if (lease.lane == Lane::retry) serve_waiting(queue, now);
    return Failed{.job = lease.job, .status = JobStatus::dead, .reason = decision.reason};
  }
  state.status = JobStatus::failed;
  state.due = decision.retry_at;
  place(queue, lease.job, lease.priority, state, now);
  ledger_.put_state(lease.job, std::make_shared<const JobState>(std::move(state)));
  rearm(queue);
  serve_waiting(queue, now);
  return Failed{.job = lease.job, .status = JobStatus::failed, .retry_at = decision.retry_at};
}

ItemResults<Released> Engine::release(std::span<const ReleaseItem> items, Timestamp now) {
  return for_each_item(items, [&](const ReleaseItem& item) { return release_one(item, now); });
}

Result<Released> Engine::release_one(const ReleaseItem& item, Timestamp now) {
  const auto held = held_lease(item.token, now);
  if (!held) return held.error();
  QueueState& queue = *held->queue;
  const Lease& lease = held->lease;
  auto ended = end_attempt(lease, {AttemptOutcome::released, "", ""}, now);
  if (!ended) return ended.error();
  JobState state = std::move(*ended);
  end_lease(queue, lease);
  ++queue.totals.released;
  touch(queue);
  emit(EventType::released, queue, lease.job.seq, now, {.attempts = state.attempts});
  if (lease.expires_at <= now) {
    forget_job(queue, lease.job, lease.expires_at, lease.byte_size);
    DeathReason reason = DeathReason::expired;
    RecordPtr record = record_for_burial(lease.job, reason);
    bury(queue, lease.job, std::move(record), std::move(state), reason, DecidedBy::policy, now);
    if (lease.lane == Lane::retry) serve_waiting(queue, now);
    return Released{lease.job};
  }
  state.status = JobStatus::pending;
  if (item.delay > Duration::zero()) {
    state.status = state.lane() == Lane::fresh ? JobStatus::scheduled : JobStatus::failed;
    state.due = add_saturating(now, item.delay);
  }
  place(queue, lease.job, lease.priority, state, now);
  ledger_.put_state(lease.job, std::make_shared<const JobState>(std::move(state)));
  rearm(queue);
  serve_waiting(queue, now);
  return Released{lease.job};
}

ItemResults<Extended> Engine::extend(std::span<const ExtendItem> items, Timestamp now) {
  return for_each_item(items, [&](const ExtendItem& item) -> Result<Extended> {
    const auto held = held_lease(item.token, now);
    if (!held) return held.error();
    const JobKey job = held->lease.job;
    const auto before = ledger_.state(job);
    if (!before) return before.error();
    if (*before == nullptr) return Error{Errc::corrupt, "the job's state is missing"};
    auto state = std::make_shared<JobState>(**before);
    state->lease_deadline =
        add_saturating(now, item.lease.value_or(held->queue->record.config.lease));
    leases_.extend(job, state->lease_deadline);
    const Extended extended{job, state->lease_deadline};
    ledger_.put_state(job, std::move(state));
    return extended;
  });
}

// The state after the attempt, with the attempt in its history; nothing is changed yet, so that a
// state which cannot be read leaves the lease as it was.
Result<JobState> Engine::end_attempt(const Lease& lease, const AttemptEnd& end, Timestamp now) {
  const auto stored = ledger_.state(lease.job);
  if (!stored) return stored.error();
  JobState state = *stored ? **stored : JobState{.attempts = 1, .lease_started_at = now};
  // Whenever that was noticed: after a restart it may be hours later.
  const bool expired = end.outcome == AttemptOutcome::lease_expired;
  append_to_history(state.history, {.number = state.attempts,
                                    .generation = state.generation,
                                    .started_at = state.lease_started_at,
                                    .ended_at = expired ? lease.deadline : now,
                                    .outcome = end.outcome,
                                    .worker = std::move(state.worker),
                                    .error = end.error,
                                    .error_type = end.error_type});
  state.worker.clear();
  state.lease_nonce = 0;
  state.lease_started_at = {};
  state.lease_deadline = {};
  return state;
}

void Engine::end_lease(QueueState& queue, const Lease& lease) {
  const auto ended = leases_.end(lease.job);
  if (!ended) return;
  --queue.active;
  if (ended->lane == Lane::retry) --queue.retry_in_flight;
}

void Engine::grant_lease(QueueState& queue, const Lease& lease) {
  leases_.grant(lease);
  ++queue.active;
  if (lease.lane == Lane::retry) ++queue.retry_in_flight;
}

void Engine::place(QueueState& queue, JobKey key, Priority priority, const JobState& state,
                   Timestamp now) {
  const bool due = effective_status(&state, now) == JobStatus::pending;
  const TimedSeq timed{state.due, key.seq};
  if (state.lane() == Lane::retry) {
    (due ? queue.retry : queue.cooling).insert(timed, state.failures);
  } else if (due) {
    queue.fresh.insert(priority, key.seq);
  } else {
    queue.scheduled.emplace(timed, priority);
  }
}

}  // namespace reprise
