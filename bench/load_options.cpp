#include "load_options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace reprise::bench {

LoadOptions parse_load_options(int argc, char** argv) {
  LoadOptions options;
  CLI::App app("Puts load on a reprise server and prints one line of JSON.");
  app.add_option("--addr", options.address, "host:port of the server")->required();
  app.add_option("--phase", options.phase, "what to do")
      ->check(CLI::IsMember({"push", "paced_push", "claim_ack", "claim_fail", "exhaust", "fail",
                             "lifecycle", "latency"}));
  app.add_option("--queue", options.queue, "made if missing");
  app.add_option("--connections", options.connections)->check(CLI::Range(2, 10000));
  app.add_option("--jobs-per-request", options.jobs_per_request)->check(CLI::Range(1, 1000));
  app.add_option("--payload-bytes", options.payload_bytes);
  app.add_option("--jobs", options.jobs, "end after so many jobs");
  app.add_option("--seconds", options.seconds, "end after so long")->check(CLI::PositiveNumber);
  app.add_option("--warmup", options.warmup_seconds, "seconds before the measuring begins");
  app.add_option("--rate", options.rate,
                 "latency: pushes per second; paced_push, fail: jobs per second")
      ->check(CLI::PositiveNumber);
  app.add_option("--tenants", options.tenants, "so many different headers `tenant`; 0: no headers")
      ->check(CLI::Range(0, 100));
  app.add_option("--fairness-keys", options.fairness_keys,
                 "so many different fairness keys; 0: none is named")
      ->check(CLI::Range(0, 10'000'000));
  app.add_option("--backlog", options.backlog_jobs, "lifecycle: jobs not acked yet, at most");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  if (options.tenants > 0 && options.fairness_keys > 0) {
    std::exit(app.exit(CLI::ExcludesError("--tenants", "--fairness-keys")));
  }
  if (options.backlog_jobs == 0) {
    options.backlog_jobs = options.connections * options.jobs_per_request;
  }
  return options;
}

}  // namespace reprise::bench
