// Ledger: the engine's view of what is stored, and where its changes go.
// Reads see every change made before, committed or not. Changes gather in the batch that is open;
// whoever owns the ledger commits it. The engine itself touches no disk: in production the ledger
// is a bounded cache over storage (broker/batch_ledger.h), in tests it may be a few maps.
// Threads: the engine's only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "model/config_entry.h"
#include "model/job.h"
#include "model/operation.h"
#include "model/queue.h"
#include "model/server_state.h"
#include "model/throttle.h"
#include "model/webhook.h"

namespace reprise {

class Ledger {
 public:
  virtual ~Ledger() = default;

  // Null when there is none. Errc::corrupt: it is there and cannot be trusted.
  virtual Result<RecordPtr> record(JobKey job) = 0;
  virtual Result<StatePtr> state(JobKey job) = 0;
  // The state, for whoever puts another in its place: it is the caller's to change, and in general
  // no copy. Until put_state(), bury(), complete() or erase_job(), one of which must follow in the
  // same step, the job has no state, and no other job's may be taken. Null when there is none.
  virtual Result<StateDraft> take_state(JobKey job) {
    const auto stored = state(job);
    if (!stored) return stored.error();
    return *stored ? std::make_shared<JobState>(**stored) : StateDraft();
  }
  // Both pointers null when there is none.
  virtual Result<EndedJob> dead(JobKey job) = 0;
  virtual Result<EndedJob> completed(JobKey job) = 0;
  virtual Result<std::optional<KeyEntry>> key(QueueNumber queue, std::string_view key) = 0;
  // The stored bytes of a record that failed its checksum, for whoever wants to look into it.
  virtual std::string raw_record(JobKey job) = 0;
  // The byte_size() of a stored record, even if it cannot be trusted any more; 0 when unknown.
  virtual std::uint64_t stored_byte_size(JobKey job) = 0;

  // `jobs_ahead`: so many of its queue will probably be asked for before it.
  virtual void put_job(JobKey job, RecordPtr record, std::uint64_t jobs_ahead) = 0;
  // Made as one that can change, not with make_shared<const JobState>: take_state() gives it out.
  virtual void put_state(JobKey job, StatePtr state) = 0;
  // Its record and state.
  virtual void erase_job(JobKey job) = 0;
  // Moves a job among the dead, or the completed: its record and state go with it.
  virtual void bury(JobKey job, EndedJob dead) = 0;
  virtual void complete(JobKey job, EndedJob completed) = 0;
  // `ended_at` as it was told with it. Of one that cannot be read it is not known: its entry in the
  // list of endings stays, until somebody finds that there is nothing behind it.
  virtual void erase_dead(JobKey job, Timestamp ended_at) = 0;
  virtual void erase_completed(JobKey job, Timestamp ended_at) = 0;
  // Only the entry in the list of endings. `status` is dead or completed.
  virtual void erase_ending(JobKey job, JobStatus status, Timestamp ended_at) = 0;
  virtual void put_key(QueueNumber queue, std::string_view key, KeyEntry entry) = 0;
  virtual void erase_key(QueueNumber queue, std::string_view key) = 0;
  virtual void put_queue(const QueueRecord& queue) = 0;
  // With all that it holds.
  virtual void erase_queue(const QueueRecord& queue) = 0;
  virtual void put_totals(QueueNumber queue, const QueueTotals& totals) = 0;
  virtual void put_operation(const Operation& operation) = 0;
  virtual void erase_operation(OperationId id) = 0;
  virtual void put_audit(const AuditRecord& record) = 0;
  virtual void erase_audit(std::uint64_t number) = 0;
  // A death that somebody is to be told of.
  virtual void put_webhook(const WebhookKey& key, EndedJob dead) = 0;
  virtual void erase_webhook(const WebhookKey& key) = 0;
  virtual void put_config(const ConfigEntry& entry) = 0;
  virtual void erase_config(const std::string& ns, const std::string& key) = 0;
  virtual void put_throttle(const ThrottleRecord& record) = 0;
  virtual void erase_throttle(const std::string& ns, const std::string& key) = 0;
  virtual void put_server(const ServerState& server) = 0;
};

}  // namespace reprise
