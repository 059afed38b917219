#include "engine/seq_set.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace reprise {
namespace {

constexpr unsigned kLowBits = 16;

}  // namespace

bool SeqSet::insert(Seq seq) {
  if (!chunk_of(seq >> kLowBits).insert(static_cast<Low>(seq))) return false;
  ++size_;
  return true;
}

void SeqSet::insert_all(std::span<const Seq> seqs) {
  for (auto run = seqs.begin(); run != seqs.end();) {
    const Seq high = *run >> kLowBits;
    const auto run_end =
        std::find_if(run, seqs.end(), [&](Seq seq) { return seq >> kLowBits != high; });
    Chunk& chunk = chunk_of(high);
    chunk.reserve(static_cast<std::size_t>(run_end - run));
    for (; run != run_end; ++run) size_ += chunk.insert(static_cast<Low>(*run)) ? 1 : 0;
  }
}

bool SeqSet::erase(Seq seq) {
  const Seq high = seq >> kLowBits;
  auto found = chunks_.begin();
  if (found == chunks_.end()) return false;
  if (found->first != high) found = chunks_.find(high);  // jobs mostly leave from the front
  if (found == chunks_.end() || !found->second.erase(static_cast<Low>(seq))) return false;
  if (found->second.empty()) chunks_.erase(found);
  --size_;
  return true;
}

Seq SeqSet::first() const {
  REPRISE_CHECK(!empty());
  const auto& [high, chunk] = *chunks_.begin();
  return high << kLowBits | chunk.first();
}

// The chunk of these high bits, made if need be. Pushes come in rising order: mostly it is the last
// one, and when it is a new one, the last is complete.
SeqSet::Chunk& SeqSet::chunk_of(Seq high) {
  if (chunks_.empty()) return chunks_[high];
  const auto last = std::prev(chunks_.end());
  if (last->first == high) return last->second;
  if (last->first < high) last->second.fit();
  return chunks_[high];
}

bool SeqSet::Chunk::insert(Low low) {
  if (is_bitmap()) return insert_bit(low);
  Low* const place = count_ == 0 || end()[-1] < low ? end() : std::lower_bound(begin(), end(), low);
  if (place != end() && *place == low) return false;
  if (count_ == kArrayMax) {
    become_bitmap();
    return insert_bit(low);
  }
  const auto index = static_cast<std::uint32_t>(place - begin());
  open_gap(index);
  begin()[index] = low;
  return true;
}

bool SeqSet::Chunk::erase(Low low) {
  if (is_bitmap()) return erase_bit(low);
  Low* const place = *begin() == low ? begin() : std::lower_bound(begin(), end(), low);
  if (place == end() || *place != low) return false;
  close_gap(static_cast<std::uint32_t>(place - begin()));
  if (count_ < capacity_ / 4) resize(roomy());
  return true;
}

SeqSet::Low SeqSet::Chunk::first() const {
  if (!is_bitmap()) return *begin();
  return static_cast<Low>(start_ * kCellBits + static_cast<unsigned>(std::countr_zero(*begin())));
}

bool SeqSet::Chunk::insert_bit(Low low) {
  const auto cell = static_cast<std::uint16_t>(low / kCellBits);
  const auto bit = static_cast<Low>(1U << low % kCellBits);
  if ((cells_[cell] & bit) != 0) return false;
  cells_[cell] = static_cast<Low>(cells_[cell] | bit);
  start_ = std::min(start_, cell);
  ++count_;
  return true;
}

bool SeqSet::Chunk::erase_bit(Low low) {
  const std::uint32_t cell = low / kCellBits;
  const auto bit = static_cast<Low>(1U << low % kCellBits);
  if ((cells_[cell] & bit) == 0) return false;
  cells_[cell] = static_cast<Low>(cells_[cell] & ~bit);
  --count_;
  if (count_ < kBitmapMin) {
    become_array();
  } else {
    while (cells_[start_] == 0) ++start_;
  }
  return true;
}

// Moves the shorter part of the array, so that leaving from the front and coming back to it are as
// cheap as an append.
void SeqSet::Chunk::open_gap(std::uint32_t index) {
  if (start_ > 0 && index <= count_ / 2) {
    std::move(begin(), begin() + index, begin() - 1);
    --start_;
  } else {
    if (start_ + count_ == capacity_) resize(std::max<std::uint32_t>(roomy(), capacity_));
    std::move_backward(begin() + index, end(), end() + 1);
  }
  ++count_;
}

void SeqSet::Chunk::close_gap(std::uint32_t index) {
  if (index < count_ / 2 || index == 0) {
    std::move_backward(begin(), begin() + index, begin() + index + 1);
    ++start_;
  } else {
    std::move(begin() + index + 1, end(), begin() + index);
  }
  --count_;
}

void SeqSet::Chunk::reserve(std::size_t more) {
  if (is_bitmap()) return;
  const std::size_t wanted = count_ + more;
  if (wanted > kArrayMax) {
    become_bitmap();
  } else if (start_ + wanted > capacity_) {
    resize(static_cast<std::uint32_t>(wanted));
  }
}

void SeqSet::Chunk::fit() {
  if (!is_bitmap() && capacity_ > count_) resize(count_);
}

// A quarter on top: doubling would waste more than the chunk's other overhead.
std::uint32_t SeqSet::Chunk::roomy() const { return std::min(count_ + count_ / 4 + 4, kArrayMax); }

// An array's capacity; what it holds moves to its front.
void SeqSet::Chunk::resize(std::uint32_t capacity) {
  if (capacity == capacity_) {
    std::move(begin(), end(), cells_.get());
  } else {
    auto cells = std::make_unique_for_overwrite<Low[]>(capacity);
    std::copy(begin(), end(), cells.get());
    cells_ = std::move(cells);
    capacity_ = static_cast<std::uint16_t>(capacity);
  }
  start_ = 0;
}

void SeqSet::Chunk::become_bitmap() {
  auto bitmap = std::make_unique<Low[]>(kBitmapCells);
  for (const Low low : std::span(begin(), count_)) {
    Low& cell = bitmap[low / kCellBits];
    cell = static_cast<Low>(cell | 1U << low % kCellBits);
  }
  start_ = static_cast<std::uint16_t>(count_ == 0 ? kBitmapCells - 1 : *begin() / kCellBits);
  cells_ = std::move(bitmap);
  capacity_ = kBitmapCells;
}

void SeqSet::Chunk::become_array() {
  auto lows = std::make_unique_for_overwrite<Low[]>(count_);
  Low* out = lows.get();
  for (std::uint32_t cell = start_; cell < kBitmapCells; ++cell) {
    for (unsigned bits = cells_[cell]; bits != 0; bits &= bits - 1) {
      *out++ = static_cast<Low>(cell * kCellBits + static_cast<unsigned>(std::countr_zero(bits)));
    }
  }
  cells_ = std::move(lows);
  capacity_ = static_cast<std::uint16_t>(count_);
  start_ = 0;
}

}  // namespace reprise
