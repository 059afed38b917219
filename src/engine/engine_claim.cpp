// Claim: jobs go out under leases, at once or when there are some.
#include <algorithm>
#include <utility>

#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {
namespace {

// What one reply may hold, so that claiming many large jobs bounds memory and the reply's size.
constexpr std::uint64_t kReplyPayloadBytesMax = 16ULL << 20;

}  // namespace

std::optional<Result<ClaimReply>> Engine::claim(ClaimId id, ClaimCommand command, Timestamp now) {
  QueueState* queue = lookup(command.queue);
  if (queue == nullptr) return queue_not_found(command.queue);
  command.max = std::max(command.max, 1U);  // a claim for nothing would wait for ever
  StepBudget budget;
  ClaimReply reply = grant(*queue, command, budget, now);
  if (!reply.jobs.empty() || command.wait <= Duration::zero()) return reply;
  if (waiting_.size() >= limits_.max_waiting_claims) {
    return Error{Errc::too_many_waiting, "too many claims are waiting (max_waiting_claims is " +
                                             std::to_string(limits_.max_waiting_claims) + ")"};
  }
  const Timestamp deadline = add_saturating(now, command.wait);
  waiting_.add({id, queue->record.number, deadline, std::move(command)});
  return std::nullopt;
}

void Engine::cancel_claim(ClaimId id) {
  if (waiting_.remove(id)) answers_.push_back({id, ClaimReply{}});
}

void Engine::cancel_all_claims() {
  for (const WaitingClaim& claim : waiting_.take_all())
    answers_.push_back({claim.id, ClaimReply{}});
}

ClaimReply Engine::grant(QueueState& queue, const ClaimCommand& command, StepBudget& budget,
                         Timestamp now) {
  ClaimReply reply;
  if (queue.record.paused) return reply;
  std::uint64_t bytes = 0;
  // A job's size is known when it is read, so the last one must fit whatever it is.
  const auto has_room = [&] {
    return reply.jobs.empty() || bytes + limits_.max_payload_bytes <= kReplyPayloadBytesMax;
  };
  while (reply.jobs.size() < command.max && has_room() && !budget.spent()) {
    const auto seq = next_job(queue, command.lane);
    if (!seq) break;
    auto job = lease_job(queue, {queue.record.number, *seq}, command, budget, now);
    if (!job) continue;
    bytes += job->record->payload.size();
    reply.jobs.push_back(std::move(*job));
  }
  if (reply.jobs.empty()) return reply;
  queue.totals.claimed += reply.jobs.size();
  queue.totals.claimed_retry += static_cast<std::uint64_t>(
      std::ranges::count_if(reply.jobs, [](const ClaimedJob& job) { return job.failures > 0; }));
  queue.claims.add(now, static_cast<std::uint32_t>(reply.jobs.size()));
  touch(queue);
  return reply;
}

// Takes the next job out of its lane.
std::optional<Seq> Engine::next_job(QueueState& queue, LaneChoice choice) {
  const bool fresh = !queue.fresh.empty() && choice != LaneChoice::retry;
  const bool retry = queue.retry_waits() && choice != LaneChoice::fresh;
  if (!fresh && !retry) return std::nullopt;
  const std::uint32_t share = queue.record.config.fetch.retry_share_ppm;
  const Lane lane = fresh && retry ? queue.lane_share.next(share)
                    : fresh        ? Lane::fresh
                                   : Lane::retry;
  if (lane == Lane::fresh) {
    const auto [priority, seq] = queue.fresh.front();
    queue.fresh.erase(priority, seq);
    return seq;
  }
  const TimedSeq job = queue.retry.front();
  queue.retry.erase(job);
  return job.seq;
}

// Leases a job that next_job() gave. nullopt: it turned out to be over its ttl or unreadable and
// is dead now.
std::optional<ClaimedJob> Engine::lease_job(QueueState& queue, JobKey key,
                                            const ClaimCommand& command, StepBudget& budget,
                                            Timestamp now) {
  const auto record = ledger_.record(key);
  const auto before = ledger_.state(key);
  // What a restart took from the index is checked here, against the job itself.
  const bool is_leased = before && *before && (*before)->status == JobStatus::active;
  if (!record || !before || *record == nullptr || is_leased) {
    const Error contradiction{Errc::corrupt, is_leased ? "the job is leased and waiting at once"
                                                       : "the job's record is missing"};
    budget.spend(quarantine(queue, key,
                            !record   ? record.error()
                            : !before ? before.error()
                                      : contradiction,
                            now));
    return std::nullopt;
  }
  if ((*record)->expires_at <= now) {
    budget.spend((*record)->byte_size());
    forget_job(queue, key, (*record)->expires_at, (*record)->byte_size());
    bury(queue, key, *record, *before ? **before : JobState{}, DeathReason::expired,
         DecidedBy::policy, now);
    return std::nullopt;
  }
  auto state = *before ? std::make_shared<JobState>(**before) : std::make_shared<JobState>();
  state->status = JobStatus::active;
  state->attempts += 1;
  state->lease_nonce = random_.next_u64();
  state->lease_started_at = now;
  state->lease_deadline = add_saturating(now, command.lease.value_or(queue.record.config.lease));
  state->worker = command.worker;
  if (state->attempts == 1) state->first_attempt_at = now;

  grant_lease(queue, {.job = key,
                      .nonce = state->lease_nonce,
                      .deadline = state->lease_deadline,
                      .priority = (*record)->priority,
                      .expires_at = (*record)->expires_at,
                      .byte_size = (*record)->byte_size(),
                      .lane = state->lane()});
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

// A job that cannot be read is never delivered: it goes to the dead as it is.
std::uint64_t Engine::quarantine(QueueState& queue, JobKey key, const Error& why, Timestamp now) {
  JobState state;
  if (const auto stored = ledger_.state(key); stored && *stored) state = **stored;
  state.last_error = why.detail;
  DeathReason reason = DeathReason::corrupt;
  RecordPtr record = record_for_burial(key, reason);
  const std::uint64_t size = record->byte_size();
  forget_job(queue, key, record->expires_at, ledger_.stored_byte_size(key));
  bury(queue, key, std::move(record), std::move(state), reason, DecidedBy::policy, now);
  return size;
}

void Engine::serve_waiting(QueueState& queue, Timestamp now) {
  if (queue.record.paused) return;
  StepBudget budget;
  while (!budget.spent()) {
    const WaitingClaim* first =
        waiting_.first(queue.record.number, !queue.fresh.empty(), queue.retry_waits());
    if (first == nullptr) return;
    ClaimReply reply = grant(queue, first->command, budget, now);
    if (reply.jobs.empty()) continue;  // what there was turned out dead; look again
    const ClaimId id = first->id;
    waiting_.remove(id);
    answers_.push_back({id, std::move(reply)});
  }
}

}  // namespace reprise
