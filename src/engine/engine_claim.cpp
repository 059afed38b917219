// Claim: jobs go out under leases, at once or when there are some.
#include <algorithm>
#include <utility>

#include "base/planted_bug.h"
#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {
namespace {

// What one reply may hold, so that claiming many large jobs bounds memory and the reply's size.
constexpr std::uint64_t kReplyPayloadBytesMax = 16ULL << 20;

// Of a job that is to be leased. What a restart took from the index is checked here, against the
// job itself.
std::optional<Error> why_unfit(const Result<RecordPtr>& record, const Result<StatePtr>& state) {
  if (!record) return record.error();
  if (!state) return state.error();
  if (*state && (*state)->status == JobStatus::active) {
    return Error{Errc::corrupt, "the job is leased and waiting at once"};
  }
  if (*record == nullptr) return Error{Errc::corrupt, "the job's record is missing"};
  return std::nullopt;
}

}  // namespace

std::optional<Result<ClaimReply>> Engine::claim(ClaimId id, ClaimCommand command, Timestamp now) {
  const std::vector<QueueState*> queues = queues_of(command);
  if (queues.empty()) return queue_not_found(command.queue);
  command.max = std::max(command.max, 1U);  // a claim for nothing would wait for ever
  wake_throttled_of(queues, now);
  StepBudget budget;
  ClaimReply reply;
  if (queues.size() == 1) {
    grant(*queues.front(), command, command.max, budget, reply, now);
  } else {
    grant_most_urgent(queues, command, budget, reply, now);
  }
  if (budget.looked_enough()) {
    for (QueueState* queue : queues) look_again_later(*queue);
  }
  if (!reply.jobs.empty() || command.wait <= Duration::zero()) return reply;
  if (waiting_.size() >= limits_.max_waiting_claims) {
    return Error{Errc::too_many_waiting, "too many claims are waiting (max_waiting_claims is " +
                                             std::to_string(limits_.max_waiting_claims) + ")"};
  }
  const Timestamp deadline = add_saturating(now, command.wait);
  std::vector<QueueNumber> also;
  for (std::size_t i = 1; i < queues.size(); ++i) also.push_back(queues[i]->record.number);
  waiting_.add({id, queues.front()->record.number, deadline, std::move(command), std::move(also)});
  return std::nullopt;
}

std::vector<QueueState*> Engine::queues_of(const ClaimCommand& command) const {
  std::vector<QueueState*> queues;
  const auto add = [&](const QueueName& name) {
    QueueState* queue = lookup(name);
    if (queue != nullptr && std::ranges::find(queues, queue) == queues.end()) {
      queues.push_back(queue);
    }
  };
  add(command.queue);
  for (const QueueName& name : command.also) add(name);
  return queues;
}

void Engine::grant_most_urgent(std::span<QueueState* const> queues, const ClaimCommand& command,
                               StepBudget& budget, ClaimReply& reply, Timestamp now) {
  while (reply.jobs.size() < command.max && !budget.spent()) {
    QueueState* best = nullptr;
    std::pair<Priority, Seq> most_urgent;
    for (QueueState* queue : queues) {
      advance_guard(*queue, now);
      if (queue->room() == 0) continue;
      const auto urgency = urgency_of(*queue, command.lane, budget, now);
      if (!urgency || (best != nullptr && most_urgent <= *urgency)) continue;
      best = queue;
      most_urgent = *urgency;
    }
    if (best == nullptr) return;
    const std::size_t before = reply.jobs.size();
    grant(*best, command, before + 1, budget, reply, now);
    if (reply.jobs.size() == before && !has_room(reply)) return;
  }
}

// Of the job that a queue would give, or of the more urgent of the two that it would choose from.
std::optional<std::pair<Priority, Seq>> Engine::urgency_of(QueueState& queue, LaneChoice lane,
                                                           StepBudget& budget, Timestamp now) {
  const Candidates found = candidates(queue, lane, budget, now);
  std::optional<std::pair<Priority, Seq>> urgency;
  if (found.fresh) urgency = {found.fresh->priority, found.fresh->job.seq};
  if (found.retry) {
    const Seq seq = found.retry->job.seq;
    const auto record = ledger_.record({queue.record.number, seq});
    // One that cannot be read is found out by whoever claims it.
    const std::pair of_retry{record && *record ? (*record)->priority : Priority{}, seq};
    urgency = urgency ? std::min(*urgency, of_retry) : of_retry;
  }
  return urgency;
}

void Engine::cancel_claim(ClaimId id) {
  if (waiting_.remove(id)) answers_.push_back({id, ClaimReply{}});
}

void Engine::cancel_all_claims() {
  for (const WaitingClaim& claim : waiting_.take_all())
    answers_.push_back({claim.id, ClaimReply{}});
}

// A job's size is known when it is read, so the last one must fit whatever it is.
bool Engine::has_room(const ClaimReply& reply) const {
  return reply.jobs.empty() ||
         reply.payload_bytes + limits_.max_payload_bytes <= kReplyPayloadBytesMax;
}

void Engine::grant(QueueState& queue, const ClaimCommand& command, std::size_t most,
                   StepBudget& budget, ClaimReply& reply, Timestamp now) {
  advance_guard(queue, now);
  const std::size_t before = reply.jobs.size();
  while (reply.jobs.size() < most && queue.room() > 0 && has_room(reply) && !budget.spent()) {
    const auto next = next_job(queue, command.lane, budget, now);
    if (!next) break;
    const StrandRef strand = queue.jobs.take(*next);
    auto job = lease_job(queue, {queue.record.number, next->job.seq}, strand, command, budget, now);
    if (!job) {
      queue.jobs.passed_over(*next);
      continue;
    }
    queue.jobs.delivered(*next, now);
    reply.payload_bytes += job->record->payload.size();
    reply.jobs.push_back(std::move(*job));
  }
  count_claimed(queue, std::span(reply.jobs).subspan(before), now);
}

void Engine::count_claimed(QueueState& queue, std::span<const ClaimedJob> jobs, Timestamp now) {
  if (jobs.empty()) return;
  queue.totals.claimed += jobs.size();
  queue.totals.claimed_retry += static_cast<std::uint64_t>(
      std::ranges::count_if(jobs, [](const ClaimedJob& job) { return job.failures > 0; }));
  queue.claims.add(now, static_cast<std::uint32_t>(jobs.size()));
  touch(queue);
}

Engine::Candidates Engine::candidates(QueueState& queue, LaneChoice choice, StepBudget& budget,
                                      Timestamp now) {
  const auto& per_key = queue.record.config.concurrency_per_key;
  Candidates found;
  if (choice != LaneChoice::retry) {
    found.fresh = queue.jobs.next(Lane::fresh, per_key, budget, now);
  }
  if (choice != LaneChoice::fresh && queue.may_lease_retry()) {
    found.retry = queue.jobs.next(Lane::retry, per_key, budget, now);
  }
  return found;
}

std::optional<PendingJobs::Next> Engine::next_job(QueueState& queue, LaneChoice choice,
                                                  StepBudget& budget, Timestamp now) {
  const Candidates found = candidates(queue, choice, budget, now);
  if (!found.fresh || !found.retry) return found.fresh ? found.fresh : found.retry;
  const std::uint32_t share = queue.record.config.fetch.retry_share_ppm;
  return queue.lane_share.next(share) == Lane::fresh ? found.fresh : found.retry;
}

// Leases a job that next_job() gave. nullopt: it turned out to be over its ttl or unreadable and
// is dead now.
std::optional<ClaimedJob> Engine::lease_job(QueueState& queue, JobKey key, const StrandRef& strand,
                                            const ClaimCommand& command, StepBudget& budget,
                                            Timestamp now) {
  const auto record = ledger_.record(key);
  if (const auto why = why_unfit(record, ledger_.state(key))) {
    budget.spend(quarantine(queue, key, *why, now));
    return std::nullopt;
  }
  StateDraft state = ledger_.take_state(key).value();
  if (!state) state = std::make_shared<JobState>();
  if ((*record)->expires_at <= now) {
    budget.spend((*record)->byte_size());
    forget_job(queue, key, (*record)->expires_at, (*record)->byte_size());
    bury(queue, key, *record, std::move(state), DeathReason::expired, DecidedBy::policy, now);
    return std::nullopt;
  }
  state->status = JobStatus::active;
  state->attempts += planted(PlantedBug::wrong_attempts, key.seq) ? 2 : 1;
  state->lease_nonce = lease_nonce(command.own);
  state->lease_started_at = now;
  state->lease_deadline = add_saturating(now, command.lease.value_or(lease_of(queue, **record)));
  state->worker = command.worker;
  if (state->attempts == 1) state->first_attempt_at = now;

  grant_lease(queue, {.job = key,
                      .nonce = state->lease_nonce,
                      .deadline = state->lease_deadline,
                      .priority = (*record)->priority,
                      .expires_at = (*record)->expires_at,
                      .byte_size = (*record)->byte_size(),
                      .lane = state->lane(),
                      .strand = strand,
                      .trial = queue.guard ? queue.guard->lease_began() : 0});
  emit(EventType::taken, queue, key.seq, now, {.attempts = state->attempts});
  ClaimedJob job{.token = {key, state->lease_nonce},
                 .record = *record,
                 .attempts = state->attempts,
                 .failures = state->failures,
                 .lease_deadline = state->lease_deadline,
                 .last_error = state->last_error};
  ledger_.put_state(key, std::move(state));
  return job;
}

std::uint64_t Engine::lease_nonce(bool own) {
  std::uint64_t nonce = random_.next_u64();
  if (own) return (nonce & ~kOwnLeaseMask) | kOwnLeaseMark;
  while (is_own_lease(nonce)) nonce = random_.next_u64();
  return nonce;
}

// A job that cannot be read is never delivered: it goes to the dead as it is.
std::uint64_t Engine::quarantine(QueueState& queue, JobKey key, const Error& why, Timestamp now) {
  auto state = std::make_shared<JobState>();
  if (const auto stored = ledger_.state(key); stored && *stored) *state = **stored;
  state->last_error = why.detail;
  DeathReason reason = DeathReason::corrupt;
  RecordPtr record = record_for_burial(key, reason);
  const std::uint64_t size = record->byte_size();
  forget_job(queue, key, record->expires_at, ledger_.stored_byte_size(key));
  bury(queue, key, std::move(record), std::move(state), reason, DecidedBy::policy, now);
  return size;
}

void Engine::serve_waiting(QueueState& queue, Timestamp now) {
  if (!waiting_.has_any(queue.record.number)) return;
  advance_guard(queue, now);
  StepBudget budget;
  while (!budget.spent() && queue.room() > 0) {
    const Candidates found = candidates(queue, LaneChoice::any, budget, now);
    const WaitingClaim* first =
        waiting_.first(queue.record.number, found.fresh.has_value(), found.retry.has_value());
    if (first == nullptr) break;
    ClaimReply reply;
    grant(queue, first->command, first->command.max, budget, reply, now);
    if (reply.jobs.empty()) continue;  // what there was turned out dead; look again
    const ClaimId id = first->id;
    waiting_.remove(id);
    answers_.push_back({id, std::move(reply)});
  }
  if (budget.looked_enough()) look_again_later(queue);
}

void Engine::look_again_later(QueueState& queue) {
  queue.look_again = true;
  rearm(queue);
}

}  // namespace reprise
