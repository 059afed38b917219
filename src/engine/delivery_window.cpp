#include "engine/delivery_window.h"

#include <absl/strings/string_view.h>

#include <chrono>

namespace reprise {

void DeliveryWindow::add(std::string_view key, Timestamp now) {
  advance(now);
  Slice& slice = current();
  ++slice.delivered;
  if (const auto found = slice.by_key.find(absl::string_view(key.data(), key.size()));
      found != slice.by_key.end()) {
    ++found->second;
  } else if (slice.by_key.size() < kKeysMax) {
    slice.by_key.emplace(key, 1);
  } else {
    absl::erase_if(slice.by_key, [](auto& entry) { return --entry.second == 0; });
  }
}

DeliveryWindow::Sum DeliveryWindow::sum(Timestamp now) {
  advance(now);
  Sum sum;
  for (const Slice& slice : slices_) {
    sum.delivered += slice.delivered;
    for (const auto& [key, count] : slice.by_key) sum.by_key[key] += count;
  }
  return sum;
}

void DeliveryWindow::advance(Timestamp now) {
  const std::int64_t slice =
      std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count() / kSliceSeconds;
  if (slice - current_ >= kSlices) {
    slices_ = {};
    current_ = slice;
  }
  while (current_ < slice) {
    ++current_;
    current() = {};
  }
}

}  // namespace reprise
