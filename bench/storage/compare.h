// Compare: the same batches, prepared before, to several committers one after another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commit_loop.h"

namespace reprise::bench {

enum class Workload : std::uint8_t { pushes, lives };

struct CompareOptions {
  std::string folder;
  Workload workload = Workload::lives;
  Mode mode = Mode::sync;
  std::uint64_t jobs = 300'000;  // rounded up to whole batches
  std::uint64_t jobs_per_batch = 64;
  std::vector<std::string> committers;  // by name, in this order
};

// The report: an object by committer, as JSON.
std::string compare(const CompareOptions& options);

}  // namespace reprise::bench
