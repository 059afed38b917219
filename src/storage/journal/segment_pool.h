// SegmentPool: segment files ready to be written. A file is made, filled with zeros, synced and
// named before it is needed, so that a commit finds blocks that are there already: its fdatasync
// then writes data and no metadata, and a full disk is noticed while there is still room for what
// must go on (acks). Files whose content has reached the base are used again under a new number.
//
// Numbers are given out in order and without gaps.
// Threads: any; one of its own, unless told to work in the caller's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "storage/gradual_deletion.h"
#include "storage/journal/segment.h"

namespace reprise::storage::journal {

struct SegmentPoolOptions {
  std::shared_ptr<::rocksdb::FileSystem> files;
  bool on_real_disk = true;  // `files` is the real one
  std::string directory;
  // The first segment is of the smaller size and each one doubles, so that a small directory stays
  // small.
  std::uint64_t segment_bytes_min = 1ULL << 20;
  std::uint64_t segment_bytes_max = 16ULL << 20;
  std::uint64_t kept_bytes = 64ULL << 20;  // of files that wait to be used again
  // With zeros, rather than setting their space aside: for batches that are synced one by one.
  bool fills_segments = true;
  bool background = true;
  std::function<void(const Error&)> on_failure;  // of its thread; a take() will fail with it, too
};

class SegmentPool {
 public:
  // `spares`: files ready for use, numbered from `next_number` on without a gap.
  SegmentPool(SegmentPoolOptions options, std::uint64_t next_number,
              std::vector<SegmentPtr> spares);
  ~SegmentPool();
  SegmentPool(const SegmentPool&) = delete;
  SegmentPool& operator=(const SegmentPool&) = delete;

  // The next segment, of at least this capacity. Waits for one to be ready; on a full disk for a
  // while longer.
  Result<SegmentPtr> take(std::uint64_t capacity_min);
  // Everything in it has reached the base. It is used again once nobody reads it any more.
  void give_back(SegmentPtr segment);
  // Deletes what was given back rather than using it again: nothing of what it held is left.
  void forget_content();

  // The last attempt to make a segment failed for want of space.
  bool out_of_space() const { return out_of_space_; }
  std::uint64_t bytes() const;  // of all files that it holds

 private:
  struct Spare {
    SegmentPtr segment;
    bool was_used = true;  // it may hold what it held before
  };

  void run();
  void fill(std::unique_lock<std::mutex>& lock);
  bool wants_more() const;
  Result<Spare> make(std::unique_lock<std::mutex>& lock, std::uint64_t number,
                     std::uint64_t capacity);
  SegmentPtr take_used(std::uint64_t capacity);
  Status create_file(const std::string& path, std::uint64_t capacity);
  Status sync_directory();
  void delete_file(const std::string& path);
  void delete_excess(std::uint64_t kept_bytes);
  void delete_spares(std::deque<Spare>::iterator first);
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  std::uint64_t rounded(std::uint64_t capacity) const;

  const SegmentPoolOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Protected by mutex_.
  std::deque<Spare> spares_;
  std::vector<SegmentPtr> used_;
  std::uint64_t next_number_;  // of the next spare to be made
  std::uint64_t next_capacity_;
  bool making_ = false;  // a file is being made, without the mutex
  bool stopping_ = false;
  std::optional<Error> failed_;

  // Read for every command, so that nobody may wait for whoever works on files.
  std::atomic<bool> out_of_space_{false};
  std::unique_ptr<GradualDeletion> deletion_;  // null: not on the real disk
  std::thread thread_;
};

}  // namespace reprise::storage::journal
