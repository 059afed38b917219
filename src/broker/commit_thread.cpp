#include "broker/commit_thread.h"

#include <utility>

#include "base/check.h"
#include "base/thread_name.h"

namespace reprise {
namespace {

Histogram make_histogram(std::vector<double> upper_bounds) {
  const std::size_t buckets = upper_bounds.size() + 1;
  return {.upper_bounds = std::move(upper_bounds), .counts = std::vector<std::uint64_t>(buckets)};
}

}  // namespace

CommitThread::CommitThread(storage::Storage& storage, EventHub& events, DurabilityMode mode,
                           Duration sync_interval, Hooks hooks)
    : storage_(storage),
      events_(events),
      mode_(mode),
      sync_interval_(sync_interval),
      hooks_(std::move(hooks)),
      commit_seconds_(make_histogram({0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                      0.05, 0.1, 0.25, 0.5, 1, 2.5})),
      batch_commands_(make_histogram({1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096})),
      batch_bytes_(
          make_histogram({256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216})),
      thread_([this] { run(); }) {}

CommitThread::~CommitThread() { stop(); }

void CommitThread::submit(Work work) {
  {
    const std::lock_guard lock(mutex_);
    REPRISE_CHECK(!next_);
    next_ = std::move(work);
  }
  wake_.notify_one();
}

CommitThread::Here CommitThread::commit_here(Work& work) {
  std::unique_lock writing(writing_, std::try_to_lock);
  if (!writing) return Here::busy;
  if (!write(work)) return Here::failed;
  writing.unlock();
  release(work);
  return Here::committed;
}

void CommitThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void CommitThread::run() {
  name_this_thread("commit");
  while (auto work = wait_for_work()) {
    {
      const std::lock_guard writing(writing_);
      if (!write(*work)) return;
    }
    release(*work);
    if (!sync_if_due(false)) return;
    const std::uint64_t number = work->batch.number;
    work.reset();  // payloads are freed before the engine is told that it may fill the next batch
    hooks_.on_committed(number);
  }
  sync_if_due(true);
}

// Empty: stop. In interval mode it wakes up to sync what was buffered, even if nothing follows.
std::optional<CommitThread::Work> CommitThread::wait_for_work() {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return next_ || stopping_; };
  while (!ready()) {
    if (mode_ != DurabilityMode::interval || !unsynced_) {
      wake_.wait(lock);
    } else if (!wake_.wait_until(lock, last_sync_ + sync_interval_, ready)) {
      lock.unlock();
      if (!sync_if_due(false)) return std::nullopt;
      lock.lock();
    }
  }
  return std::exchange(next_, std::nullopt);
}

// Under writing_.
bool CommitThread::write(Work& work) {
  if (failed_) return false;
  if (work.batch.changes.empty()) return true;
  const auto started = std::chrono::steady_clock::now();
  const auto durability =
      mode_ == DurabilityMode::sync ? storage::Durability::synced : storage::Durability::buffered;
  if (const Status done = BrokerCore::commit(storage_, work.batch.changes, durability); !done) {
    fail(done.error());
    return false;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  const std::size_t bytes = work.batch.changes.encoded.byte_size();
  const std::lock_guard lock(mutex_);
  const bool was_synced = !std::exchange(unsynced_, durability == storage::Durability::buffered);
  // Written by another than the thread, which must know that there is something to sync.
  if (unsynced_ && was_synced && mode_ == DurabilityMode::interval) wake_.notify_one();
  ++commits_;
  commit_seconds_.observe(took.count());
  batch_commands_.observe(static_cast<double>(work.commands));
  batch_bytes_.observe(static_cast<double>(bytes));
  return true;
}

void CommitThread::release(Work& work) {
  for (Reply& reply : work.replies) reply();
  events_.publish(work.batch.events);
}

bool CommitThread::sync_if_due(bool force) {
  const std::lock_guard writing(writing_);
  if (failed_) return false;  // a failed sync is never tried again
  const auto now = std::chrono::steady_clock::now();
  const bool due = mode_ == DurabilityMode::interval && now - last_sync_ >= sync_interval_;
  {
    const std::lock_guard lock(mutex_);
    if (!unsynced_ || !(due || force)) return true;
  }
  if (const Status synced = storage_.sync(); !synced) {
    fail(synced.error());
    return false;
  }
  last_sync_ = now;
  const std::lock_guard lock(mutex_);
  unsynced_ = false;
  return true;
}

void CommitThread::fail(const Error& error) {
  failed_ = true;
  hooks_.on_fatal(error);
}

void CommitThread::add_metrics(BrokerMetrics& metrics) const {
  const std::lock_guard lock(mutex_);
  metrics.commits = commits_;
  metrics.commit_seconds = commit_seconds_;
  metrics.batch_commands = batch_commands_;
  metrics.batch_bytes = batch_bytes_;
}

}  // namespace reprise
