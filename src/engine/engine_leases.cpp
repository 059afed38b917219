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
  return for_each_item(items, [&](const AckItem& item) -> Result<Acked> {
    const auto held = held_lease(item.token, now);
    if (!held) return held.error();
    QueueState& queue = *held->queue;
    const Lease& lease = held->lease;
    end_lease(queue, lease);
    ledger_.erase_job(lease.job);
    forget_job(queue, lease.job, lease.expires_at, lease.byte_size);
    ++queue.totals.completed;
    queue.completions.add(now, 1);
    touch(queue);
    emit(EventType::completed, queue, lease.job.seq, now);
    return Acked{lease.job};
  });
}

ItemResults<Failed> Engine::fail(std::span<const FailItem> items, Timestamp now) {
  return for_each_item(items, [&](const FailItem& item) -> Result<Failed> {
    const auto held = held_lease(item.token, now);
    if (!held) return held.error();
    const Failure failure{.final = item.final, .delay = item.delay};
    return end_in_failure(*held->queue, held->lease, failure, item.error, now);
  });
}

Result<Failed> Engine::end_in_failure(QueueState& queue, const Lease& lease, const Failure& failure,
                                      std::string error, Timestamp now) {
  auto ended = end_attempt(lease, failure.outcome, error, now);
  if (!ended) return ended.error();
  JobState state = std::move(*ended);
  state.failures += 1;
  state.last_error = std::move(error);
  end_lease(queue, lease);
  ++queue.totals.failed;
  queue.failures.add(now, 1);
  touch(queue);

  Decision decision = decide_failure(queue.record.config.retry, failure, state.failures, now);
  if (decision.retry && lease.expires_at <= now) {
    decision = {.retry = false, .reason = DeathReason::expired};
  }
  emit(EventType::failed, queue, lease.job.seq, now,
       {.attempts = state.attempts,
        .retry_at = decision.retry ? decision.retry_at : kNever,
        .error = std::make_shared<const std::string>(state.last_error)});
  if (!decision.retry) {
    forget_job(queue, lease.job, lease.expires_at, lease.byte_size);
    bury(queue, lease.job, record_for_burial(lease.job), std::move(state), decision.reason,
         decision.decided_by, now);
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
  auto ended = end_attempt(lease, AttemptOutcome::released, {}, now);
  if (!ended) return ended.error();
  JobState state = std::move(*ended);
  end_lease(queue, lease);
  ++queue.totals.released;
  touch(queue);
  emit(EventType::released, queue, lease.job.seq, now, {.attempts = state.attempts});
  if (lease.expires_at <= now) {
    forget_job(queue, lease.job, lease.expires_at, lease.byte_size);
    bury(queue, lease.job, record_for_burial(lease.job), std::move(state), DeathReason::expired,
         DecidedBy::policy, now);
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
Result<JobState> Engine::end_attempt(const Lease& lease, AttemptOutcome outcome,
                                     const std::string& error, Timestamp now) {
  const auto stored = ledger_.state(lease.job);
  if (!stored) return stored.error();
  JobState state = *stored ? **stored : JobState{.attempts = 1, .lease_started_at = now};
  // Whenever that was noticed: after a restart it may be hours later.
  const bool expired = outcome == AttemptOutcome::lease_expired;
  append_to_history(state.history, {.number = state.attempts,
                                    .started_at = state.lease_started_at,
                                    .ended_at = expired ? lease.deadline : now,
                                    .outcome = outcome,
                                    .worker = std::move(state.worker),
                                    .error = error});
  state.worker.clear();
  state.lease_nonce = 0;
  state.lease_started_at = {};
  state.lease_deadline = {};
  return state;
}

void Engine::end_lease(QueueState& queue, const Lease& lease) {
  const JobKey job = lease.job;  // `lease` may be the one that ends
  if (leases_.end(job)) --queue.active;
}

void Engine::place(QueueState& queue, JobKey key, Priority priority, const JobState& state,
                   Timestamp now) {
  const bool due = effective_status(&state, now) == JobStatus::pending;
  const TimedSeq timed{state.due, key.seq};
  if (state.lane() == Lane::retry) {
    (due ? queue.retry : queue.cooling).insert(timed);
  } else if (due) {
    queue.fresh.insert(priority, key.seq);
  } else {
    queue.scheduled.emplace(timed, priority);
  }
}

void Engine::bury(QueueState& queue, JobKey key, RecordPtr record, JobState state,
                  DeathReason reason, DecidedBy decided_by, Timestamp now) {
  state.status = JobStatus::dead;
  state.death_reason = reason;
  state.decided_by = decided_by;
  state.died_at = now;
  ++queue.totals.died;
  ++queue.totals.dead_now;
  if (reason == DeathReason::expired) ++queue.totals.expired;
  if (reason == DeathReason::corrupt) ++queue.totals.corrupt;
  touch(queue);
  emit(EventType::dead, queue, key.seq, now,
       {.attempts = state.attempts,
        .reason = reason,
        .error = std::make_shared<const std::string>(state.last_error)});
  ledger_.bury(key, {std::move(record), std::make_shared<const JobState>(std::move(state))});
}

// The record, or for one that cannot be decoded its bytes as they are, so that nothing is lost.
RecordPtr Engine::record_for_burial(JobKey key) {
  if (const auto record = ledger_.record(key); record && *record) return *record;
  auto stand_in = std::make_shared<JobRecord>();
  stand_in->payload_kind = PayloadKind::bytes;
  stand_in->payload = ledger_.raw_record(key);
  return stand_in;
}

}  // namespace reprise
