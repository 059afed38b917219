// JobBatches: the batches that the broker commits while jobs come and go. Made of its own changes
// and by its own encoder, with the totals and the server's record that each real batch carries, so
// a folder filled with them is one that `reprise serve` can be started on.
// Jobs go to the queues in turn, one after another. Leases and acks take the jobs pushed first.
// Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "broker/change_set.h"
#include "model/queue.h"
#include "model/server_state.h"
#include "payload_source.h"
#include "storage/batch.h"

namespace reprise::bench {

// Of the only queue, or of the first. The harness claims from it.
inline constexpr char kQueueName[] = "bench";

class JobBatches {
 public:
  explicit JobBatches(std::uint32_t queues);

  // Goes before all others.
  storage::Batch make_queues();
  // Each replaces what is in `out`. Leasing needs jobs that were pushed, acking leased ones.
  void push(std::uint64_t jobs, storage::Batch& out);
  void lease(std::uint64_t jobs, storage::Batch& out);
  void ack(std::uint64_t jobs, storage::Batch& out);

  // Of one stored job, key and value: the measure of live data.
  std::uint64_t stored_bytes_per_job() const;

 private:
  JobKey key_of(Seq seq) const;
  QueueTotals& totals_of(JobKey job) { return totals_[job.queue - 1]; }
  RecordPtr make_record(Seq seq) const;
  StatePtr make_lease(Seq seq) const;
  void seal(storage::Batch& out);

  const Timestamp now_;
  const PayloadSource payloads_;
  std::vector<QueueTotals> totals_;  // of queue number 1 and on
  ServerState server_;
  Seq next_lease_ = 1;
  Seq next_ack_ = 1;
  ChangeSet changes_;
};

}  // namespace reprise::bench
