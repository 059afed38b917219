// reprise_http_load: puts load on a server over HTTP and prints one line of JSON.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "claim_ack_phase.h"
#include "exhaust_phase.h"
#include "fail_phase.h"
#include "latency_phase.h"
#include "lifecycle_phase.h"
#include "load_error.h"
#include "load_options.h"
#include "load_run.h"
#include "own_cpu.h"
#include "paced_push_phase.h"
#include "push_phase.h"
#include "report.h"

namespace reprise::bench {
namespace {

std::unique_ptr<LoadPhase> make_phase(const LoadOptions& options, const ConsumerContext& context) {
  if (options.phase == "push") {
    return std::make_unique<PushPhase>(options, context.requests, context.measurement);
  }
  if (options.phase == "paced_push") {
    return std::make_unique<PacedPushPhase>(options, context.requests, context.measurement);
  }
  if (options.phase == "claim_ack" || options.phase == "claim_fail") {
    return std::make_unique<ClaimAckPhase>(options, context);
  }
  if (options.phase == "exhaust") {
    return std::make_unique<ExhaustPhase>(options, context.requests, context.payloads,
                                          context.measurement);
  }
  if (options.phase == "fail") return std::make_unique<FailPhase>(options, context);
  if (options.phase == "lifecycle") return std::make_unique<LifecyclePhase>(options, context);
  return std::make_unique<LatencyPhase>(options, context);
}

void create_queue(const LoadOptions& options, const QueueRequests& requests) {
  HttpConnection connection(options.address, 0);
  requests.create(connection.request());
  expect_made_or_there(connection.exchange());
}

void run(const LoadOptions& options) {
  const PayloadSource payloads(options.payload_bytes);
  const QueueRequests requests(
      options.address, options.queue, payloads,
      {.tenants = options.tenants, .fairness_keys = options.fairness_keys});
  Measurement measurement;
  Deliveries deliveries;
  const Ending ending = options.phase == "claim_fail" ? Ending::fail : Ending::ack;
  const auto phase = make_phase(options, {requests, payloads, measurement, deliveries, ending});
  create_queue(options, requests);

  // From here on: what came before is the generator's own preparation.
  const double cpu_before = own_cpu_seconds();
  const TimePoint started = Clock::now();
  LoadRun(options, *phase, measurement).run();
  fmt::print("{}\n", format_report(options, measurement, own_cpu_seconds() - cpu_before,
                                   to_seconds(Clock::now() - started)));
}

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  const auto options = reprise::bench::parse_load_options(argc, argv);
  try {
    reprise::bench::run(options);
  } catch (const reprise::bench::LoadError& error) {
    fmt::print(stderr, "reprise_http_load: {}: {}\n", options.phase, error.what());
    return 1;
  }
  return 0;
}
