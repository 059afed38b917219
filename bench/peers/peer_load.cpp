// reprise_peer_load: puts the same load on Reprise and on the servers that it is compared with, and
// prints one line of JSON.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "latency_format.h"
#include "load_error.h"
#include "own_cpu.h"
#include "peers/claim_ack_phase.h"
#include "peers/fail_phase.h"
#include "peers/latency_phase.h"
#include "peers/lifecycle_phase.h"
#include "peers/peer_options.h"
#include "peers/peer_run.h"
#include "peers/push_phase.h"

namespace reprise::bench::peers {
namespace {

std::unique_ptr<PeerPhase> make_phase(const PeerOptions& options, const BodySource& bodies,
                                      Measurement& measurement) {
  if (options.phase == "push") return std::make_unique<PushPhase>(options, bodies, measurement);
  if (options.phase == "claim_ack") {
    return std::make_unique<ClaimAckPhase>(options, bodies, measurement);
  }
  if (options.phase == "lifecycle") {
    return std::make_unique<LifecyclePhase>(options, bodies, measurement);
  }
  if (options.phase == "latency") {
    return std::make_unique<LatencyPhase>(options, bodies, measurement);
  }
  return std::make_unique<FailPhase>(options, bodies, measurement);
}

struct Cost {
  double cpu_seconds;
  double wall_seconds;
};

void print_report(const PeerOptions& options, const Measurement& measurement,
                  std::uint64_t duplicates, const Cost& cost) {
  const double window = to_seconds(measurement.window());
  fmt::print(
      R"({{"protocol":"{}","phase":"{}","connections":{},"window":{},"body_bytes":{},"jobs":{},)"
      R"("all_jobs":{},"seconds":{:.4f},"jobs_per_second":{:.1f},"duplicates":{},)"
      R"("latency_us":{},"delivery_us":{},"cpu_seconds":{:.3f},"wall_seconds":{:.4f}}})"
      "\n",
      options.protocol, options.phase, options.connections, options.window, options.body_bytes,
      measurement.jobs(), measurement.all_jobs(), window,
      static_cast<double>(measurement.jobs()) / window, duplicates,
      format_latency(measurement.latency()), format_latency(measurement.delivery()),
      cost.cpu_seconds, cost.wall_seconds);
}

void run(const PeerOptions& options) {
  const BodySource bodies(options.body_bytes);
  Measurement measurement;
  const auto phase = make_phase(options, bodies, measurement);
  PeerRun load(options, *phase, measurement);

  // From here on: what came before is the generator's own preparation.
  const double cpu_before = own_cpu_seconds();
  const TimePoint started = Clock::now();
  load.run();
  print_report(options, measurement, phase->duplicates(),
               {own_cpu_seconds() - cpu_before, to_seconds(Clock::now() - started)});
}

}  // namespace
}  // namespace reprise::bench::peers

int main(int argc, char** argv) {
  const auto options = reprise::bench::peers::parse_peer_options(argc, argv);
  try {
    reprise::bench::peers::run(options);
  } catch (const reprise::bench::LoadError& error) {
    fmt::print(stderr, "reprise_peer_load: {} {}: {}\n", options.protocol, options.phase,
               error.what());
    return 1;
  }
  return 0;
}
