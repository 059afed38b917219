// KeyRanking: which fairness keys of a queue have the most jobs waiting, without looking at all of
// them. Keys with two or more are kept in rows by the power of two of their number; a job more or
// less moves a key only when it crosses one.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "engine/fair_key.h"

namespace reprise {

class KeyRanking {
 public:
  // After each change of key.pending.
  void update(FairKey& key) {
    const auto size = static_cast<std::uint8_t>(std::bit_width(key.pending));
    if (size == key.rank_size) return;
    if (key.rank_size > 1) leave(key);
    key.rank_size = size;
    if (size > 1) {
      key.rank_place = static_cast<std::uint32_t>(row_of(key).size());
      row_of(key).push_back(&key);
    }
  }

  // Those with the most, and no others that have more. Of a last row that is too long only a part
  // is looked at, whose keys have at least half as many jobs as any other of it.
  std::vector<const FairKey*> top(std::size_t count) const {
    std::vector<const FairKey*> found;
    for (std::size_t size = rows_.size(); size > 2 && found.size() < count; --size) {
      const auto& row = rows_[size - 1];
      const std::size_t looked_at = std::min(row.size(), kLookedAtMax);
      found.insert(found.end(), row.begin(), row.begin() + static_cast<std::ptrdiff_t>(looked_at));
    }
    return found;
  }

 private:
  static constexpr std::size_t kLookedAtMax = 1000;
  using Row = std::vector<FairKey*>;

  Row& row_of(const FairKey& key) { return rows_[key.rank_size]; }
  void leave(FairKey& key) {
    Row& row = row_of(key);
    row[key.rank_place] = row.back();
    row[key.rank_place]->rank_place = key.rank_place;
    row.pop_back();
    if (row.empty()) row.shrink_to_fit();
  }

  std::array<Row, 33> rows_;  // index: bit width of the number
};

}  // namespace reprise
