// Journal: the commit point. Batches get their places in order, are written side by side, and end
// in order. What reached the base is released and its space used again.
//
// After the first failed write or sync every call fails with that error: nothing is known then
// about what the disk has, and a second fsync may succeed without the data being there. Threads:
// place(), end(), sync() and rotate() from one thread at a time; the rest from any.
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

  // Where a batch goes.
  struct Place {
    std::uint64_t batch{};  // its number
    SegmentPtr segment;
    std::uint64_t offset{};  // of its frame
    std::uint64_t synced_batch{};
    bool is_written = false;  // by place() already

    std::uint64_t body_offset() const { return offset + kFrameHeaderBytes; }
  };
  // Whether such a batch can have a place before those that are under way have ended.
  bool has_place_for(std::uint64_t body_bytes, bool durably) const;
  // Behind all before. `durably`: it and all before it are durable when it has ended.
  Result<Place> place(std::string_view body, std::uint32_t mutations, bool durably);
  // Beside other batches, on any thread. The same batch as at its place.
  Status write(const Place& place, std::string_view body, std::uint32_t mutations) const;
  // `written` is what write() has returned. In the order of their places.
  Status end(const Place& place, Status written);

  // All that has ended is durable on return.
  Status sync();
  // Goes on in a new segment, which is durable when this returns. While no batch is under way.
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
  Journal(const SegmentPoolOptions& options, const DirectoryId& directory, Contents contents);

  bool any_under_way() const { return ended_batch_ != last_batch_; }
  std::uint64_t next_offset() const { return any_under_way() ? next_block(tail_) : tail_; }
  bool fits(std::uint64_t body_bytes) const;
  std::string header_of(const Place& place, std::string_view body, std::uint32_t mutations) const;
  Status write_at_once(const Place& place, std::string_view body, std::uint32_t mutations,
                       bool durably);
  Status begin_segment(std::uint64_t capacity_min);
  Status write_end();
  void note_synced(std::uint64_t batch);
  Status keep_failure(Status status);

  const DirectoryId directory_;
  SegmentPool pool_;

  // Of whoever places and ends batches.
  SegmentPtr active_;
  std::uint64_t tail_ = 0;  // where its last frame ends
  std::uint64_t last_batch_ = 0;
  std::uint64_t ended_batch_ = 0;
  std::uint64_t synced_batch_ = 0;
  bool dirty_ = false;  // the active segment has bytes of ended batches that are not synced
  std::unique_ptr<SyncedMark> synced_mark_;
  std::optional<Error> failed_;

  mutable std::mutex mutex_;         // guards used_
  std::deque<Contents::Used> used_;  // not released, oldest first; the active one is last
};

}  // namespace reprise::storage::journal
