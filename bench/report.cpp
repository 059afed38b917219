#include "report.h"

#include <fmt/format.h>

#include "latency_format.h"

namespace reprise::bench {
std::string format_report(const LoadOptions& options, const Measurement& measurement,
                          double cpu_seconds, double wall_seconds) {
  const double window = to_seconds(measurement.window());
  return fmt::format(
      R"({{"phase":"{}","connections":{},"jobs_per_request":{},"payload_bytes":{},"jobs":{},)"
      R"("all_jobs":{},"seconds":{:.4f},"jobs_per_second":{:.1f},"requests_per_second":{:.1f},)"
      R"("latency_us":{},"delivery_us":{},"cpu_seconds":{:.3f},"wall_seconds":{:.4f}}})",
      options.phase, options.connections, options.jobs_per_request, options.payload_bytes,
      measurement.jobs(), measurement.all_jobs(), window,
      static_cast<double>(measurement.jobs()) / window,
      static_cast<double>(measurement.requests()) / window, format_latency(measurement.latency()),
      format_latency(measurement.delivery()), cpu_seconds, wall_seconds);
}

}  // namespace reprise::bench
