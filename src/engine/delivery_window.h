// DeliveryWindow: how many jobs each fairness key was given in the last minute, in twelve slices of
// five seconds. A slice counts at most kKeysMax keys (Misra and Gries): while it has that many, a
// new key takes one off each of the others. So a key's count is exact while they are few, and short
// by at most one in kKeysMax of all deliveries when they are many, whatever their order.
// Time: comes in; never runs backwards.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"

namespace reprise {

class DeliveryWindow {
 public:
  static constexpr std::size_t kKeysMax = 256;

  void add(std::string_view key, Timestamp now);

  struct Sum {
    std::uint64_t delivered = 0;  // in all
    absl::flat_hash_map<std::string, std::uint64_t> by_key;
  };
  Sum sum(Timestamp now);

 private:
  static constexpr std::int64_t kSlices = 12;
  static constexpr std::int64_t kSliceSeconds = 5;
  struct Slice {
    std::uint64_t delivered = 0;
    absl::flat_hash_map<std::string, std::uint32_t> by_key;
  };

  void advance(Timestamp now);
  Slice& current() { return slices_[static_cast<std::size_t>(current_) % kSlices]; }

  std::array<Slice, kSlices> slices_;
  std::int64_t current_ = 0;
};

}  // namespace reprise
