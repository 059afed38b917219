// Ledger: the engine's view of what is stored, and where its changes go.
// Reads see every change made before, committed or not. Changes gather in the batch that is open;
// whoever owns the ledger commits it. The engine itself touches no disk: in production the ledger
// is a bounded cache over storage (broker/batch_ledger.h), in tests it may be a few maps.
// Threads: the engine's only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "model/job.h"
#include "model/queue.h"
#include "model/server_state.h"

namespace reprise {

class Ledger {
 public:
  virtual ~Ledger() = default;

  // Null when there is none. Errc::corrupt: it is there and cannot be trusted.
  virtual Result<RecordPtr> record(JobKey job) = 0;
  virtual Result<StatePtr> state(JobKey job) = 0;
  // Both pointers null when there is none.
  virtual Result<DeadJob> dead(JobKey job) = 0;
  virtual Result<std::optional<KeyEntry>> key(QueueNumber queue, std::string_view key) = 0;
  // The stored bytes of a record that failed its checksum, for whoever wants to look into it.
  virtual std::string raw_record(JobKey job) = 0;
  // The byte_size() of a stored record, even if it cannot be trusted any more; 0 when unknown.
  virtual std::uint64_t stored_byte_size(JobKey job) = 0;

  virtual void put_job(JobKey job, RecordPtr record) = 0;
  virtual void put_state(JobKey job, StatePtr state) = 0;
  // Its record and state.
  virtual void erase_job(JobKey job) = 0;
  // Moves a job among the dead.
  virtual void bury(JobKey job, DeadJob dead) = 0;
  virtual void erase_dead(JobKey job) = 0;
  virtual void put_key(QueueNumber queue, std::string_view key, KeyEntry entry) = 0;
  virtual void erase_key(QueueNumber queue, std::string_view key) = 0;
  virtual void put_queue(const QueueRecord& queue) = 0;
  // With all that it holds.
  virtual void erase_queue(const QueueRecord& queue) = 0;
  virtual void put_totals(QueueNumber queue, const QueueTotals& totals) = 0;
  virtual void put_server(const ServerState& server) = 0;
};

}  // namespace reprise
