// Push: new jobs come in.
#include <algorithm>
#include <utility>

#include "base/planted_bug.h"
#include "base/text.h"
#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {
namespace {

// A template because Engine keeps the type to itself.
template <class Arrival>
Arrival arrival_of(NewJob job) {
  auto record = std::make_shared<JobRecord>();
  record->priority = job.priority;
  record->payload_kind = job.payload_kind;
  record->lease = job.lease;
  record->key = std::move(job.key);
  record->headers = std::move(job.headers);
  record->scheduling = std::move(job.scheduling);
  record->payload = std::move(job.payload);
  return {.record = std::move(record),
          .delay = job.delay,
          .ttl = job.ttl,
          .least_key_window = job.least_key_window,
          .rejected = {}};
}

// Adds the queue's defaults and checks its required fields, job by job. The server has judged sizes
// as the jobs came; what defaults add is judged here. Errc::batch_too_large: all of them together.
Status complete_payloads(const QueueState& queue, const Limits& limits,
                         std::vector<Result<NewJob>>& jobs) {
  std::uint64_t batch_bytes = 0;
  for (Result<NewJob>& job : jobs) {
    if (!job) continue;
    const std::size_t came = job->payload.size();
    const Status complete =
        queue.payload_vars->apply(job->payload, job->payload_kind, queue.record.name.name);
    const std::size_t size = complete ? job->payload.size() : 0;
    if (!complete) {
      job = complete.error();
    } else if (size > came && size > limits.max_payload_bytes) {
      job = Error{Errc::payload_too_large, "the payload is " + std::to_string(size) +
                                               " bytes with the defaults of queue '" +
                                               queue.record.name.name + "'; the limit is " +
                                               format_bytes(limits.max_payload_bytes)};
    } else {
      batch_bytes += size;
    }
    if (size > came && batch_bytes > limits.max_batch_bytes) {
      return Error{Errc::batch_too_large,
                   "the payloads of one push exceed " + format_bytes(limits.max_batch_bytes) +
                       " together with the defaults of queue '" + queue.record.name.name + "'"};
    }
  }
  return ok();
}

}  // namespace

std::optional<Result<PushReply>> Engine::push(RequestId id, PushCommand command, Timestamp now) {
  QueueState* queue = lookup(command.queue);
  if (queue == nullptr) {
    if (!command.create) return Result<PushReply>(queue_not_found(command.queue));
    queue = &create_queue(command.queue, {}, now);
  }
  // Before hooks see the jobs, and before keys are looked up: a payload that the queue does not
  // take is refused even when its key would make it a duplicate. Jobs that come back by a retry, or
  // from another queue, do not pass here: what was taken once stays taken.
  if (queue->payload_vars != nullptr) {
    if (const Status complete = complete_payloads(*queue, limits_, command.jobs); !complete) {
      return Result<PushReply>(complete.error());
    }
  }
  Arrivals arrivals;
  arrivals.reserve(command.jobs.size());
  for (Result<NewJob>& job : command.jobs) {
    if (job) {
      arrivals.emplace_back(arrival_of<Arrival>(std::move(*job)));
    } else {
      arrivals.emplace_back(job.error());
    }
  }
  if (queue->hook(HookKind::on_enqueue) != nullptr) {
    return ask_before_push(*queue, id, std::move(arrivals), now);
  }
  return Result<PushReply>(accept(*queue, std::move(arrivals), now));
}

PushReply Engine::accept(QueueState& queue, Arrivals arrivals, Timestamp now) {
  PushReply reply;
  reply.results.reserve(arrivals.size());
  std::uint32_t pushed = 0;
  for (Result<Arrival>& arrival : arrivals) {
    if (!arrival) {
      reply.results.emplace_back(arrival.error());
      continue;
    }
    reply.results.push_back(accept_one(queue, std::move(*arrival), now));
    if (reply.results.back() && !reply.results.back()->duplicate) ++pushed;
  }
  queue.totals.pushed += pushed;
  queue.pushes.add(now, pushed);
  touch(queue);
  rearm(queue);
  serve_waiting(queue, now);
  return reply;
}

Result<PushedJob> Engine::accept_one(QueueState& queue, Arrival arrival, Timestamp now) {
  const QueueConfig& config = queue.record.config;
  const QueueNumber number = queue.record.number;
  const std::shared_ptr<JobRecord> record = std::move(arrival.record);
  if (!record->key.empty()) {
    const auto known = ledger_.key(number, record->key);
    if (!known) return known.error();
    if (*known && (*known)->expires_at > now) {
      ++queue.totals.duplicates;
      return PushedJob{(*known)->seq, true};
    }
  }
  if (arrival.rejected && !planted(PlantedBug::phantom)) {
    return Error{Errc::hook_rejected, std::move(*arrival.rejected)};
  }
  if (disk_low_) {
    return Error{Errc::disk_full,
                 "free disk space is below the reserve (--disk-reserve); pushes resume by "
                 "themselves when there is space again"};
  }
  record->pushed_at = now;
  if (const auto ttl = arrival.ttl ? arrival.ttl : config.ttl) {
    record->expires_at = add_saturating(now, *ttl);
  }
  const std::uint64_t size = record->byte_size();
  REPRISE_TRY(check_room(queue, size));

  const JobKey key{number, server_.next_seq++};
  if (!record->key.empty()) {
    const Duration window = std::max(config.key_window, arrival.least_key_window);
    if (!planted(PlantedBug::duplicate)) {
      ledger_.put_key(number, record->key, {key.seq, add_saturating(now, window)});
    }
  }
  if (record->expires_at != kNever) queue.expiries.insert({record->expires_at, key.seq});
  ledger_.put_job(key, record, queue.jobs.fresh_size());
  queue.totals.live_bytes += size;
  const StrandRef strand = queue.jobs.strand(record->scheduling);
  queue.jobs.set_weight(strand->key, record->scheduling.weight);
  if (arrival.delay > Duration::zero()) {
    auto state = std::make_shared<JobState>();
    state->status = JobStatus::scheduled;
    state->due = add_saturating(now, arrival.delay);
    Timestamp wakes_at = state->due;
    if (planted(PlantedBug::early, key.seq)) wakes_at = now;
    if (planted(PlantedBug::stuck, key.seq)) wakes_at += std::chrono::hours(1);
    queue.scheduled.emplace(TimedSeq{wakes_at, key.seq},
                            QueueState::Delayed{record->priority, strand});
    ledger_.put_state(key, std::move(state));
  } else {
    const Priority behind = planted(PlantedBug::wrong_order, key.seq) ? 1 : 0;
    queue.jobs.insert_fresh(*strand, record->priority + behind, key.seq);
  }
  emit(EventType::pushed, queue, key.seq, now);
  if (planted(PlantedBug::phantom) && arrival.rejected) {
    return Error{Errc::hook_rejected, std::move(*arrival.rejected)};
  }
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
