// A histogram as JSON: percentiles in microseconds.
#pragma once

#include <string>

#include "latency_histogram.h"

namespace reprise::bench {

std::string format_latency(const LatencyHistogram& histogram);

}  // namespace reprise::bench
