#include "broker/core.h"

#include <absl/container/flat_hash_set.h>

#include "storage/keys.h"
#include "storage/records.h"

namespace reprise {
namespace {

using storage::Keyspace;
using Cursor = storage::Storage::Cursor;

// Rebuilds an engine from one consistent view of storage: the server's state, then the queues, then
// the jobs of all queues in key order, with their states walked alongside.
class Recovery {
 public:
  Recovery(const storage::Storage& storage, Engine& engine)
      : snapshot_(storage.snapshot()), engine_(engine) {}

  Status run() {
    REPRISE_TRY(restore_server());
    REPRISE_TRY(restore_queues());
    return restore_jobs();
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

  Result<QueueTotals> totals_of(QueueNumber queue) const {
    const auto bytes = snapshot_->get(Keyspace::meta, storage::totals_key(queue));
    if (!bytes) return bytes.error();
    if (!*bytes) return QueueTotals{};
    return storage::decode_totals(**bytes);
  }

  Status restore_jobs() {
    const auto jobs = snapshot_->cursor(Keyspace::jobs, {}, {});
    const auto states = snapshot_->cursor(Keyspace::states, {}, {});
    for (; jobs->valid(); jobs->next()) {
      if (states->valid() && states->key() < jobs->key()) {
        return Error{Errc::corrupt, "a job state without its job: " + describe(states->key())};
      }
      const bool has_state = states->valid() && states->key() == jobs->key();
      REPRISE_TRY(restore_job(*jobs, has_state ? states.get() : nullptr));
      if (has_state) states->next();
    }
    REPRISE_TRY(jobs->status());
    REPRISE_TRY(states->status());
    if (states->valid()) {
      return Error{Errc::corrupt, "a job state without its job: " + describe(states->key())};
    }
    return ok();
  }

  Status restore_job(const Cursor& job, const Cursor* state) {
    const auto key = storage::parse_job_key(job.key());
    if (!key || !numbers_.contains(key->queue)) {
      return Error{Errc::corrupt, "a job of no known queue: " + describe(job.key())};
    }
    const auto outline = storage::decode_job_outline(job.value());
    if (!outline) return Error{outline.error().code, describe(job.key()) + outline.error().detail};
    Engine::StoredJob stored{.key = *key,
                             .priority = outline->priority,
                             .expires_at = outline->expires_at,
                             .byte_size = outline->byte_size};
    if (state == nullptr) {
      engine_.restore_job(stored);
      return ok();
    }
    const auto decoded = storage::decode_state(state->value());
    if (!decoded) return Error{decoded.error().code, describe(job.key()) + decoded.error().detail};
    stored.state = &*decoded;
    engine_.restore_job(stored);
    return ok();
  }

  static std::string describe(std::string_view key) {
    const auto job = storage::parse_job_key(key);
    if (!job) return "a key that is no job's: ";
    return "job " + encode_job_id(job->seq) + " of queue number " + std::to_string(job->queue) +
           ": ";
  }

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

Status BrokerCore::commit(storage::Storage& storage, const ChangeSet& changes,
                          storage::Durability durability, storage::Batch& scratch) {
  scratch.clear();
  encode(changes, scratch);
  return storage.commit(scratch, durability);
}

}  // namespace reprise
