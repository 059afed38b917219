// LatencyHistogram: durations counted in buckets, so that recording one costs a few instructions
// and memory does not grow with the length of a run.
// A bucket is at most 1/64 of its value wide: percentiles are exact to 1.6%, the maximum is exact.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "clock.h"

namespace reprise::bench {

class LatencyHistogram {
 public:
  void record(Nanoseconds duration);

  std::uint64_t count() const { return count_; }
  Nanoseconds max() const { return Nanoseconds(max_); }

  // The least recorded value (rounded up to its bucket's end) that at least `share` of all values
  // do not exceed. Zero when nothing was recorded.
  Nanoseconds percentile(double share) const;

 private:
  static constexpr unsigned kSubBits = 6;
  static constexpr std::size_t kBuckets = (64 - kSubBits + 1) << kSubBits;

  static std::size_t bucket_of(std::uint64_t value);
  static std::uint64_t bucket_last(std::size_t bucket);

  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace reprise::bench
