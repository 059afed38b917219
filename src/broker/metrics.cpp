#include "broker/metrics.h"

#include <algorithm>

namespace reprise {

void Histogram::observe(double value) {
  const auto bucket = std::ranges::lower_bound(upper_bounds, value);
  counts.resize(upper_bounds.size() + 1);
  ++counts[static_cast<std::size_t>(bucket - upper_bounds.begin())];
  sum += value;
}

}  // namespace reprise
