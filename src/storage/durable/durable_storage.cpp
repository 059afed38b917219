#include "storage/durable/durable_storage.h"

#include <rocksdb/env.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/free_memory.h"
#include "base/thread_name.h"
#include "storage/durable/backup.h"
#include "storage/durable/base_chunks.h"
#include "storage/durable/checkpoint.h"
#include "storage/durable/merged_cursor.h"
#include "storage/durable/opening.h"
#include "storage/durable/overlay_view.h"
#include "storage/live_jobs.h"
#include "storage/rocksdb/prefetcher.h"
#include "storage/rocksdb/reclaim.h"

namespace reprise::storage {
namespace {

constexpr std::chrono::milliseconds kSpaceRetryInterval{500};
// What may gather while a checkpoint runs, in overlays. Values are in the journal, so it is only
// keys that take memory; but a start has to read it. A short flood passes beside a checkpoint that
// takes its time, a longer one makes it hurry (see Pace), and commits keep to its speed in the end.
constexpr double kSlowFrom = 1.75;
constexpr double kOverlaysMax = 3;
constexpr std::chrono::milliseconds kPauseMin{1};
constexpr std::chrono::milliseconds kPauseMax{8};
constexpr double kUsualDelay = 1.15;     // a checkpoint takes up to that times as long as the last
constexpr double kLateCheckpoint = 0.1;  // of its expected time is left when that is over
constexpr std::chrono::seconds kQuietTime{1};
constexpr std::chrono::seconds kTrimInterval{10};
// A checkpoint waits this long for short readers to end.
constexpr int kLookBackTries = 20;
constexpr std::chrono::milliseconds kLookBackPause{1};
// Of a batch that is the first of its segment: the one before could be given back from then on.
constexpr std::uint64_t kFirstBodyOffset =
    journal::kSegmentHeaderBytes + journal::kFrameHeaderBytes;

class DurableSnapshot;

class DurableStorage final : public Storage {
 public:
  DurableStorage(const DurableOptions& options, OpenParts parts)
      : options_(options),
        directory_(std::move(parts.directory)),
        lock_(std::move(parts.lock)),
        base_(std::move(parts.base)),
        journal_(std::move(parts.journal)),
        active_(std::move(parts.overlay)) {
    if (!options_.background) return;
    prefetcher_ = std::make_unique<Prefetcher>(*base_);
    checkpointer_ = std::thread([this] { run_checkpoints(); });
  }
  ~DurableStorage() override;
  DurableStorage(const DurableStorage&) = delete;
  DurableStorage& operator=(const DurableStorage&) = delete;

  Result<std::unique_ptr<Commit>> begin_commit(const Batch& batch, Durability durability) override;
  Status sync() override;
  Result<std::optional<std::string>> get(Keyspace keyspace, std::string_view key) const override;
  Status scan(Keyspace keyspace, std::string_view begin, std::string_view end,
              const Visit& visit) const override;
  std::unique_ptr<Snapshot> snapshot() const override;
  void prefetch(Keyspace keyspace, std::string_view begin, std::string_view end) const override {
    if (prefetcher_) prefetcher_->add(keyspace, begin, end);
  }
  Status visit_live_jobs(LiveJobVisitor& visitor) const override;
  Result<std::uint64_t> backup(const std::string& directory) override;
  Status reclaim(Keyspace keyspace, std::string_view begin, std::string_view end) override;
  void interrupt_maintenance() override { interrupted_ = true; }
  std::string_view kind() const override { return "rocksdb"; }
  std::uint64_t disk_bytes() const override { return base_->disk_bytes() + journal_->disk_bytes(); }
  bool out_of_space() const override {
    return checkpoint_out_of_space_ || journal_->out_of_space();
  }

 private:
  friend class DurableSnapshot;
  friend class DurableCommit;
  using CommitLock = std::unique_lock<std::mutex>;
  using Clock = std::chrono::steady_clock;

  Status finish_commit(const journal::Journal::Place& place, const Batch& batch, Status written);
  void wait_for_commits(CommitLock& lock);
  bool wants_checkpoint() const;
  void wait_for_room(CommitLock& lock, std::size_t batch_bytes);
  Clock::duration pause_for(std::size_t batch_bytes, double gathered) const;
  template <class Done>
  void pay_pause(CommitLock& lock, const Done& done);
  bool wait_for_frozen(CommitLock& lock);
  void tidy_up(CommitLock& lock);
  void fail(const Error& error);
  Status freeze();
  Status checkpoint_now();
  Status empty_journal();
  Status checkpoint_active(CommitLock& lock);
  Status finish_checkpoint(CommitLock& lock);
  Status finish_checkpoints(CommitLock& lock);
  Result<std::unique_ptr<PinnedBase>> pin_base();
  Status run_checkpoint();
  bool nobody_looks_back(std::uint64_t batch) const;
  void run_checkpoints();
  std::shared_ptr<const Overlay> frozen() const {
    const std::shared_lock lock(state_mutex_);
    return frozen_;
  }
  bool active_is_empty() const {
    const std::shared_lock lock(state_mutex_);
    return active_->empty();
  }
  // Up to here everything is in an overlay, or in the base.
  std::uint64_t last_applied_batch() const {
    const std::shared_lock lock(state_mutex_);
    return active_->last_batch();
  }

  const DurableOptions options_;
  const OpenDirectory directory_;
  const std::optional<DirectoryLock> lock_;  // first in, last out
  const std::unique_ptr<Database> base_;
  const std::unique_ptr<journal::Journal> journal_;

  // Whoever commits, or makes the overlay that is being written the next checkpoint's.
  // Before state_mutex_, when both are taken.
  std::mutex commit_mutex_;
  std::condition_variable checkpoint_wanted_;  // with commit_mutex_
  std::condition_variable checkpoint_done_;    // with commit_mutex_
  std::condition_variable commit_done_;        // with commit_mutex_
  int commits_under_way_ = 0;                  // protected by commit_mutex_
  bool stopping_ = false;                      // protected by commit_mutex_
  std::optional<Error> background_failure_;    // protected by commit_mutex_
  bool has_garbage_ = false;                   // protected by commit_mutex_
  int checkpoint_waiters_ = 0;                 // protected by commit_mutex_
  Clock::duration pause_owed_{};               // protected by commit_mutex_
  Clock::time_point pause_ends_;               // protected by commit_mutex_
  // When the last checkpoint began, and what it had to write; protected by commit_mutex_.
  Clock::time_point frozen_at_;
  std::uint64_t frozen_bytes_ = 0;
  // How fast the last checkpoint was; protected by commit_mutex_.
  std::chrono::duration<double> checkpoint_time_per_byte_{0};

  mutable std::shared_mutex state_mutex_;
  // Protected by state_mutex_: which overlays there are, and what the active one holds. A frozen
  // one does not change any more.
  std::shared_ptr<Overlay> active_;
  std::shared_ptr<const Overlay> frozen_;            // null: no checkpoint is under way
  mutable std::multiset<std::uint64_t> open_views_;  // of the snapshots that are held

  std::atomic<bool> checkpoint_out_of_space_{false};
  Pace pace_;  // of the checkpoint that runs
  // One reclaim at a time; before base_mutex_, when both are taken.
  std::mutex reclaim_mutex_;
  std::mutex base_mutex_;  // one checkpoint, or look at what the base consists of, at a time
  std::atomic<bool> interrupted_{false};

  std::unique_ptr<Prefetcher> prefetcher_;  // null: not in the background
  std::thread checkpointer_;
};

// --- Views ------------------------------------------------------------------------------------

class DurableSnapshot final : public Storage::Snapshot {
 public:
  explicit DurableSnapshot(const DurableStorage& storage)
      : storage_(storage),
        active_(register_view()),
        overlays_(layers(), view_, &storage.state_mutex_) {}
  ~DurableSnapshot() override {
    (*storage_.base_)->ReleaseSnapshot(base_snapshot_);
    const std::unique_lock lock(storage_.state_mutex_);
    active_->remove_view(view_);
    storage_.open_views_.erase(storage_.open_views_.find(view_));
  }
  DurableSnapshot(const DurableSnapshot&) = delete;
  DurableSnapshot& operator=(const DurableSnapshot&) = delete;

  std::unique_ptr<Storage::Cursor> cursor(Keyspace keyspace, std::string_view begin,
                                          std::string_view end) const override {
    return make_merged_cursor(*storage_.base_, base_snapshot_, overlays_, keyspace, begin, end);
  }
  Result<std::optional<std::string>> get(Keyspace keyspace, std::string_view key) const override {
    if (const auto found = overlays_.find(keyspace, key)) {
      if (found->erased) return std::optional<std::string>();
      auto value = read_value(found->place);
      if (!value) return value.error();
      return std::optional(*std::move(value));
    }
    ::rocksdb::ReadOptions options;
    options.snapshot = base_snapshot_;
    return storage_.base_->read(options, storage_.base_->family(keyspace), key);
  }
  Status visit_live_jobs(LiveJobVisitor& visitor) const {
    return storage::visit_live_jobs(BaseChunks(*storage_.base_, base_snapshot_), overlays_,
                                    visitor);
  }

 private:
  // All in one step, so that what it sees belongs together.
  std::shared_ptr<Overlay> register_view() {
    const std::unique_lock lock(storage_.state_mutex_);
    frozen_ = storage_.frozen_;
    view_ = storage_.active_->last_batch();
    storage_.active_->add_view(view_);
    storage_.open_views_.insert(view_);
    base_snapshot_ = (*storage_.base_)->GetSnapshot();
    return storage_.active_;
  }
  OverlayView::Layers layers() const {
    OverlayView::Layers layers{active_};
    if (frozen_) layers.push_back(frozen_);
    return layers;
  }

  const DurableStorage& storage_;
  // Set by register_view(), so declared before what it fills in last.
  std::shared_ptr<const Overlay> frozen_;
  std::uint64_t view_ = 0;
  const ::rocksdb::Snapshot* base_snapshot_ = nullptr;
  const std::shared_ptr<Overlay> active_;
  const OverlayView overlays_;
};

std::unique_ptr<Storage::Snapshot> DurableStorage::snapshot() const {
  return std::make_unique<DurableSnapshot>(*this);
}

Result<std::optional<std::string>> DurableStorage::get(Keyspace keyspace,
                                                       std::string_view key) const {
  std::shared_ptr<const Overlay> holder;  // keeps the segment that the value is in
  std::optional<Overlay::Found> found;
  {
    const std::shared_lock lock(state_mutex_);
    found = active_->find(keyspace, key, kLatestView);
    if (found) {
      holder = active_;
    } else if (frozen_ && (found = frozen_->find(keyspace, key, kLatestView))) {
      holder = frozen_;
    }
  }
  if (!found) return base_->read({}, base_->family(keyspace), key);
  if (found->erased) return std::optional<std::string>();
  auto value = read_value(found->place);
  if (!value) return value.error();
  return std::optional(*std::move(value));
}

Status DurableStorage::scan(Keyspace keyspace, std::string_view begin, std::string_view end,
                            const Visit& visit) const {
  const DurableSnapshot view(*this);
  const auto at = view.cursor(keyspace, begin, end);
  while (at->valid() && visit(at->key(), at->value())) at->next();
  return at->status();
}

Status DurableStorage::visit_live_jobs(LiveJobVisitor& visitor) const {
  return DurableSnapshot(*this).visit_live_jobs(visitor);
}

// --- Commits ----------------------------------------------------------------------------------

class DurableCommit final : public Storage::Commit {
 public:
  DurableCommit(DurableStorage& storage, journal::Journal::Place place, const Batch& batch)
      : storage_(storage), place_(std::move(place)), batch_(batch) {}

  void write() override {
    written_ = storage_.journal_->write(place_, batch_.bytes(),
                                        static_cast<std::uint32_t>(batch_.count()));
  }
  Status finish() override { return storage_.finish_commit(place_, batch_, std::move(written_)); }

 private:
  DurableStorage& storage_;
  const journal::Journal::Place place_;
  const Batch& batch_;
  Status written_;
};

Result<std::unique_ptr<Storage::Commit>> DurableStorage::begin_commit(const Batch& batch,
                                                                      Durability durability) {
  const bool durably = durability == Durability::synced;
  CommitLock lock(commit_mutex_);
  wait_for_room(lock, batch.byte_size());
  commit_done_.wait(lock, [&] { return journal_->has_place_for(batch.byte_size(), durably); });
  if (background_failure_) return *background_failure_;
  auto place = journal_->place(batch.bytes(), static_cast<std::uint32_t>(batch.count()), durably);
  if (!place) return place.error();
  ++commits_under_way_;
  return std::unique_ptr<Commit>(std::make_unique<DurableCommit>(*this, *std::move(place), batch));
}

Status DurableStorage::finish_commit(const journal::Journal::Place& place, const Batch& batch,
                                     Status written) {
  CommitLock lock(commit_mutex_);
  const Status ended = journal_->end(place, std::move(written));
  if (ended) {
    lock.unlock();  // others may begin meanwhile
    {
      const std::unique_lock state(state_mutex_);
      const bool whole = active_->apply(
          {.number = place.batch, .segment = place.segment, .body_offset = place.body_offset()},
          batch.bytes(), batch.count());
      REPRISE_CHECK(whole);
    }
    lock.lock();
  }
  --commits_under_way_;
  commit_done_.notify_all();
  if (!ended) return ended;
  if (!wants_checkpoint()) {
    if (place.body_offset() == kFirstBodyOffset) checkpoint_wanted_.notify_one();
    return ok();
  }
  REPRISE_TRY(freeze());
  if (options_.background) {
    checkpoint_wanted_.notify_one();
    return ok();
  }
  if (const Status done = run_checkpoint(); !done) {
    if (done.error().code == Errc::disk_full) return ok();  // tried again with the next commit
    fail(done.error());
  }
  return ok();  // the batch itself is committed
}

// Nothing is under way, and nothing begins while the lock is held.
void DurableStorage::wait_for_commits(CommitLock& lock) {
  commit_done_.wait(lock, [this] { return commits_under_way_ == 0; });
}

Status DurableStorage::sync() {
  const CommitLock lock(commit_mutex_);
  if (background_failure_) return *background_failure_;
  return journal_->sync();
}

// --- Checkpoints ------------------------------------------------------------------------------

bool DurableStorage::wants_checkpoint() const {
  const std::shared_lock lock(state_mutex_);
  if (frozen_) return !options_.background;  // one that ran out of space
  return active_->bytes() >= options_.overlay_bytes ||
         (!active_->empty() && journal_->releasable_bytes() >= options_.journal_bytes);
}

// A checkpoint that does not keep up slows commits down to its own speed, little by little, and
// holds them back in the end, so that memory stays bounded. One that waits for space does not: then
// only what frees space is let in from above.
void DurableStorage::wait_for_room(CommitLock& lock, std::size_t batch_bytes) {
  if (!options_.background) return;
  const auto gathered = [this] {
    const std::shared_lock state(state_mutex_);
    if (!frozen_ || checkpoint_out_of_space_) return 0.0;
    return static_cast<double>(active_->bytes()) / static_cast<double>(options_.overlay_bytes);
  };
  pace_.set_awaited(checkpoint_waiters_ > 0);
  pace_.set_gathered(gathered());
  const auto has_room = [&] {
    return background_failure_ || stopping_ || gathered() < kOverlaysMax;
  };
  if (const double now = gathered(); now > kSlowFrom) {
    pause_owed_ += pause_for(batch_bytes, now);
    pay_pause(lock, [&] { return stopping_ || gathered() < kSlowFrom; });
  }
  checkpoint_done_.wait(lock, has_room);
}

// A sleep takes some tenths of a millisecond longer than it should, so short ones are put together,
// and what was too long is given back.
template <class Done>
void DurableStorage::pay_pause(CommitLock& lock, const Done& done) {
  if (pause_owed_ < kPauseMin) return;
  // Behind that of a batch beside it: two that pause at the same time would have half the effect.
  pause_ends_ = std::max(pause_ends_, Clock::now()) + std::exchange(pause_owed_, {});
  const Clock::time_point end = pause_ends_;
  if (!checkpoint_done_.wait_until(lock, end, done)) pause_owed_ -= Clock::now() - end;
}

// Needs commit_mutex_. Of the time that the checkpoint still takes, about, as large a part as the
// batch takes of the room that is left: there should be some until the end.
DurableStorage::Clock::duration DurableStorage::pause_for(std::size_t batch_bytes,
                                                          double gathered) const {
  const auto expected =
      kUsualDelay * checkpoint_time_per_byte_ * static_cast<double>(frozen_bytes_);
  const std::chrono::duration<double> passed = Clock::now() - frozen_at_;
  const auto left = std::max(expected - passed, expected * kLateCheckpoint);
  const double room = (kOverlaysMax - gathered) * static_cast<double>(options_.overlay_bytes) /
                      static_cast<double>(std::max<std::size_t>(batch_bytes, 1));
  return std::chrono::duration_cast<Clock::duration>(
      std::min<std::chrono::duration<double>>(left / std::max(room, 1.0), kPauseMax));
}

// Needs commit_mutex_. What is active becomes the next checkpoint's.
Status DurableStorage::freeze() {
  if (frozen()) return ok();
  // The base must not be ahead of what the journal is sure to have.
  REPRISE_TRY(journal_->sync());
  const std::unique_lock lock(state_mutex_);
  frozen_ = active_;
  frozen_at_ = Clock::now();
  frozen_bytes_ = frozen_->bytes();
  active_ = std::make_shared<Overlay>(frozen_->last_batch(), frozen_->seq_highest());
  return ok();
}

// Writes the frozen overlay. Errc::disk_full: it stays where it is.
Status DurableStorage::run_checkpoint() {
  const auto overlay = frozen();
  if (!overlay) return ok();
  {
    const std::lock_guard alone(base_mutex_);
    const Status written =
        write_checkpoint(*base_, directory_.paths.checkpoint, directory_.id, overlay, pace_,
                         [&] { return nobody_looks_back(overlay->last_batch()); });
    checkpoint_out_of_space_ = !written && written.error().code == Errc::disk_full;
    if (!written) return written;
  }
  {
    const std::unique_lock lock(state_mutex_);
    frozen_.reset();
  }
  journal_->release(overlay->last_batch());
  return ok();
}

// Whether every snapshot that is open shows this batch, which is frozen: those to come do. The
// engine's are held for less than a millisecond, but follow one another closely.
bool DurableStorage::nobody_looks_back(std::uint64_t batch) const {
  const int tries = options_.background ? kLookBackTries : 1;
  for (int i = 0; i < tries; ++i) {
    if (i > 0) std::this_thread::sleep_for(kLookBackPause);
    const std::shared_lock lock(state_mutex_);
    if (open_views_.empty() || *open_views_.begin() >= batch) return true;
  }
  return false;
}

void DurableStorage::run_checkpoints() {
  name_this_thread("checkpoint");
  lower_this_thread_priority();
  auto last_trim = Clock::now();
  CommitLock lock(commit_mutex_);
  while (wait_for_frozen(lock)) {
    const std::uint64_t bytes = frozen()->bytes();
    const auto began = Clock::now();
    lock.unlock();
    const Status done = run_checkpoint();
    const bool no_space = !done && done.error().code == Errc::disk_full;
    // A compaction that met a full disk has stopped the base; it goes on when it is told to.
    if (no_space) (void)(*base_)->Resume();
    const bool trims = began - last_trim > kTrimInterval;
    if (trims) {
      give_back_free_memory();
      last_trim = began;
    }
    lock.lock();
    has_garbage_ = !trims;
    if (done) {
      checkpoint_time_per_byte_ =
          (Clock::now() - began) / static_cast<double>(std::max<std::uint64_t>(bytes, 1));
    } else if (!no_space) {
      fail(done.error());
    }
    checkpoint_done_.notify_all();
    if (background_failure_) return;
    // What has gathered meanwhile, whether or not another commit comes.
    if (done && wants_checkpoint()) {
      if (const Status frozen = freeze(); !frozen) fail(frozen.error());
    }
    if (no_space) {
      checkpoint_wanted_.wait_for(lock, kSpaceRetryInterval, [this] { return stopping_; });
    }
  }
}

// False: stop. In quiet times it tidies up: memory that checkpoints have left, and a journal that a
// start would have to read.
bool DurableStorage::wait_for_frozen(CommitLock& lock) {
  const auto wanted = [this] { return stopping_ || background_failure_ || frozen(); };
  const auto can_tidy = [this] { return has_garbage_ || journal_->releasable_bytes() > 0; };
  while (!wanted()) {
    checkpoint_wanted_.wait(lock, [&] { return wanted() || can_tidy(); });
    const std::uint64_t last_batch = journal_->last_batch();
    const bool is_quiet = !checkpoint_wanted_.wait_for(
        lock, kQuietTime, [&] { return wanted() || journal_->last_batch() != last_batch; });
    if (is_quiet) tidy_up(lock);
  }
  return frozen() && !stopping_ && !background_failure_;
}

void DurableStorage::tidy_up(CommitLock& lock) {
  const bool is_written = active_is_empty();
  // First what leaves more memory behind.
  if (!is_written && journal_->releasable_bytes() > 0) {
    pace_.set_awaited(true);  // there are no commits to make way for
    if (const Status done = freeze(); !done) fail(done.error());
  } else if (std::exchange(has_garbage_, false)) {
    lock.unlock();
    give_back_free_memory();
    lock.lock();
  } else if (is_written) {
    journal_->release(last_applied_batch());
  }
}

// Needs commit_mutex_.
void DurableStorage::fail(const Error& error) {
  background_failure_ = error;
  if (options_.on_failure) options_.on_failure(error);
}

// Brings all that is committed into the base.
Status DurableStorage::checkpoint_now() {
  CommitLock lock(commit_mutex_);
  REPRISE_TRY(finish_checkpoints(lock));
  return checkpoint_active(lock);
}

// The same, and nothing of it is left in the journal's segments when they are forgotten once more.
Status DurableStorage::empty_journal() {
  CommitLock lock(commit_mutex_);
  REPRISE_TRY(finish_checkpoints(lock));
  wait_for_commits(lock);
  journal_->forget_released();  // the next segment must not be a file that was used before
  REPRISE_TRY(journal_->rotate());
  if (!active_is_empty()) return checkpoint_active(lock);
  journal_->release(last_applied_batch());
  return ok();
}

// Until none is under way: one that is has less in it than what is committed.
Status DurableStorage::finish_checkpoints(CommitLock& lock) {
  while (frozen()) REPRISE_TRY(finish_checkpoint(lock));
  return ok();
}

Status DurableStorage::checkpoint_active(CommitLock& lock) {
  if (active_is_empty()) return ok();
  REPRISE_TRY(freeze());
  return finish_checkpoint(lock);
}

// Waits for the overlay that is frozen now, not for those that follow it under load.
Status DurableStorage::finish_checkpoint(CommitLock& lock) {
  const auto overlay = frozen();
  if (!overlay) return ok();
  if (!options_.background) {
    REPRISE_TRY(run_checkpoint());
  } else {
    ++checkpoint_waiters_;
    pace_.set_awaited(true);
    checkpoint_wanted_.notify_one();
    checkpoint_done_.wait(lock, [&] {
      return background_failure_ || stopping_ || checkpoint_out_of_space_ || frozen() != overlay;
    });
    --checkpoint_waiters_;
  }
  if (background_failure_) return *background_failure_;
  if (frozen() != overlay) return ok();
  return Error{Errc::disk_full, directory_.paths.path + ": no space left for a checkpoint"};
}

Status DurableStorage::reclaim(Keyspace keyspace, std::string_view begin, std::string_view end) {
  const std::lock_guard lock(reclaim_mutex_);
  if (interrupted_) return ok();
  REPRISE_TRY(empty_journal());
  journal_->forget_released();
  return reclaim_range(*base_, keyspace, begin, end, interrupted_);
}

Result<std::uint64_t> DurableStorage::backup(const std::string& directory) {
  REPRISE_TRY(check_backup_directory(directory, options_));
  REPRISE_TRY(checkpoint_now());
  const auto pinned = pin_base();
  if (!pinned) return pinned.error();
  return write_backup(**pinned, directory, options_, interrupted_);
}

Result<std::unique_ptr<PinnedBase>> DurableStorage::pin_base() {
  const std::lock_guard no_reclaim(reclaim_mutex_);
  const std::lock_guard no_checkpoint(base_mutex_);
  return PinnedBase::make(*base_);
}

DurableStorage::~DurableStorage() {
  {
    const std::lock_guard lock(commit_mutex_);
    stopping_ = true;
    pace_.set_awaited(true);
  }
  checkpoint_wanted_.notify_all();
  checkpoint_done_.notify_all();
  if (checkpointer_.joinable()) checkpointer_.join();
}

}  // namespace

Result<std::unique_ptr<Storage>> open_durable_storage(const DurableOptions& options) {
  auto parts = open_parts(options);
  if (!parts) return parts.error();
  return std::unique_ptr<Storage>(std::make_unique<DurableStorage>(options, *std::move(parts)));
}

}  // namespace reprise::storage
