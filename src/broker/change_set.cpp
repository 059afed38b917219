#include "broker/change_set.h"

#include "storage/keys.h"
#include "storage/records.h"

namespace reprise {
namespace {

using storage::EndKind;
using storage::Keyspace;

// One overload per kind of change: which keyspaces it touches.
struct Encoder {
  storage::Batch& batch;
  std::string& scratch;  // of one record at a time; kept for its memory

  void operator()(const PutJob& change) const {
    batch.put(Keyspace::jobs, storage::job_key(change.job),
              storage::encoded_job_size(*change.record),
              [&](std::string& bytes) { storage::encode_job(*change.record, bytes); });
  }
  void operator()(const PutState& change) const {
    scratch.clear();
    storage::encode_state(*change.state, scratch);
    batch.put(Keyspace::states, storage::job_key(change.job), scratch);
  }
  void operator()(const EraseJob& change) const {
    const std::string key = storage::job_key(change.job);
    batch.erase(Keyspace::jobs, key);
    batch.erase(Keyspace::states, key);
  }
  void operator()(const Bury& change) const {
    (*this)(EraseJob{change.job});
    put_ended(Keyspace::dead, EndKind::dead, change.job, change.dead);
  }
  void operator()(const Complete& change) const {
    (*this)(EraseJob{change.job});
    put_ended(Keyspace::completed, EndKind::completed, change.job, change.completed);
  }
  void operator()(const EraseDead& change) const {
    erase_ended(Keyspace::dead, EndKind::dead, change.job, change.ended_at);
  }
  void operator()(const EraseCompleted& change) const {
    erase_ended(Keyspace::completed, EndKind::completed, change.job, change.ended_at);
  }
  void operator()(const EraseEnding& change) const {
    const EndKind kind = change.status == JobStatus::completed ? EndKind::completed : EndKind::dead;
    batch.erase(Keyspace::endings, ending_key(kind, change.job, change.ended_at));
  }
  void operator()(const PutKey& change) const {
    batch.put(Keyspace::keys, storage::idempotency_key(change.queue, change.key),
              storage::encode_key_entry(change.entry));
  }
  void operator()(const EraseKey& change) const {
    batch.erase(Keyspace::keys, storage::idempotency_key(change.queue, change.key));
  }
  void operator()(const PutQueue& change) const {
    batch.put(Keyspace::queues, storage::queue_key(change.queue->name),
              storage::encode_queue(*change.queue));
  }
  void operator()(const EraseQueue& change) const {
    batch.erase(Keyspace::queues, storage::queue_key(*change.name));
    batch.erase(Keyspace::meta, storage::totals_key(change.number));
    const std::string begin = storage::queue_begin(change.number);
    const std::string end = storage::queue_end(change.number);
    for (const Keyspace keyspace : storage::kQueueKeyspaces) {
      batch.erase_range(keyspace, begin, end);
    }
  }
  void operator()(const PutTotals& change) const {
    batch.put(Keyspace::meta, storage::totals_key(change.queue),
              storage::encode_totals(*change.totals));
  }
  void operator()(const PutOperation& change) const {
    batch.put(Keyspace::meta, storage::operation_key(change.operation->id),
              storage::encode_operation(*change.operation));
  }
  void operator()(const EraseOperation& change) const {
    batch.erase(Keyspace::meta, storage::operation_key(change.id));
  }
  void operator()(const PutAudit& change) const {
    batch.put(Keyspace::meta, storage::audit_key(change.record->number),
              storage::encode_audit(*change.record));
  }
  void operator()(const EraseAudit& change) const {
    batch.erase(Keyspace::meta, storage::audit_key(change.number));
  }
  void operator()(const PutWebhook& change) const {
    batch.put(Keyspace::meta, storage::webhook_key(change.death->first),
              storage::encode_ended(change.death->second));
  }
  void operator()(const EraseWebhook& change) const {
    batch.erase(Keyspace::meta, storage::webhook_key(change.key));
  }
  void operator()(const PutConfig& change) const {
    batch.put(Keyspace::meta, storage::config_key(change.entry->ns, change.entry->key),
              storage::encode_config(*change.entry));
  }
  void operator()(const EraseConfig& change) const {
    batch.erase(Keyspace::meta, storage::config_key(change.ns, change.key));
  }
  void operator()(const PutThrottle& change) const {
    const Throttle& throttle = change.record->throttle;
    batch.put(Keyspace::meta, storage::throttle_key(throttle.ns, throttle.key),
              storage::encode_throttle(*change.record));
  }
  void operator()(const EraseThrottle& change) const {
    batch.erase(Keyspace::meta, storage::throttle_key(change.ns, change.key));
  }
  void operator()(const PutNote& change) const {
    batch.put(Keyspace::meta, storage::note_key(change.note->key),
              storage::encode_note(*change.note));
  }
  void operator()(const EraseNote& change) const {
    batch.erase(Keyspace::meta, storage::note_key(change.key));
  }
  void operator()(const PutServer& change) const {
    batch.put(Keyspace::meta, storage::kServerKey, storage::encode_server(*change.server));
  }

  // A job that has ended stands under its key, and under the time it ended.
  void put_ended(Keyspace keyspace, EndKind kind, JobKey job, const EndedJob& ended) const {
    scratch.clear();
    storage::encode_state(*ended.state, scratch);
    batch.put(keyspace, storage::job_key(job), storage::encoded_ended_size(*ended.record, scratch),
              [&](std::string& bytes) { storage::encode_ended(*ended.record, scratch, bytes); });
    batch.put(Keyspace::endings, ending_key(kind, job, ended.state->ended_at),
              storage::encode_ending(storage::ending_of(ended)));
  }
  void erase_ended(Keyspace keyspace, EndKind kind, JobKey job, Timestamp ended_at) const {
    batch.erase(keyspace, storage::job_key(job));
    batch.erase(Keyspace::endings, ending_key(kind, job, ended_at));
  }
  static std::string ending_key(EndKind kind, JobKey job, Timestamp at) {
    return storage::ending_key({.queue = job.queue, .kind = kind, .at = at, .seq = job.seq});
  }
};

}  // namespace

void encode(ChangeSet& changes) {
  changes.encoded.reserve(changes.payload_bytes);
  std::string scratch;
  const Encoder encoder{changes.encoded, scratch};
  for (; changes.encoded_changes < changes.changes.size(); ++changes.encoded_changes) {
    std::visit(encoder, changes.changes[changes.encoded_changes]);
  }
}

}  // namespace reprise
