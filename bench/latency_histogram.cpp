#include "latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace reprise::bench {

// Values below 2^(kSubBits+1) have a bucket each; above, every power of two has 2^kSubBits buckets.
std::size_t LatencyHistogram::bucket_of(std::uint64_t value) {
  const unsigned width = static_cast<unsigned>(std::bit_width(value));
  const unsigned shift = width > kSubBits + 1 ? width - kSubBits - 1 : 0;
  return (static_cast<std::size_t>(shift) << kSubBits) + (value >> shift);
}

std::uint64_t LatencyHistogram::bucket_last(std::size_t bucket) {
  if (bucket < (2U << kSubBits)) return bucket;
  const std::size_t shift = (bucket >> kSubBits) - 1;
  const std::uint64_t first = ((bucket & ((1U << kSubBits) - 1)) | (1U << kSubBits)) << shift;
  return first + (std::uint64_t{1} << shift) - 1;
}

void LatencyHistogram::record(Nanoseconds duration) {
  const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(duration.count(), 0));
  counts_[bucket_of(value)]++;
  count_++;
  max_ = std::max(max_, value);
}

Nanoseconds LatencyHistogram::percentile(double share) const {
  if (count_ == 0) return Nanoseconds(0);
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < counts_.size(); bucket++) {
    seen += counts_[bucket];
    if (seen >= wanted && seen > 0) return Nanoseconds(std::min(bucket_last(bucket), max_));
  }
  return max();
}

}  // namespace reprise::bench
