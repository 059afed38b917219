// Burial: a job dies. It stays among the dead of its queue, or goes on to a dead-letter queue.
#include <algorithm>
#include <utility>

#include "engine/dead_letter_headers.h"
#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {

void Engine::bury(QueueState& queue, JobKey key, RecordPtr record, StateDraft state,
                  DeathReason reason, DecidedBy decided_by, Timestamp now) {
  state->status = JobStatus::dead;
  state->death_reason = reason;
  state->decided_by = decided_by;
  state->ended_at = now;
  if (reason == DeathReason::buried) {
    // They come back in the order in which they were put aside, also those of one moment.
    state->ended_at = last_burial_ = std::max(now, last_burial_ + Duration(1));
  }
  ++queue.totals.died;
  if (reason == DeathReason::expired) ++queue.totals.expired;
  if (reason == DeathReason::corrupt) ++queue.totals.corrupt;
  touch(queue);
  QueueState* graves = dead_letter_queue_of(queue, reason, now);
  emit(EventType::dead, queue, key.seq, now,
       {.attempts = state->attempts,
        .reason = reason,
        .death_note = state->death_note.empty()
                          ? nullptr
                          : std::make_shared<const std::string>(state->death_note),
        .error = std::make_shared<const std::string>(state->last_error),
        .dead_letter_queue = graves != nullptr ? graves->shared_name : nullptr});
  EndedJob dead{std::move(record), std::move(state)};
  if (!queue.record.config.on_dead_webhook.empty()) {
    ledger_.put_webhook({.died_at = now, .queue = key.queue, .seq = key.seq}, dead);
  }
  if (graves == nullptr) {
    ++queue.totals.dead_now;
    ledger_.bury(key, std::move(dead));
    return;
  }
  ledger_.erase_job(key);
  auto moved = std::make_shared<JobState>(*dead.state);
  moved->origin_queue = queue.record.name.name;
  JobRecord letter = with_dead_letter_headers(*dead.record, queue.record.name, *dead.state);
  letter.expires_at = expiry_of(*graves, now);
  ++queue.totals.moved_out;
  ++graves->totals.moved_in;
  admit(*graves, key.seq, std::make_shared<const JobRecord>(std::move(letter)), std::move(moved),
        now);
}

// That of a job that comes to the queue and brings no ttl of its own.
Timestamp Engine::expiry_of(const QueueState& queue, Timestamp now) {
  const std::optional<Duration>& ttl = queue.record.config.ttl;
  return ttl ? add_saturating(now, *ttl) : kNever;
}

// Null: it stays. Damaged bytes are no job for anybody.
QueueState* Engine::dead_letter_queue_of(const QueueState& queue, DeathReason reason,
                                         Timestamp now) {
  const std::string& name = queue.record.config.dead_letter_queue;
  if (name.empty() || reason == DeathReason::corrupt) return nullptr;
  const QueueName target{queue.record.name.ns, name};
  if (QueueState* found = lookup(target)) return found;
  return &create_queue(target, {}, now);
}

void Engine::admit(QueueState& queue, Seq seq, RecordPtr record, StateDraft state, Timestamp now) {
  const JobKey key{queue.record.number, seq};
  state->status = JobStatus::pending;
  state->failures = 0;
  state->due = {};
  state->returned_at = now;
  state->death_reason = DeathReason::none;
  state->decided_by = DecidedBy::policy;
  state->death_note.clear();
  state->hook_version.clear();
  state->ended_at = {};
  if (record->expires_at != kNever) queue.expiries.insert({record->expires_at, seq});
  queue.totals.live_bytes += record->byte_size();
  place(queue, key, record->priority, queue.jobs.strand(record->scheduling), *state, now);
  ledger_.put_job(key, std::move(record), queue.jobs.fresh_size());
  ledger_.put_state(key, std::move(state));
  touch(queue);
  rearm(queue);
  serve_waiting(queue, now);
}

// The record, or for one that cannot be decoded its bytes as they are, so that nothing is lost.
// Such a job has died as corrupt, whatever else it died of: its bytes must not be delivered, here
// or in another queue.
RecordPtr Engine::record_for_burial(JobKey key, DeathReason& reason) {
  if (const auto record = ledger_.record(key); record && *record) return *record;
  reason = DeathReason::corrupt;
  auto stand_in = std::make_shared<JobRecord>();
  stand_in->payload_kind = PayloadKind::bytes;
  stand_in->payload = ledger_.raw_record(key);
  return stand_in;
}

}  // namespace reprise
