// LoadOptions: what one run of the load generator does, from its command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace reprise::bench {

inline constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

struct LoadOptions {
  std::string address;
  std::string phase = "push";
  std::string queue = "bench";
  std::size_t connections = 64;
  std::size_t jobs_per_request = 1;
  std::size_t payload_bytes = 1024;
  // A run ends after `jobs` jobs or `seconds` of measuring, whichever comes first.
  std::uint64_t jobs = kNoLimit;
  double seconds = 600;
  double warmup_seconds = 0;      // load before the measuring begins
  double rate = 500;              // latency: pushes per second; paced_push, fail: jobs per second
  std::size_t tenants = 0;        // jobs have a header `tenant`, one of so many; 0: no headers
  std::size_t fairness_keys = 0;  // jobs have one of so many fairness keys, in turn; 0: none
  // lifecycle: jobs pushed and not yet acked, at most; else it would measure a growing backlog.
  // 0: one request for each connection.
  std::uint64_t backlog_jobs = 0;
};

// Prints help or a mistake and exits when the command line asks for it.
LoadOptions parse_load_options(int argc, char** argv);

}  // namespace reprise::bench
