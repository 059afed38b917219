// SeqSet: an ordered set of seqs that takes as little memory as their pattern allows: a bit for
// each of a dense run, 2 to 3 bytes for one among many of other queues, where a B-tree takes 9.
// Seqs that share all but their lowest 16 bits form a chunk. A chunk keeps the low halves of its
// seqs in a sorted array while they are few, and as a bitmap from then on.
// This is what Roaring bitmaps do, but those look for the first seq from the front of its chunk
// again and again: 270 ns for each job of a backlog that is worked off, where a chunk that knows
// where it starts takes 10.
#pragma once

#include <absl/container/btree_map.h>

#include <cstdint>
#include <memory>
#include <span>

#include "base/ids.h"

namespace reprise {

class SeqSet {
 public:
  SeqSet() = default;
  SeqSet(const SeqSet&) = delete;
  SeqSet& operator=(const SeqSet&) = delete;

  // False: it was there already.
  bool insert(Seq seq);
  // In ascending order.
  void insert_all(std::span<const Seq> seqs);
  // False: it was not there.
  bool erase(Seq seq);
  bool empty() const { return size_ == 0; }
  std::uint64_t size() const { return size_; }
  // The smallest. Must not be empty.
  Seq first() const;

 private:
  using Low = std::uint16_t;

  // Invariant: an array begins at start_, or a bitmap's first cell that is not 0 is there.
  class Chunk {
   public:
    bool insert(Low low);
    bool erase(Low low);
    // Makes room for so many more at once.
    void reserve(std::size_t more);
    // Gives back the room to grow.
    void fit();
    bool empty() const { return count_ == 0; }
    Low first() const;

   private:
    static constexpr unsigned kCellBits = 16;
    static constexpr std::uint32_t kBitmapCells = 65536 / kCellBits;
    // One less, so that its capacity tells what a chunk is; a bitmap would take no more memory.
    static constexpr std::uint32_t kArrayMax = kBitmapCells - 1;
    // Turning back this late, a chunk cannot be made to change its form again and again.
    static constexpr std::uint32_t kBitmapMin = kBitmapCells / 2;

    bool is_bitmap() const { return capacity_ == kBitmapCells; }
    Low* begin() const { return cells_.get() + start_; }
    Low* end() const { return begin() + count_; }  // of an array
    bool insert_bit(Low low);
    bool erase_bit(Low low);
    void open_gap(std::uint32_t index);
    void close_gap(std::uint32_t index);
    std::uint32_t roomy() const;
    void resize(std::uint32_t capacity);
    void become_bitmap();
    void become_array();

    std::unique_ptr<Low[]> cells_;
    std::uint32_t count_ = 0;
    std::uint16_t capacity_ = 0;  // of cells_
    std::uint16_t start_ = 0;
  };

  Chunk& chunk_of(Seq high);

  absl::btree_map<Seq, Chunk> chunks_;  // by the high bits; no empty ones
  std::uint64_t size_ = 0;
};

}  // namespace reprise
