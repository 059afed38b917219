#include "storage/journal/segment_pool.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/thread_name.h"
#include "storage/journal/format.h"

namespace reprise::storage::journal {
namespace {

using ::rocksdb::FileOptions;
using ::rocksdb::IOOptions;
using ::rocksdb::Slice;

constexpr std::size_t kSpares = 2;
constexpr std::size_t kZeros = 256U << 10;
constexpr char kUnfinishedFileName[] = "unfinished.tmp";
constexpr std::chrono::milliseconds kSpaceRetryInterval{200};
constexpr std::chrono::seconds kQuietTime{5};
// Long enough for somebody to make room; then a clear end is better than a server that hangs.
constexpr std::chrono::seconds kSpaceWaitMax{60};

}  // namespace

SegmentPool::SegmentPool(SegmentPoolOptions options, std::uint64_t next_number,
                         std::vector<SegmentPtr> spares)
    : options_(std::move(options)),
      next_number_(next_number + spares.size()),
      next_capacity_(rounded(options_.segment_bytes_min)) {
  for (SegmentPtr& spare : spares) spares_.push_back({.segment = std::move(spare)});
  delete_file(options_.directory + "/" + kUnfinishedFileName);
  if (options_.on_real_disk && options_.background) {
    deletion_ = std::make_unique<GradualDeletion>(options_.directory, kSegmentExtension);
  }
  if (options_.background) thread_ = std::thread([this] { run(); });
}

SegmentPool::~SegmentPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Result<SegmentPtr> SegmentPool::take(std::uint64_t capacity_min) {
  std::unique_lock lock(mutex_);
  const auto has_fitting = [&] {
    return !spares_.empty() && spares_.front().segment->capacity() >= capacity_min;
  };
  // With one at hand it does not matter that another is being made.
  changed_.wait(lock, [&] { return !making_ || has_fitting(); });
  if (!spares_.empty() && !has_fitting()) {
    // A batch that no segment holds. Numbers have no gaps, so the spares make way.
    delete_spares(spares_.begin());
  }
  if (!has_fitting()) next_capacity_ = std::max(next_capacity_, rounded(capacity_min));
  const auto give_up_at = std::chrono::steady_clock::now() + kSpaceWaitMax;
  while (spares_.empty()) {
    if (failed_) return *failed_;
    if (!thread_.joinable()) {
      fill(lock);
      if (spares_.empty() && !failed_) {
        failed_ = Error{Errc::disk_full, options_.directory + ": no space left for the journal"};
      }
      continue;
    }
    changed_.notify_all();
    if (changed_.wait_until(lock, give_up_at) == std::cv_status::timeout && spares_.empty()) {
      return Error{Errc::io, options_.directory +
                                 ": no space left on the disk for the journal's next segment; "
                                 "make room and start again"};
    }
  }
  SegmentPtr segment = std::move(spares_.front().segment);
  spares_.pop_front();
  next_capacity_ =
      std::clamp(2 * segment->capacity(), options_.segment_bytes_min, options_.segment_bytes_max);
  lock.unlock();
  changed_.notify_all();
  return segment;
}

void SegmentPool::give_back(SegmentPtr segment) {
  {
    const std::lock_guard lock(mutex_);
    used_.push_back(std::move(segment));
    if (!thread_.joinable()) delete_excess(options_.kept_bytes);
  }
  changed_.notify_all();
}

void SegmentPool::forget_content() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !making_; });
  for (const SegmentPtr& segment : used_) delete_file(segment->path());
  used_.clear();
  delete_spares(std::ranges::find_if(spares_, &Spare::was_used));
  lock.unlock();
  changed_.notify_all();
  static constexpr std::atomic<bool> kNeverInterrupted{false};
  if (deletion_) deletion_->finish(kNeverInterrupted);
}

// This one and those behind it: numbers have no gaps.
void SegmentPool::delete_spares(std::deque<Spare>::iterator first) {
  if (first == spares_.end()) return;
  next_number_ = first->segment->number();
  for (auto spare = first; spare != spares_.end(); ++spare) delete_file(spare->segment->path());
  spares_.erase(first, spares_.end());
}

std::uint64_t SegmentPool::bytes() const {
  const std::lock_guard lock(mutex_);
  std::uint64_t total = 0;
  for (const SegmentPtr& segment : used_) total += segment->capacity();
  for (const Spare& spare : spares_) total += spare.segment->capacity();
  return total;
}

// Writes past the page cache are of whole blocks, up to the file's end.
std::uint64_t SegmentPool::rounded(std::uint64_t capacity) const {
  return options_.on_real_disk ? next_block(capacity) : capacity;
}

bool SegmentPool::wants_more() const { return spares_.size() < kSpares && !failed_; }

void SegmentPool::run() {
  name_this_thread("segments");
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    delete_excess(options_.kept_bytes);
    if (!wants_more()) {
      wait_for_work(lock);
      continue;
    }
    fill(lock);
    if (failed_ && options_.on_failure) {
      const Error failure = *failed_;
      lock.unlock();
      options_.on_failure(failure);
      lock.lock();
    }
    if (out_of_space_) changed_.wait_for(lock, kSpaceRetryInterval);
  }
}

// When nothing happens for a while, what waits to be used again is not worth its space.
void SegmentPool::wait_for_work(std::unique_lock<std::mutex>& lock) {
  if (used_.empty()) {
    changed_.wait(lock);
  } else if (changed_.wait_for(lock, kQuietTime) == std::cv_status::timeout) {
    delete_excess(0);
  }
}

// Makes one spare.
void SegmentPool::fill(std::unique_lock<std::mutex>& lock) {
  making_ = true;
  auto made = make(lock, next_number_, next_capacity_);
  making_ = false;
  if (made) {
    ++next_number_;
    spares_.push_back(*std::move(made));
    next_capacity_ = std::min(next_capacity_, options_.segment_bytes_max);  // one large one will do
  } else if (!out_of_space_) {
    failed_ = made.error();
  }
  changed_.notify_all();
}

// The mutex is free while files are worked on.
Result<SegmentPool::Spare> SegmentPool::make(std::unique_lock<std::mutex>& lock,
                                             std::uint64_t number, std::uint64_t capacity) {
  const SegmentPtr used = take_used(capacity);
  lock.unlock();
  const std::string path = options_.directory + "/" + segment_file_name(number);
  Status done = ok();
  bool no_space = false;
  if (used) {
    const auto renamed = options_.files->RenameFile(used->path(), path, IOOptions(), nullptr);
    if (!renamed.ok()) done = file_error(used->path(), renamed);
  } else {
    const std::string unfinished = options_.directory + "/" + kUnfinishedFileName;
    done = create_file(unfinished, capacity);
    no_space = !done && done.error().code == Errc::disk_full;
    if (done) {
      const auto renamed = options_.files->RenameFile(unfinished, path, IOOptions(), nullptr);
      if (!renamed.ok()) done = file_error(unfinished, renamed);
    } else {
      delete_file(unfinished);
    }
  }
  if (done) done = sync_directory();
  Result<SegmentPtr> segment =
      done.has_error() ? Result<SegmentPtr>(done.error())
                       : Segment::open(*options_.files, options_.on_real_disk, path, number);
  lock.lock();
  out_of_space_ = no_space;
  if (!segment) return segment.error();
  return Spare{.segment = *std::move(segment), .was_used = used != nullptr};
}

// A file that nobody reads any more and that is of the size we want.
SegmentPtr SegmentPool::take_used(std::uint64_t capacity) {
  const auto found = std::ranges::find_if(used_, [&](const SegmentPtr& segment) {
    return segment.use_count() == 1 && segment->capacity() >= capacity &&
           segment->capacity() <= rounded(options_.segment_bytes_max);
  });
  if (found == used_.end()) return nullptr;
  SegmentPtr segment = std::move(*found);
  used_.erase(found);
  return segment;
}

Status SegmentPool::create_file(const std::string& path, std::uint64_t capacity) {
  if (options_.on_real_disk) {
    return options_.fills_segments ? make_zeroed_file(path, capacity)
                                   : make_reserved_file(path, capacity);
  }
  std::unique_ptr<::rocksdb::FSWritableFile> file;
  auto status = options_.files->NewWritableFile(path, FileOptions(), &file, nullptr);
  const std::string zeros(std::min<std::uint64_t>(kZeros, capacity), '\0');
  for (std::uint64_t left = capacity; status.ok() && left > 0;) {
    const std::uint64_t bytes = std::min<std::uint64_t>(left, zeros.size());
    status = file->Append(Slice(zeros.data(), bytes), IOOptions(), nullptr);
    left -= bytes;
  }
  if (status.ok()) status = file->Sync(IOOptions(), nullptr);
  if (status.ok()) status = file->Close(IOOptions(), nullptr);
  if (status.ok()) return ok();
  return file_error(path, status);
}

Status SegmentPool::sync_directory() {
  std::unique_ptr<::rocksdb::FSDirectory> directory;
  auto status = options_.files->NewDirectory(options_.directory, IOOptions(), &directory, nullptr);
  if (status.ok()) status = directory->Fsync(IOOptions(), nullptr);
  if (!status.ok()) return file_error(options_.directory, status);
  return ok();
}

// Best effort: what stays behind is found at the next start.
void SegmentPool::delete_file(const std::string& path) {
  if (deletion_ && deletion_->take(path)) return;
  options_.files->DeleteFile(path, IOOptions(), nullptr).PermitUncheckedError();
}

void SegmentPool::delete_excess(std::uint64_t kept_bytes) {
  std::uint64_t kept = 0;
  std::erase_if(used_, [&](const SegmentPtr& segment) {
    if (segment.use_count() > 1) return false;  // somebody reads it
    const bool keep = segment->capacity() >= next_capacity_ &&
                      segment->capacity() <= rounded(options_.segment_bytes_max) &&
                      kept < kept_bytes;
    if (keep) {
      kept += segment->capacity();
    } else {
      delete_file(segment->path());
    }
    return !keep;
  });
}

}  // namespace reprise::storage::journal
