// Retry and purge: what people do with jobs that were given up.
#include <utility>

#include "engine/dead_letter_headers.h"
#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {
namespace {

std::string short_id(Seq seq) { return encode_job_id(seq).substr(0, kShownIdChars); }

// Its ttl begins again, as long as it was.
Timestamp renewed_expiry(const JobRecord& record, const JobState& state, Timestamp now) {
  if (record.expires_at == kNever) return kNever;
  const Timestamp counted_from =
      state.returned_at == Timestamp{} ? record.pushed_at : state.returned_at;
  return add_saturating(now, record.expires_at - counted_from);
}

// The same record where nothing changes: payloads are not copied for it.
RecordPtr expiring_at(const RecordPtr& record, Timestamp expires_at) {
  if (record->expires_at == expires_at) return record;
  auto changed = std::make_shared<JobRecord>(*record);
  changed->expires_at = expires_at;
  return changed;
}

}  // namespace

// A job that comes back is written again.
Status Engine::check_disk_for_retry() const {
  if (!disk_low_) return ok();
  return Error{Errc::disk_full,
               "free disk space is below the reserve (--disk-reserve); retry when there is space "
               "again"};
}

Status Engine::retry_one(QueueState& queue, Seq seq, Timestamp now) {
  REPRISE_TRY(check_disk_for_retry());
  const JobKey key{queue.record.number, seq};
  const auto dead = ledger_.dead(key);
  if (!dead) {
    return Error{dead.error().code, "job " + short_id(seq) +
                                        " cannot be read: it can be purged or "
                                        "dropped, not retried (" +
                                        dead.error().detail + ")"};
  }
  return dead->record != nullptr ? retry_dead(queue, key, *dead, Return::by_hand, now)
                                 : retry_alive(queue, key, now);
}

Status Engine::retry_dead(QueueState& queue, JobKey key, const EndedJob& dead, Return how,
                          Timestamp now) {
  if (dead.state->death_reason == DeathReason::corrupt) {
    return Error{Errc::wrong_status,
                 "job " + short_id(key.seq) + " died as corrupt: there is nothing left to deliver"};
  }
  const auto home = home_of(queue, *dead.state);
  if (!home) return home.error();
  ledger_.erase_dead(key, dead.state->ended_at);
  --queue.totals.dead_now;
  come_back(queue, **home, key.seq, dead.record, std::make_shared<JobState>(*dead.state), how, now);
  return ok();
}

// One that cools down, or that came from another queue and waits here.
Status Engine::retry_alive(QueueState& queue, JobKey key, Timestamp now) {
  const auto record = ledger_.record(key);
  const auto state = ledger_.state(key);
  if (!record || !state || *record == nullptr) {
    return refusal(queue, key.seq, "only dead and failed jobs can be retried", now);
  }
  const JobStatus status = effective_status(state->get(), now);
  const bool is_letter = *state != nullptr && !(*state)->origin_queue.empty();
  if (status != JobStatus::failed && !(is_letter && status == JobStatus::pending)) {
    return refusal(queue, key.seq, "only dead and failed jobs can be retried", now);
  }
  const auto home = home_of(queue, **state);
  if (!home) return home.error();
  forget_waiting(queue, key, **record, state->get());
  forget_job(queue, key, (*record)->expires_at, (*record)->byte_size());
  ledger_.erase_job(key);
  rearm(queue);
  come_back(queue, **home, key.seq, *record, std::make_shared<JobState>(**state), Return::by_hand,
            now);
  return ok();
}

// Where a job belongs: here, or where it was before it came to this dead-letter queue.
Result<QueueState*> Engine::home_of(QueueState& queue, const JobState& state) {
  if (state.origin_queue.empty()) return &queue;
  QueueState* home = lookup({queue.record.name.ns, state.origin_queue});
  if (home != nullptr) return home;
  return Error{Errc::queue_not_found,
               "the queue it came from, '" + state.origin_queue + "', is gone"};
}

void Engine::come_back(QueueState& from, QueueState& to, Seq seq, RecordPtr record,
                       StateDraft state, Return how, Timestamp now) {
  if (&from == &to) {
    record = expiring_at(record, renewed_expiry(*record, *state, now));
  } else {
    JobRecord own = without_dead_letter_headers(*record);
    own.expires_at = expiry_of(to, now);
    record = std::make_shared<const JobRecord>(std::move(own));
    ++from.totals.moved_out;
    ++to.totals.moved_in;
  }
  state->origin_queue.clear();
  if (how == Return::by_hand) state->generation += 1;
  ++from.totals.retried;
  touch(from);
  emit(EventType::retry, to, seq, now, {.generation = state->generation});
  admit(to, seq, std::move(record), std::move(state), now);
}

Status Engine::purge_one(QueueState& queue, Seq seq, PurgeCause cause, Timestamp now) {
  const JobKey key{queue.record.number, seq};
  const auto dead = ledger_.dead(key);
  if (!dead && dead.error().code != Errc::corrupt) return dead.error();
  if (dead && dead->record == nullptr) {
    return refusal(queue, seq, "only dead jobs can be purged", now);
  }
  ledger_.erase_dead(key, dead ? dead->state->ended_at : Timestamp{});
  if (queue.totals.dead_now > 0) --queue.totals.dead_now;
  std::uint64_t& total = cause == PurgeCause::keep_dead  ? queue.totals.dead_expired
                         : cause == PurgeCause::max_dead ? queue.totals.dead_evicted
                                                         : queue.totals.purged;
  ++total;
  touch(queue);
  emit(EventType::purged, queue, seq, now, {.cause = cause});
  return ok();
}

Error Engine::refusal(QueueState& queue, Seq seq, std::string_view what, Timestamp now) {
  const auto status = status_of({queue.record.number, seq}, now);
  if (!status) {
    return {Errc::job_not_found,
            "no job " + encode_job_id(seq) + " in queue '" + queue.record.name.name + "'"};
  }
  return {Errc::wrong_status, "job " + short_id(seq) + " is " + std::string(status_name(*status)) +
                                  "; " + std::string(what)};
}

std::optional<JobStatus> Engine::status_of(JobKey key, Timestamp now) {
  if (const auto dead = ledger_.dead(key); !dead || dead->record != nullptr) {
    return JobStatus::dead;
  }
  const auto record = ledger_.record(key);
  const auto state = ledger_.state(key);
  if (!record || !state) {
    return is_leased(key) ? JobStatus::active : JobStatus::pending;
  }
  if (*record != nullptr) return effective_status(state->get(), now);
  const auto completed = ledger_.completed(key);
  if (!completed || completed->record != nullptr) return JobStatus::completed;
  return std::nullopt;
}

// --- What queues keep ---------------------------------------------------------------------------

Engine::Keeping Engine::keeping_of(const QueueState& queue, Timestamp now) {
  const QueueConfig& config = queue.record.config;
  const QueueTotals& totals = queue.totals;
  Keeping keeping{.queue = queue.record.number};
  if (config.keep_dead && totals.dead_now > 0) keeping.dead_before = now - *config.keep_dead;
  if (config.max_dead && totals.dead_now > *config.max_dead) {
    keeping.dead_beyond_max = totals.dead_now - *config.max_dead;
  }
  // Of a queue that keeps none any more, those it kept go at once.
  if (totals.completed_now > 0) {
    keeping.completed_before = now - config.keep_completed.value_or(Duration::zero());
  }
  return keeping;
}

std::vector<Engine::Keeping> Engine::keepings(Timestamp now) const {
  std::vector<Keeping> keepings;
  for (const auto& [number, queue] : by_number_) {
    const Keeping keeping = keeping_of(*queue, now);
    if (keeping.dead_before || keeping.dead_beyond_max > 0 || keeping.completed_before) {
      keepings.push_back(keeping);
    }
  }
  return keepings;
}

void Engine::let_go(std::span<const EndedRef> jobs, Timestamp now) {
  for (const EndedRef& ref : jobs) {
    const auto found = by_number_.find(ref.job.queue);
    if (found != by_number_.end()) let_go_one(*found->second, ref, now);
  }
}

void Engine::let_go_one(QueueState& queue, const EndedRef& ref, Timestamp now) {
  const bool is_dead = ref.status == JobStatus::dead;
  const auto ended = is_dead ? ledger_.dead(ref.job) : ledger_.completed(ref.job);
  if (!ended && ended.error().code != Errc::corrupt) return;
  if (ended && (ended->record == nullptr || ended->state->ended_at != ref.ended_at)) {
    return ledger_.erase_ending(ref.job, ref.status, ref.ended_at);
  }
  // The queue may keep more by now, or have less.
  const Keeping keeping = keeping_of(queue, now);
  const bool is_over = !is_dead
                           ? keeping.completed_before && ref.ended_at < *keeping.completed_before
                       : ref.cause == PurgeCause::max_dead
                           ? keeping.dead_beyond_max > 0
                           : keeping.dead_before && ref.ended_at < *keeping.dead_before;
  if (!is_over) return;
  if (!ended) ledger_.erase_ending(ref.job, ref.status, ref.ended_at);
  if (is_dead) {
    (void)purge_one(queue, ref.job.seq, ref.cause, now).has_value();
    return;
  }
  ledger_.erase_completed(ref.job, ref.ended_at);
  if (queue.totals.completed_now > 0) --queue.totals.completed_now;
  touch(queue);
}

void Engine::finish_webhooks(std::span<const WebhookKey> keys) {
  for (const WebhookKey& key : keys) ledger_.erase_webhook(key);
}

}  // namespace reprise
