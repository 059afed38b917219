#include "latency_format.h"

#include <fmt/format.h>

namespace reprise::bench {

std::string format_latency(const LatencyHistogram& histogram) {
  return fmt::format(R"({{"count":{},"p50":{:.1f},"p95":{:.1f},"p99":{:.1f},"max":{:.1f}}})",
                     histogram.count(), to_microseconds(histogram.percentile(0.50)),
                     to_microseconds(histogram.percentile(0.95)),
                     to_microseconds(histogram.percentile(0.99)), to_microseconds(histogram.max()));
}

}  // namespace reprise::bench
