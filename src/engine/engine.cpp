#include "engine/engine.h"

#include "base/check.h"
#include "engine/queue_state.h"

namespace reprise {

Engine::Engine(Ledger& ledger, Random& random, const Limits& limits)
    : ledger_(ledger), random_(random), limits_(limits) {}

Engine::~Engine() = default;

void Engine::restore_server(const ServerState& server) { server_ = server; }

void Engine::restore_queue(const QueueRecord& record, const QueueTotals& totals) {
  auto queue = std::make_unique<QueueState>();
  queue->record = record;
  queue->shared_name = std::make_shared<const QueueName>(record.name);
  queue->totals = totals;
  by_number_.emplace(record.number, queue.get());
  queues_.emplace(record.name, std::move(queue));
}

void Engine::restore_job(const StoredJob& job) {
  const auto found = by_number_.find(job.key.queue);
  REPRISE_CHECK(found != by_number_.end());
  QueueState& queue = *found->second;
  if (job.expires_at != kNever) queue.expiries.insert({job.expires_at, job.key.seq});
  if (job.state == nullptr) {
    queue.fresh.insert(job.priority, job.key.seq);
  } else if (job.state->status == JobStatus::active) {
    grant_lease(queue, {.job = job.key,
                        .nonce = job.state->lease_nonce,
                        .deadline = job.state->lease_deadline,
                        .priority = job.priority,
                        .expires_at = job.expires_at,
                        .byte_size = job.byte_size,
                        .lane = job.state->lane()});
  } else {
    // Delays that ended meanwhile are the first tick's business.
    place(queue, job.key, job.priority, *job.state, Timestamp::min());
  }
  // Changes nothing but when this job's time is the queue's next: rarely, as due times rise with
  // seqs more often than not.
  rearm(queue);
}

void Engine::restore_fresh(QueueNumber number, Priority priority, std::span<const Seq> seqs) {
  const auto found = by_number_.find(number);
  REPRISE_CHECK(found != by_number_.end());
  found->second->fresh.insert_all(priority, seqs);
}

void Engine::restore_operation(const Operation& operation) {
  operations_.insert_or_assign(operation.id, operation);
}

void Engine::seal(Timestamp now) {
  for (const QueueNumber number : touched_) {
    const auto found = by_number_.find(number);
    if (found != by_number_.end()) ledger_.put_totals(number, found->second->totals);
  }
  if (!touched_.empty() || server_changed_) {
    server_.clock = now;
    ledger_.put_server(server_);
  }
  touched_.clear();
  server_changed_ = false;
}

void Engine::forget_keys(std::span<const StoredKey> keys, Timestamp now) {
  for (const StoredKey& stored : keys) {
    const auto entry = ledger_.key(stored.queue, stored.key);
    // Until now an entry that cannot be read has refused every push with its key, since nobody can
    // tell whether it is a duplicate; nor can anybody tell for how long it should go on.
    const bool over = entry ? *entry && (*entry)->expires_at <= now  //
                            : entry.error().code == Errc::corrupt;
    if (over) ledger_.erase_key(stored.queue, stored.key);
  }
}

void Engine::touch(const QueueState& queue) { touched_.insert(queue.record.number); }

void Engine::emit(EventType type, const QueueState& queue, Seq seq, Timestamp now, Event details) {
  details.type = type;
  details.at = now;
  details.queue = queue.shared_name;
  details.seq = seq;
  events_.push_back(std::move(details));
}

}  // namespace reprise
