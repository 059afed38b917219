// PeerOptions: what one run of reprise_peer_load does, from its command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "load_options.h"

namespace reprise::bench::peers {

struct PeerOptions {
  std::string address;
  std::string protocol = "beanstalk";
  std::string phase = "push";
  std::string queue = "bench";
  std::size_t connections = 16;
  std::size_t window = 1;
  std::size_t body_bytes = 1024;
  // A run ends after `jobs` jobs or `seconds` of measuring, whichever comes first.
  std::uint64_t jobs = kNoLimit;
  double seconds = 600;
  double warmup_seconds = 0;
  double rate = 500;                  // latency: pushes per second
  std::uint64_t backlog_jobs = 4096;  // lifecycle: jobs pushed and not yet acked, at most
};

// Prints help or a mistake and exits when the command line asks for it.
PeerOptions parse_peer_options(int argc, char** argv);

}  // namespace reprise::bench::peers
