// CommitLoop: commits batches in their order as the broker's committer does, and keeps the time.
// The durability modes are the server's: `sync` makes each commit durable, with as many under way
// at once as the committer takes, `interval` buffers them and syncs every 100 ms.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

#include "broker/committer.h"
#include "clock.h"
#include "committer.h"
#include "latency_histogram.h"
#include "storage/batch.h"

namespace reprise::bench {

enum class Mode : std::uint8_t { sync, interval };

class CommitLoop {
 public:
  // One call at a time, on any thread.
  struct Source {
    std::function<const storage::Batch*()> next;  // null: there are no more
    std::function<void(const storage::Batch*)> done = [](const storage::Batch*) {};  // is committed
  };

  CommitLoop(Committer& committer, Mode mode, Source source);

  // All there are, and the sync that is still due.
  void run();

  // Of each commit, with the sync that followed it.
  const LatencyHistogram& latency() const { return latency_; }

 private:
  void run_thread();
  void commit_all();
  void commit(const storage::Batch& batch, std::uint64_t number);
  void sync_if_due(TimePoint now);

  Committer& committer_;
  const Mode mode_;
  const Source source_;
  Turnstile beginning_;
  Turnstile finishing_;
  TimePoint last_sync_ = Clock::now();

  std::mutex mutex_;
  // Protected by mutex_.
  std::uint64_t next_number_ = 0;
  LatencyHistogram latency_;
};

}  // namespace reprise::bench
