// Backlog: pushes that nobody claims, each batch synced, into a folder that is kept.
#pragma once

#include <cstdint>
#include <string>

namespace reprise::bench {

struct BacklogOptions {
  std::string folder;
  std::uint64_t jobs = 10'000'000;  // rounded up to whole batches
  std::uint64_t jobs_per_batch = 1000;
  std::uint32_t queues = 1;
  bool kill = false;  // end by SIGKILL right after the last commit, without closing anything
};

// Prints its report, as one line of JSON, itself: with `kill` nothing can be done afterwards.
void fill_backlog(const BacklogOptions& options);

}  // namespace reprise::bench
