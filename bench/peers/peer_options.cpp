#include "peers/peer_options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace reprise::bench::peers {

PeerOptions parse_peer_options(int argc, char** argv) {
  PeerOptions options;
  CLI::App app("Puts load on a queue server and prints one line of JSON.");
  app.add_option("--addr", options.address, "host:port of the server")->required();
  app.add_option("--protocol", options.protocol, "what it speaks")
      ->check(CLI::IsMember({"beanstalk", "redis-stream", "redis-lua"}));
  app.add_option("--phase", options.phase, "what to do")
      ->check(CLI::IsMember({"push", "claim_ack", "lifecycle", "latency", "fail"}));
  app.add_option("--queue", options.queue, "the tube, stream or key");
  app.add_option("--connections", options.connections)->check(CLI::Range(1, 1000));
  app.add_option("--window", options.window, "operations under way on each connection")
      ->check(CLI::Range(1, 1000));
  app.add_option("--body-bytes", options.body_bytes);
  app.add_option("--jobs", options.jobs,
                 "end after so many jobs; claim_ack, fail: so many are there");
  app.add_option("--seconds", options.seconds, "end after so long")->check(CLI::PositiveNumber);
  app.add_option("--warmup", options.warmup_seconds, "seconds before the measuring begins");
  app.add_option("--rate", options.rate, "latency: pushes per second")->check(CLI::PositiveNumber);
  app.add_option("--backlog", options.backlog_jobs, "lifecycle: jobs not acked yet, at most")
      ->check(CLI::PositiveNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  if (options.phase == "fail" && options.jobs == kNoLimit) {
    std::exit(app.exit(CLI::RequiredError("--jobs")));
  }
  if ((options.phase == "lifecycle" || options.phase == "latency") && options.connections < 2) {
    std::exit(app.exit(CLI::ValidationError("--connections", "at least 2")));
  }
  return options;
}

}  // namespace reprise::bench::peers
