// CommitThread: writes one batch at a time and lets its replies go when it is as durable as the
// mode promises. While it writes, the engine's thread gathers the next batch.
// Threads: submit() and stop() from the engine's thread; metrics() from any.
#pragma once

#include <absl/functional/any_invocable.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "broker/broker.h"
#include "broker/core.h"
#include "broker/event_hub.h"
#include "broker/metrics.h"
#include "storage/storage.h"

namespace reprise {

class CommitThread {
 public:
  using Reply = absl::AnyInvocable<void()>;
  struct Work {
    SealedBatch batch;
    std::vector<Reply> replies;
    std::size_t commands = 0;
  };
  struct Hooks {
    std::function<void(std::uint64_t batch)> on_committed;  // after its replies have left
    std::function<void(const Error&)> on_fatal;             // once; nothing more is committed
  };

  CommitThread(storage::Storage& storage, EventHub& events, DurabilityMode mode,
               Duration sync_interval, Hooks hooks);
  ~CommitThread();

  // The work before must have been committed: one batch at a time.
  void submit(Work work);
  // The same on the caller's thread: for a small batch with nothing behind it, to which waking
  // another thread and being woken by it would add more than they save. on_committed is not called.
  // Busy: the thread is syncing, and the work is as it was.
  enum class Here : std::uint8_t { committed, busy, failed };
  Here commit_here(Work& work);
  // Commits what was submitted, syncs, joins.
  void stop();

  // Fills in what this thread knows.
  void add_metrics(BrokerMetrics& metrics) const;

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  void run();
  std::optional<Work> wait_for_work();
  // Storage has it, as durable as the mode promises.
  bool write(Work& work);
  // Its replies leave.
  void release(Work& work);
  bool sync_if_due(bool force);
  void fail(const Error& error);

  storage::Storage& storage_;
  EventHub& events_;
  const DurabilityMode mode_;
  const std::chrono::steady_clock::duration sync_interval_;
  const Hooks hooks_;

  // Held by whoever commits or syncs.
  std::mutex writing_;
  // Protected by writing_.
  bool failed_ = false;
  SteadyTime last_sync_{};  // written by the thread only

  mutable std::mutex mutex_;  // taken after writing_
  std::condition_variable wake_;
  // Protected by mutex_.
  std::optional<Work> next_;
  bool unsynced_ = false;
  bool stopping_ = false;
  Histogram commit_seconds_;
  Histogram batch_commands_;
  Histogram batch_bytes_;
  std::uint64_t commits_ = 0;

  std::thread thread_;
};

}  // namespace reprise
