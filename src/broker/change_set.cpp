#include "broker/change_set.h"

#include "storage/keys.h"
#include "storage/records.h"

namespace reprise {
namespace {

using storage::Keyspace;

// One overload per kind of change: which keyspaces it touches.
struct Encoder {
  storage::Batch& batch;

  void operator()(const PutJob& change) const {
    batch.put(Keyspace::jobs, storage::job_key(change.job), storage::encode_job(*change.record));
  }
  void operator()(const PutState& change) const {
    batch.put(Keyspace::states, storage::job_key(change.job), storage::encode_state(*change.state));
  }
  void operator()(const EraseJob& change) const {
    const std::string key = storage::job_key(change.job);
    batch.erase(Keyspace::jobs, key);
    batch.erase(Keyspace::states, key);
  }
  void operator()(const Bury& change) const {
    (*this)(EraseJob{change.job});
    batch.put(Keyspace::dead, storage::job_key(change.job), storage::encode_dead(change.dead));
  }
  void operator()(const EraseDead& change) const {
    batch.erase(Keyspace::dead, storage::job_key(change.job));
  }
  void operator()(const PutKey& change) const {
    batch.put(Keyspace::keys, storage::idempotency_key(change.queue, change.key),
              storage::encode_key_entry(change.entry));
  }
  void operator()(const EraseKey& change) const {
    batch.erase(Keyspace::keys, storage::idempotency_key(change.queue, change.key));
  }
  void operator()(const PutQueue& change) const {
    batch.put(Keyspace::queues, storage::queue_key(change.queue.name),
              storage::encode_queue(change.queue));
  }
  void operator()(const EraseQueue& change) const {
    batch.erase(Keyspace::queues, storage::queue_key(change.name));
    batch.erase(Keyspace::meta, storage::totals_key(change.number));
    const std::string begin = storage::queue_begin(change.number);
    const std::string end = storage::queue_end(change.number);
    for (const Keyspace keyspace :
         {Keyspace::jobs, Keyspace::states, Keyspace::dead, Keyspace::keys}) {
      batch.erase_range(keyspace, begin, end);
    }
  }
  void operator()(const PutTotals& change) const {
    batch.put(Keyspace::meta, storage::totals_key(change.queue),
              storage::encode_totals(change.totals));
  }
  void operator()(const PutServer& change) const {
    batch.put(Keyspace::meta, storage::kServerKey, storage::encode_server(change.server));
  }
};

}  // namespace

void encode(const ChangeSet& changes, storage::Batch& batch) {
  batch.reserve(changes.payload_bytes);
  const Encoder encoder{batch};
  for (const Change& change : changes.changes) std::visit(encoder, change);
}

}  // namespace reprise
