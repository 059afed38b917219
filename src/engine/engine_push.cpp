// Push: new jobs come in.
#include <utility>

#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {

Result<PushReply> Engine::push(PushCommand command, Timestamp now) {
  QueueState* queue = lookup(command.queue);
  if (queue == nullptr) {
    if (!command.create) return queue_not_found(command.queue);
    queue = &create_queue(command.queue, {}, now);
  }
  PushReply reply;
  reply.results.reserve(command.jobs.size());
  std::uint32_t pushed = 0;
  for (Result<NewJob>& job : command.jobs) {
    if (!job) {
      reply.results.emplace_back(job.error());
      continue;
    }
    reply.results.push_back(push_one(*queue, std::move(*job), now));
    if (reply.results.back() && !reply.results.back()->duplicate) ++pushed;
  }
  queue->totals.pushed += pushed;
  queue->pushes.add(now, pushed);
  touch(*queue);
  rearm(*queue);
  serve_waiting(*queue, now);
  return reply;
}

Result<PushedJob> Engine::push_one(QueueState& queue, NewJob job, Timestamp now) {
  const QueueConfig& config = queue.record.config;
  const QueueNumber number = queue.record.number;
  if (!job.key.empty()) {
    const auto known = ledger_.key(number, job.key);
    if (!known) return known.error();
    if (*known && (*known)->expires_at > now) {
      ++queue.totals.duplicates;
      return PushedJob{(*known)->seq, true};
    }
  }
  if (disk_low_) {
    return Error{Errc::disk_full,
                 "free disk space is below the reserve (--disk-reserve); pushes resume by "
                 "themselves when there is space again"};
  }

  auto record = std::make_shared<JobRecord>();
  record->pushed_at = now;
  if (const auto ttl = job.ttl ? job.ttl : config.ttl)
    record->expires_at = add_saturating(now, *ttl);
  record->priority = job.priority;
  record->payload_kind = job.payload_kind;
  record->key = std::move(job.key);
  record->headers = std::move(job.headers);
  record->payload = std::move(job.payload);
  const std::uint64_t size = record->byte_size();
  REPRISE_TRY(check_room(queue, size));

  const JobKey key{number, server_.next_seq++};
  if (!record->key.empty()) {
    ledger_.put_key(number, record->key, {key.seq, add_saturating(now, config.key_window)});
  }
  if (record->expires_at != kNever) queue.expiries.insert({record->expires_at, key.seq});
  ledger_.put_job(key, std::move(record));
  queue.totals.live_bytes += size;
  if (job.delay > Duration::zero()) {
    auto state = std::make_shared<JobState>();
    state->status = JobStatus::scheduled;
    state->due = add_saturating(now, job.delay);
    queue.scheduled.emplace(TimedSeq{state->due, key.seq}, job.priority);
    ledger_.put_state(key, std::move(state));
  } else {
    queue.fresh.insert(job.priority, key.seq);
  }
  emit(EventType::pushed, queue, key.seq, now);
  return PushedJob{key.seq, false};
}

Status Engine::check_room(const QueueState& queue, std::uint64_t more_bytes) const {
  const QueueConfig& config = queue.record.config;
  if (config.max_jobs && queue.alive() >= *config.max_jobs) {
    return Error{Errc::queue_full, "queue '" + queue.record.name.name + "' holds its max_jobs of " +
                                       std::to_string(*config.max_jobs)};
  }
  if (config.max_bytes && queue.totals.live_bytes + more_bytes > *config.max_bytes) {
    return Error{Errc::queue_bytes_full, "queue '" + queue.record.name.name +
                                             "' would pass its max_bytes of " +
                                             std::to_string(*config.max_bytes)};
  }
  return ok();
}

}  // namespace reprise
