// RateWindow: how many per second, over the last minute, in twelve buckets of five seconds.
// Time: comes in; never runs backwards.
#pragma once

#include <array>
#include <cstdint>

#include "base/time.h"

namespace reprise {

class RateWindow {
 public:
  void add(Timestamp now, std::uint32_t count) {
    advance(now);
    buckets_[static_cast<std::size_t>(current_) % kBuckets] += count;
  }
  double per_second(Timestamp now) {
    advance(now);
    std::uint64_t sum = 0;
    for (const std::uint32_t count : buckets_) sum += count;
    return static_cast<double>(sum) / (kBuckets * kBucketSeconds);
  }

 private:
  static constexpr std::int64_t kBuckets = 12;
  static constexpr std::int64_t kBucketSeconds = 5;

  void advance(Timestamp now) {
    const std::int64_t bucket =
        std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count() / kBucketSeconds;
    if (bucket - current_ >= kBuckets) {
      buckets_.fill(0);
      current_ = bucket;
    }
    while (current_ < bucket) buckets_[static_cast<std::size_t>(++current_) % kBuckets] = 0;
  }

  std::array<std::uint32_t, kBuckets> buckets_{};
  std::int64_t current_ = 0;
};

}  // namespace reprise
