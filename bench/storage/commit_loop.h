// CommitLoop: commits batches one after another as the broker's commit thread does, and keeps the
// time. The durability modes are the server's: `sync` makes each commit durable, `interval` buffers
// them and syncs every 100 ms.
#pragma once

#include <cstdint>

#include "clock.h"
#include "committer.h"
#include "latency_histogram.h"
#include "storage/batch.h"

namespace reprise::bench {

enum class Mode : std::uint8_t { sync, interval };

class CommitLoop {
 public:
  CommitLoop(Committer& committer, Mode mode);

  void commit(const storage::Batch& batch);
  // The sync that is still due; belongs to the measured time.
  void finish();

  // Of each commit, with the sync that followed it.
  const LatencyHistogram& latency() const { return latency_; }

 private:
  Committer& committer_;
  const Mode mode_;
  TimePoint last_sync_ = Clock::now();
  LatencyHistogram latency_;
};

}  // namespace reprise::bench
