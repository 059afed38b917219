// Drop: one job leaves, whatever its status and whether or not it can be read.
#include <algorithm>

#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {
namespace {

// Takes a delayed job out whose time is not known; its time, or nullopt when it is not there.
std::optional<Timestamp> take(absl::btree_map<TimedSeq, QueueState::Delayed>& jobs, Seq seq) {
  const auto found =
      std::ranges::find_if(jobs, [&](const auto& job) { return job.first.seq == seq; });
  if (found == jobs.end()) return std::nullopt;
  const Timestamp at = found->first.at;
  jobs.erase(found);
  return at;
}

}  // namespace

Result<DroppedJob> Engine::drop(const QueueName& name, Seq seq, const std::string& asked_by,
                                Timestamp now) {
  QueueState* queue = lookup(name);
  if (queue == nullptr) return queue_not_found(name);
  const JobKey key{queue->record.number, seq};
  auto was = drop_alive(*queue, key, now);
  if (was && !*was) was = drop_ended(*queue, key);
  if (!was) return was.error();
  if (!*was) {
    return Error{Errc::job_not_found,
                 "no job " + encode_job_id(seq) + " in queue '" + name.name + "'"};
  }
  // A completed one has left the queue's books already.
  if (**was != JobStatus::completed) ++queue->totals.dropped;
  touch(*queue);
  rearm(*queue);
  emit(EventType::dropped, *queue, seq, now);
  write_audit({.action = AuditAction::drop,
               .queue = name,
               .asked_by = asked_by,
               .ids = {encode_job_id(seq)},
               .done = 1},
              now);
  serve_waiting(*queue, now);  // one retry less may be in flight
  return DroppedJob{key, **was};
}

Result<std::optional<JobStatus>> Engine::drop_alive(QueueState& queue, JobKey key, Timestamp now) {
  const auto record = ledger_.record(key);
  if (record && *record == nullptr) return std::optional<JobStatus>{};
  if (!record && record.error().code != Errc::corrupt) return record.error();
  const auto state = ledger_.state(key);
  if (!state && state.error().code != Errc::corrupt) return state.error();
  std::optional<JobStatus> was;
  if (record && state) {
    was = effective_status(state->get(), now);
    if (!take_lease(queue, key, now)) forget_waiting(queue, key, **record, state->get());
    forget_job(queue, key, (*record)->expires_at, (*record)->byte_size());
  } else {
    was = forget_unreadable(queue, key, now);
  }
  if (was) ledger_.erase_job(key);
  return was;
}

Result<std::optional<JobStatus>> Engine::drop_ended(QueueState& queue, JobKey key) {
  const auto dead = ledger_.dead(key);
  if (!dead && dead.error().code != Errc::corrupt) return dead.error();
  if (!dead || dead->record != nullptr) {
    ledger_.erase_dead(key, dead ? dead->state->ended_at : Timestamp{});
    // One that cannot be read may not have been counted.
    if (queue.totals.dead_now > 0) --queue.totals.dead_now;
    return std::optional(JobStatus::dead);
  }
  const auto completed = ledger_.completed(key);
  if (!completed && completed.error().code != Errc::corrupt) return completed.error();
  if (completed && completed->record == nullptr) return std::optional<JobStatus>{};
  ledger_.erase_completed(key, completed ? completed->state->ended_at : Timestamp{});
  if (queue.totals.completed_now > 0) --queue.totals.completed_now;
  return std::optional(JobStatus::completed);
}

// Takes a job that is not leased out of whichever structure it waits in. A delay that is over may
// or may not have been noticed by a tick yet, so both places are tried.
void Engine::forget_waiting(QueueState& queue, JobKey key, const JobRecord& record,
                            const JobState* state) {
  const TimedSeq timed{state == nullptr ? Timestamp{} : state->due, key.seq};
  if (state != nullptr && state->lane() == Lane::retry) {
    if (!queue.cooling.erase(timed)) queue.jobs.erase_retry(timed);
  } else if (state == nullptr || queue.scheduled.erase(timed) == 0) {
    Strand* strand = queue.jobs.find(record.scheduling);
    if (strand != nullptr) queue.jobs.erase_fresh(*strand, record.priority, key.seq);
  }
}

// Takes out a job whose record or state cannot be read, and with it where it waits: every place is
// searched, which is slow in a large queue, and rare. Where it is says what it was; nullopt:
// nowhere. Its ttl, if it has one, will find nothing to end.
std::optional<JobStatus> Engine::forget_unreadable(QueueState& queue, JobKey key, Timestamp now) {
  if (const auto lease = take_lease(queue, key, now)) {
    forget_job(queue, key, lease->expires_at, lease->byte_size);
    return JobStatus::active;
  }
  std::optional<JobStatus> was;
  if (queue.jobs.erase(key.seq)) {
    was = JobStatus::pending;
  } else if (const auto retry_at = queue.cooling.time_of(key.seq)) {
    queue.cooling.erase({*retry_at, key.seq});
    was = *retry_at <= now ? JobStatus::pending : JobStatus::failed;
  } else if (const auto due = take(queue.scheduled, key.seq)) {
    was = *due <= now ? JobStatus::pending : JobStatus::scheduled;
  }
  if (was) forget_job(queue, key, kNever, ledger_.stored_byte_size(key));
  return was;
}

// What a job's end, of any kind, leaves behind in the queue's books. The size of a job that cannot
// be read is a guess; whatever that has done to the sum ends with the queue's last job.
void Engine::forget_job(QueueState& queue, JobKey key, Timestamp expires_at,
                        std::uint64_t byte_size) {
  if (expires_at != kNever) queue.expiries.erase({expires_at, key.seq});
  std::uint64_t& bytes = queue.totals.live_bytes;
  bytes = queue.alive() == 0 ? 0 : bytes - std::min(bytes, byte_size);
}

}  // namespace reprise
