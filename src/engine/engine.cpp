#include "engine/engine.h"

#include "base/check.h"
#include "engine/queue_state.h"

namespace reprise {

Engine::Engine(Ledger& ledger, Random& random, const Limits& limits)
    : ledger_(ledger), random_(random), limits_(limits) {}

Engine::~Engine() = default;

void Engine::restore_server(const ServerState& server) { server_ = server; }

void Engine::restore_queue(const QueueRecord& record, const QueueTotals& totals) {
  auto queue = std::make_unique<QueueState>(record, throttles_);
  queue->shared_name = std::make_shared<const QueueName>(record.name);
  queue->totals = totals;
  QueueState& added = *queue;
  by_number_.emplace(record.number, queue.get());
  queues_.emplace(record.name, std::move(queue));
  added.payload_vars = PayloadVars::make(record.config);
  define_guard(added);
  define_hooks(added, record.created_at);
}

void Engine::restore_job(const StoredJob& job) {
  const auto found = by_number_.find(job.key.queue);
  REPRISE_CHECK(found != by_number_.end());
  QueueState& queue = *found->second;
  if (job.expires_at != kNever) queue.expiries.insert({job.expires_at, job.key.seq});
  const StrandRef strand = queue.jobs.strand(job.scheduling);
  queue.jobs.restore_weight(strand->key, job.scheduling.weight, job.key.seq);
  if (job.state == nullptr) {
    queue.jobs.insert_fresh(*strand, job.priority, job.key.seq);
  } else if (job.state->status == JobStatus::active) {
    // One of the server that was before does not expire: it is given back (release_own).
    const bool own = is_own_lease(job.state->lease_nonce);
    grant_lease(queue, {.job = job.key,
                        .nonce = job.state->lease_nonce,
                        .deadline = own ? kNever : job.state->lease_deadline,
                        .priority = job.priority,
                        .expires_at = job.expires_at,
                        .byte_size = job.byte_size,
                        .lane = job.state->lane(),
                        .strand = strand});
  } else {
    // Delays that ended meanwhile are the first tick's business.
    place(queue, job.key, job.priority, strand, *job.state, Timestamp::min());
  }
  // Changes nothing but when this job's time is the queue's next: rarely, as due times rise with
  // seqs more often than not.
  rearm(queue);
}

void Engine::restore_fresh(QueueNumber number, Priority priority, const Scheduling& scheduling,
                           std::span<const Seq> seqs) {
  if (seqs.empty()) return;
  const auto found = by_number_.find(number);
  REPRISE_CHECK(found != by_number_.end());
  PendingJobs& jobs = found->second->jobs;
  const StrandRef strand = jobs.strand(scheduling);
  jobs.restore_weight(strand->key, scheduling.weight, seqs.back());
  jobs.insert_fresh(*strand, priority, seqs);
}

void Engine::restore_operation(const Operation& operation) {
  operations_.insert_or_assign(operation.id, operation);
}

void Engine::restore_config(const ConfigEntry& entry) {
  config_[entry.ns].insert_or_assign(entry.key, entry);
  hook_work_.emplace_back(ConfigChange{entry.ns, entry.key, entry.value});
}

void Engine::finish_restore() {
  for (const auto& [name, queue] : queues_) queue->jobs.finish_restore();
}

void Engine::seal(Timestamp now) {
  for (const ThrottleRecord& record : throttles_.take_changed()) ledger_.put_throttle(record);
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
