#include "broker/committer.h"

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

// Whether this thread will look at the queue by itself.
thread_local bool looks_at_queue = false;

void Turnstile::wait_for(std::uint64_t number) {
  std::unique_lock lock(mutex_);
  passed_.wait(lock, [&] { return next_ == number; });
}

void Turnstile::pass() {
  {
    const std::lock_guard lock(mutex_);
    ++next_;
  }
  passed_.notify_all();
}

std::size_t Committer::batches_at_once(DurabilityMode mode) {
  return mode == DurabilityMode::sync ? 2 : 1;
}

Committer::Committer(storage::Storage& storage, EventHub& events, DurabilityMode mode,
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
          make_histogram({256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216})) {
  for (std::size_t i = 0; i < batches_at_once(mode); ++i) {
    threads_.emplace_back([this] { run(); });
  }
}

Committer::~Committer() { stop(); }

void Committer::submit(Work work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
  }
  if (!looks_at_queue) wake_.notify_one();
}

Committer::Here Committer::commit_here(Work& work) {
  const std::unique_lock alone(syncing_, std::try_to_lock);
  if (!alone) return Here::busy;
  Task task;
  {
    const std::lock_guard lock(mutex_);
    REPRISE_CHECK(queue_.empty());
    task.number = next_number_++;
  }
  task.work = std::move(work);
  const bool done = commit(task);
  finishing_.pass();
  work = std::move(task.work);
  return done ? Here::committed : Here::failed;
}

void Committer::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Committer::run() {
  name_this_thread("commit");
  looks_at_queue = true;
  while (auto task = wait_for_task()) {
    const bool done = commit(*task) && sync_if_due(false);
    if (done) {
      const std::uint64_t number = task->work.batch.number;
      task.reset();  // payloads are freed before the engine is told that it may fill the next batch
      hooks_.on_committed(number);
    }
    finishing_.pass();
  }
  sync_if_due(true);
}

// Empty: stop. In interval mode it wakes up to sync what was buffered, even if nothing follows.
std::optional<Committer::Task> Committer::wait_for_task() {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return !queue_.empty() || stopping_ || failed_; };
  while (!ready()) {
    if (mode_ != DurabilityMode::interval || !unsynced_) {
      wake_.wait(lock);
    } else if (!wake_.wait_until(lock, last_sync_ + sync_interval_, ready)) {
      lock.unlock();
      if (!sync_if_due(false)) return std::nullopt;
      lock.lock();
    }
  }
  if (failed_ || queue_.empty()) return std::nullopt;
  Task task{.work = std::move(queue_.front()), .number = next_number_++};
  queue_.pop_front();
  return task;
}

// On return it is this task's turn to finish, until the turnstile is passed.
bool Committer::commit(Task& task) {
  const auto began = std::chrono::steady_clock::now();
  encode(task.work.batch.changes);
  std::unique_ptr<storage::Storage::Commit> commit;
  beginning_.wait_for(task.number);
  Status done = begin(task, commit);
  beginning_.pass();
  if (commit) commit->write();
  finishing_.wait_for(task.number);
  if (commit) done = commit->finish();
  if (!done) {
    fail(done.error());
    return false;
  }
  if (commit) note_commit(task.work, began);
  release(task.work);
  return true;
}

// None: there is nothing to write.
Status Committer::begin(Task& task, std::unique_ptr<storage::Storage::Commit>& commit) {
  const storage::Batch& encoded = task.work.batch.changes.encoded;
  if (encoded.empty()) return ok();
  auto begun =
      storage_.begin_commit(encoded, mode_ == DurabilityMode::sync ? storage::Durability::synced
                                                                   : storage::Durability::buffered);
  if (!begun) return begun.error();
  commit = *std::move(begun);
  return ok();
}

void Committer::note_commit(const Work& work, SteadyTime began) {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  const std::lock_guard lock(mutex_);
  const bool was_synced = !std::exchange(unsynced_, mode_ != DurabilityMode::sync);
  // Written by another than the thread, which must know that there is something to sync.
  if (unsynced_ && was_synced && mode_ == DurabilityMode::interval) wake_.notify_one();
  ++commits_;
  commit_seconds_.observe(took.count());
  batch_commands_.observe(static_cast<double>(work.commands));
  batch_bytes_.observe(static_cast<double>(work.batch.changes.encoded.byte_size()));
}

void Committer::release(Work& work) {
  for (Reply& reply : work.replies) reply();
  events_.publish(work.batch.events);
}

// False: storage has failed.
bool Committer::sync_if_due(bool force) {
  if (mode_ == DurabilityMode::sync) return true;
  const std::lock_guard alone(syncing_);
  const auto now = std::chrono::steady_clock::now();
  const bool due = mode_ == DurabilityMode::interval && now - last_sync_ >= sync_interval_;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return false;  // a failed sync is never tried again
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

void Committer::fail(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(failed_, true)) return;
  }
  wake_.notify_all();
  hooks_.on_fatal(error);
}

void Committer::add_metrics(BrokerMetrics& metrics) const {
  const std::lock_guard lock(mutex_);
  metrics.commits = commits_;
  metrics.commit_seconds = commit_seconds_;
  metrics.batch_commands = batch_commands_;
  metrics.batch_bytes = batch_bytes_;
}

}  // namespace reprise
