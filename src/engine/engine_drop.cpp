// Drop: one job leaves, whatever its status.
#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {

Result<DroppedJob> Engine::drop(const QueueName& name, Seq seq, Timestamp now) {
  QueueState* queue = lookup(name);
  if (queue == nullptr) return queue_not_found(name);
  const JobKey key{queue->record.number, seq};
  const Error missing{Errc::job_not_found,
                      "no job " + encode_job_id(seq) + " in queue '" + name.name + "'"};
  const auto record = ledger_.record(key);
  if (!record) return record.error();
  DroppedJob dropped{.job = key};
  if (*record) {
    const auto state = ledger_.state(key);
    if (!state) return state.error();
    dropped.status = effective_status(state->get(), now);
    if (leases_.end(key)) {
      --queue->active;
    } else {
      forget_waiting(*queue, key, **record, state->get());
    }
    ledger_.erase_job(key);
    forget_job(*queue, key, (*record)->expires_at, (*record)->byte_size());
  } else {
    const auto dead = ledger_.dead(key);
    if (!dead) return dead.error();
    if (dead->record == nullptr) return missing;
    dropped.status = JobStatus::dead;
    ledger_.erase_dead(key);
    --queue->totals.dead_now;
  }
  ++queue->totals.dropped;
  touch(*queue);
  rearm(*queue);
  emit(EventType::dropped, *queue, seq, now);
  return dropped;
}

// Takes a job that is not leased out of whichever structure it waits in. A delay that is over may
// or may not have been noticed by a tick yet, so both places are tried.
void Engine::forget_waiting(QueueState& queue, JobKey key, const JobRecord& record,
                            const JobState* state) {
  const TimedSeq timed{state == nullptr ? Timestamp{} : state->due, key.seq};
  if (state != nullptr && state->lane() == Lane::retry) {
    if (queue.cooling.erase(timed) == 0) queue.retry.erase(timed);
  } else if (state == nullptr || queue.scheduled.erase(timed) == 0) {
    queue.fresh.erase(record.priority, key.seq);
  }
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
