// Committer: writes batches and lets their replies go when they are as durable as the mode
// promises. In `sync` mode two batches may be on their way to the disk at once: most disks can do
// more than one write at a time. In the other modes a write only reaches memory, and one at a time
// is as fast. While they are written, the engine's thread gathers the next batch.
//
//   submit ──▶ queue ──▶ a thread: begin, in turn ── write, side by side ── finish, in turn:
//                        storage applies it, its replies leave, on_committed
//
// Threads: submit(), commit_here() and stop() from whoever has the engine; add_metrics() from any.
#pragma once

#include <absl/functional/any_invocable.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
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

// Lets in who has the next number, one after another.
class Turnstile {
 public:
  void wait_for(std::uint64_t number);
  void pass();

 private:
  std::mutex mutex_;
  std::condition_variable passed_;
  std::uint64_t next_ = 0;  // protected by mutex_
};

class Committer {
 public:
  using Reply = absl::AnyInvocable<void()>;
  struct Work {
    SealedBatch batch;
    std::vector<Reply> replies;
    std::size_t commands = 0;
  };
  struct Hooks {
    // After its replies have left; batch by batch.
    std::function<void(std::uint64_t batch)> on_committed;
    std::function<void(const Error&)> on_fatal;  // once; nothing more is committed
  };

  // How many batches may be submitted and not be committed yet.
  static std::size_t batches_at_once(DurabilityMode mode);

  Committer(storage::Storage& storage, EventHub& events, DurabilityMode mode,
            Duration sync_interval, Hooks hooks);
  ~Committer();

  // No more than batches_at_once().
  void submit(Work work);
  // The same on the caller's thread, while nothing that was submitted is under way: for a small
  // batch with nothing behind it, to which waking another thread and being woken by it would add
  // more than they save. on_committed is not called. Busy: storage is being synced, and the work is
  // as it was.
  enum class Here : std::uint8_t { committed, busy, failed };
  Here commit_here(Work& work);
  // Commits what was submitted, syncs, joins.
  void stop();

  // Fills in what it knows.
  void add_metrics(BrokerMetrics& metrics) const;

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  struct Task {
    Work work;
    std::uint64_t number{};  // in the order of submission
  };

  void run();
  std::optional<Task> wait_for_task();
  bool commit(Task& task);
  Status begin(Task& task, std::unique_ptr<storage::Storage::Commit>& commit);
  void note_commit(const Work& work, SteadyTime began);
  // Its replies leave.
  void release(Work& work);
  bool sync_if_due(bool force);
  void fail(const Error& error);

  storage::Storage& storage_;
  EventHub& events_;
  const DurabilityMode mode_;
  const std::chrono::steady_clock::duration sync_interval_;
  const Hooks hooks_;

  Turnstile beginning_;
  Turnstile finishing_;

  // Held by whoever syncs, or commits on the engine's thread.
  std::mutex syncing_;
  SteadyTime last_sync_{};  // written by the thread of `interval` mode only

  mutable std::mutex mutex_;  // taken last
  std::condition_variable wake_;
  // Protected by mutex_.
  std::deque<Work> queue_;
  std::uint64_t next_number_ = 0;
  bool failed_ = false;
  bool unsynced_ = false;
  bool stopping_ = false;
  Histogram commit_seconds_;
  Histogram batch_commands_;
  Histogram batch_bytes_;
  std::uint64_t commits_ = 0;

  std::vector<std::thread> threads_;
};

}  // namespace reprise
