// BrokerMetrics: the broker's own numbers, as a snapshot for /metrics and /status.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace reprise {

// A histogram with fixed upper bounds, the way Prometheus wants it.
struct Histogram {
  std::vector<double> upper_bounds;   // ascending; the last bucket, +Inf, is implied
  std::vector<std::uint64_t> counts;  // per bucket, not cumulative; one more than the bounds
  double sum = 0;
  void observe(double value);
};

struct BrokerMetrics {
  std::string durability;    // sync, interval, none
  std::string storage_kind;  // rocksdb, memory
  std::uint64_t storage_bytes = 0;
  Histogram commit_seconds;
  Histogram batch_commands;  // commands per commit
  Histogram batch_bytes;
  std::uint64_t commits = 0;
  std::uint64_t cache_bytes = 0;
  std::uint64_t cache_hits = 0;
  std::uint64_t cache_misses = 0;
  std::uint64_t queued_commands = 0;
  std::uint64_t events_published = 0;
  std::uint64_t free_disk_bytes = 0;
  bool disk_low = false;
  std::uint64_t operations_running = 0;
  std::uint64_t hook_hosts = 0;
  std::uint64_t hook_hosts_started = 0;
  std::uint64_t hook_hosts_killed = 0;
  std::uint64_t hook_hosts_lost = 0;
};

}  // namespace reprise
