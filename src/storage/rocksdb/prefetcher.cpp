#include "storage/rocksdb/prefetcher.h"

#include <memory>
#include <utility>

#include "base/thread_name.h"

namespace reprise::storage {
namespace {

using ::rocksdb::Slice;

constexpr std::size_t kRangesMax = 8;
// Of one range: the cache holds several, and the rest of what is in use.
constexpr std::size_t kBytesMax = 2U << 20;
// Of one read, which goes past the page cache: a good part of a range, and hardly more than it.
constexpr std::size_t kReadBytes = 256U << 10;

}  // namespace

Prefetcher::Prefetcher(const Database& database)
    : database_(database), thread_([this] { run(); }) {}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetcher::add(Keyspace keyspace, std::string_view begin, std::string_view end) {
  {
    const std::lock_guard lock(mutex_);
    if (ranges_.size() >= kRangesMax) return;
    ranges_.push_back({keyspace, std::string(begin), std::string(end)});
  }
  changed_.notify_all();
}

std::uint64_t Prefetcher::done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

void Prefetcher::run() {
  name_this_thread("prefetch");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !ranges_.empty(); });
    if (stopping_) return;
    const Range range = std::move(ranges_.front());
    ranges_.pop_front();
    lock.unlock();
    read(range);
    lock.lock();
    ++done_;
  }
}

void Prefetcher::read(const Range& range) const {
  const Slice end(range.end);
  ::rocksdb::ReadOptions options;
  options.iterate_upper_bound = &end;
  options.readahead_size = kReadBytes;
  const std::unique_ptr<::rocksdb::Iterator> at(
      database_->NewIterator(options, database_.family(range.keyspace)));
  std::size_t bytes = 0;
  for (at->Seek(range.begin); at->Valid() && bytes < kBytesMax; at->Next()) {
    bytes += at->value().size();
  }
}

}  // namespace reprise::storage
