#include "broker/core.h"

#include <absl/container/flat_hash_set.h>

#include "storage/keys.h"
#include "storage/live_jobs.h"
#include "storage/records.h"

namespace reprise {
namespace {

using storage::Keyspace;

// Rebuilds an engine from what is stored: the server's state, then the queues, then what scheduling
// needs of their jobs.
class Recovery : private storage::LiveJobVisitor {
 public:
  Recovery(const storage::Storage& storage, Engine& engine)
      : storage_(storage), snapshot_(storage.snapshot()), engine_(engine) {}

  Status run() {
    REPRISE_TRY(restore_server());
    REPRISE_TRY(restore_queues());
    REPRISE_TRY(restore_config());
    REPRISE_TRY(restore_throttles());
    REPRISE_TRY(restore_operations());
    REPRISE_TRY(storage_.visit_live_jobs(*this));
    engine_.finish_restore();
    return ok();
  }

 private:
  Status restore_server() {
    const auto bytes = snapshot_->get(Keyspace::meta, storage::kServerKey);
    if (!bytes) return bytes.error();
    if (!*bytes) return ok();  // a new directory
    const auto server = storage::decode_server(**bytes);
    if (!server) return Error{server.error().code, "server record: " + server.error().detail};
    engine_.restore_server(*server);
    return ok();
  }

  Status restore_queues() {
    const auto cursor = snapshot_->cursor(Keyspace::queues, {}, {});
    for (; cursor->valid(); cursor->next()) {
      const auto queue = storage::decode_queue(cursor->value());
      if (!queue) return Error{queue.error().code, "queue record: " + queue.error().detail};
      const auto totals = totals_of(queue->number);
      if (!totals) return totals.error();
      engine_.restore_queue(*queue, *totals);
      numbers_.insert(queue->number);
    }
    return cursor->status();
  }

  Status restore_config() {
    const auto cursor = snapshot_->cursor(Keyspace::meta, storage::kConfigPrefix,
                                          storage::prefix_end(storage::kConfigPrefix));
    for (; cursor->valid(); cursor->next()) {
      const auto entry = storage::decode_config(cursor->value());
      if (!entry) return entry.error();
      engine_.restore_config(*entry);
    }
    return cursor->status();
  }

  Status restore_throttles() {
    const auto cursor = snapshot_->cursor(Keyspace::meta, storage::kThrottlePrefix,
                                          storage::prefix_end(storage::kThrottlePrefix));
    for (; cursor->valid(); cursor->next()) {
      const auto record = storage::decode_throttle(cursor->value());
      if (!record) return record.error();
      engine_.restore_throttle(*record);
    }
    return cursor->status();
  }

  Status restore_operations() {
    const auto cursor = snapshot_->cursor(Keyspace::meta, storage::kOperationPrefix,
                                          storage::prefix_end(storage::kOperationPrefix));
    for (; cursor->valid(); cursor->next()) {
      const auto operation = storage::decode_operation(cursor->value());
      if (!operation) return operation.error();
      // One that runs has its queue: deleting it ends the operation in the same batch.
      if (operation->state == OperationState::running) {
        REPRISE_TRY(require_queue(operation->queue));
      }
      engine_.restore_operation(*operation);
    }
    return cursor->status();
  }

  Result<QueueTotals> totals_of(QueueNumber queue) const {
    const auto bytes = snapshot_->get(Keyspace::meta, storage::totals_key(queue));
    if (!bytes) return bytes.error();
    if (!*bytes) return QueueTotals{};
    return storage::decode_totals(**bytes);
  }

  // storage::LiveJobVisitor.
  Status fresh(QueueNumber queue, Priority priority, const Scheduling& scheduling,
               std::span<const Seq> seqs) override {
    REPRISE_TRY(require_queue(queue));
    engine_.restore_fresh(queue, priority, scheduling, seqs);
    return ok();
  }
  Status other(const storage::LiveJob& job) override {
    REPRISE_TRY(require_queue(job.key.queue));
    Engine::StoredJob stored{.key = job.key,
                             .priority = job.priority,
                             .expires_at = job.expires_at,
                             .scheduling = job.scheduling,
                             .state = job.state ? &*job.state : nullptr};
    if (job.state && job.state->status == JobStatus::active) {
      // A lease that ends gives its job's bytes back without reading it.
      const auto size = byte_size_of(job.key);
      if (!size) return size.error();
      stored.byte_size = *size;
    }
    engine_.restore_job(stored);
    return ok();
  }

  Status require_queue(QueueNumber queue) const {
    if (numbers_.contains(queue)) return ok();
    return Error{Errc::corrupt,
                 "there are jobs of queue number " + std::to_string(queue) + ", which is unknown"};
  }

  Result<std::uint64_t> byte_size_of(JobKey job) const {
    const std::string key = storage::job_key(job);
    const auto bytes = snapshot_->get(Keyspace::jobs, key);
    if (!bytes) return bytes.error();
    const auto size = storage::decode_job_byte_size(bytes->value_or(std::string()));
    if (size) return *size;
    return Error{size.error().code, storage::describe_job(key) + ": " + size.error().detail};
  }

  const storage::Storage& storage_;
  const std::unique_ptr<storage::Storage::Snapshot> snapshot_;
  Engine& engine_;
  absl::flat_hash_set<QueueNumber> numbers_;
};

}  // namespace

BrokerCore::BrokerCore(const storage::Storage& storage, Random& random, const Options& options)
    : ledger_(storage, options.cache_bytes), engine_(ledger_, random, options.limits) {}

Result<std::unique_ptr<BrokerCore>> BrokerCore::recover(const storage::Storage& storage,
                                                        Random& random, const Options& options) {
  std::unique_ptr<BrokerCore> core(new BrokerCore(storage, random, options));
  REPRISE_TRY(Recovery(storage, core->engine_).run());
  return core;
}

SealedBatch BrokerCore::seal(Timestamp now) {
  engine_.seal(now);
  auto [number, changes] = ledger_.seal();
  return {number, std::move(changes), engine_.take_events()};
}

Status BrokerCore::commit(storage::Storage& storage, ChangeSet& changes,
                          storage::Durability durability) {
  encode(changes);
  return storage.commit(changes.encoded, durability);
}

}  // namespace reprise
