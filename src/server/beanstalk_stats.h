// What the beanstalk server knows about itself.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/time.h"
#include "server/beanstalk_parser.h"

namespace reprise::server {

// For /metrics.
struct BeanstalkStats {
  std::uint64_t connections = 0;
  std::array<std::uint64_t, kBeanstalkVerbCount> commands{};  // index: BeanstalkVerb

  std::uint64_t count(BeanstalkVerb verb) const { return commands[static_cast<std::size_t>(verb)]; }
};

// For `stats`, besides what the queues say.
struct BeanstalkCensus {
  BeanstalkStats stats;
  std::uint64_t producers = 0;  // connections that have put
  std::uint64_t workers = 0;    // that have reserved
  std::uint64_t waiting = 0;    // that wait in a reserve
  std::uint64_t total_connections = 0;
  std::uint64_t max_job_bytes = 0;
  // What the queues had counted before this start.
  std::uint64_t earlier_jobs = 0;
  std::uint64_t earlier_timeouts = 0;
  Duration uptime{};
  bool draining = false;
  std::string id;  // of this start
};

// For `stats-tube`, besides what its queue says: connections.
struct BeanstalkTubeCensus {
  std::uint64_t using_it = 0;
  std::uint64_t watching = 0;
  std::uint64_t waiting = 0;
  std::uint64_t pauses = 0;  // since this start
};

}  // namespace reprise::server
