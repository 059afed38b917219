// Journal: the commit point. Batches are appended in order; a batch is durable when sync() after it
// has returned. What reached the base is released and its space used again.
//
// After the first failed write or sync every call fails with that error: nothing is known then
// about what the disk has, and a second fsync may succeed without the data being there. Threads:
// append(), sync() and rotate() from one thread at a time; the rest from any.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/journal/format.h"
#include "storage/journal/segment.h"
#include "storage/journal/segment_pool.h"
#include "storage/journal/synced_mark.h"

namespace reprise::storage::journal {

// What is in the directory already; see recovery.h.
struct Contents {
  struct Used {
    SegmentPtr segment;
    std::uint64_t first_batch{};
  };
  std::vector<Used> used;  // with batches that are not in the base, oldest first
  std::uint64_t end{};     // where the last of them ends
  std::uint64_t last_batch = 0;
  std::uint64_t next_number = 1;
  std::vector<SegmentPtr> spares;   // ready for use, numbered from next_number on
  std::vector<SegmentPtr> covered;  // all they hold is in the base
};

class Journal {
 public:
  // Begins a new segment behind `contents`: no batch is ever written next to what a crash may have
  // left behind the end of the last one.
  static Result<std::unique_ptr<Journal>> start(const SegmentPoolOptions& options,
                                                const DirectoryId& directory, Contents contents);

  struct Appended {
    std::uint64_t batch{};  // its number
    SegmentPtr segment;
    std::uint64_t body_offset{};
  };
  // `durably`: it and all before it are durable on return, in one step where the disk can do that.
  Result<Appended> append(std::string_view body, std::uint32_t mutations, bool durably);
  Status sync();
  // Goes on in a new segment, which is durable when this returns.
  Status rotate();

  std::uint64_t last_batch() const { return last_batch_; }

  // Everything up to this batch is in the base.
  void release(std::uint64_t batch);
  // Deletes the files of released segments, so that nothing of what they held is left.
  void forget_released() { pool_.forget_content(); }

  bool out_of_space() const { return pool_.out_of_space(); }
  // Of the segments that a release could give back: all but the one that is being written.
  std::uint64_t releasable_bytes() const;
  std::uint64_t disk_bytes() const;

 private:
  bool synced() const { return synced_batch_ == last_batch_; }
  Journal(const SegmentPoolOptions& options, const DirectoryId& directory, Contents contents);

  Status begin_segment(std::uint64_t capacity_min);
  Status make_room(std::uint64_t bytes);
  Status write_batch(std::string_view body, std::uint32_t mutations, bool durably);
  Status write_end();
  void note_synced();
  Status keep_failure(Status status);

  const DirectoryId directory_;
  SegmentPool pool_;

  // Of the appending thread.
  SegmentPtr active_;
  std::uint32_t seed_ = 0;  // of the active segment's frames
  std::uint64_t tail_ = 0;  // where its next frame goes
  std::uint64_t last_batch_ = 0;
  std::uint64_t synced_batch_ = 0;
  bool dirty_ = false;  // the active segment has bytes that are not synced
  std::unique_ptr<SyncedMark> synced_mark_;
  std::optional<Error> failed_;

  mutable std::mutex mutex_;         // guards used_
  std::deque<Contents::Used> used_;  // not released, oldest first; the active one is last
};

}  // namespace reprise::storage::journal
