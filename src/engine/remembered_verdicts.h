// RememberedVerdicts: what on_enqueue has said of jobs like the one that comes now, so that a
// script which sorts jobs by their tenant runs once for each tenant and not once for each job. Only
// verdicts that were told to be repeatable (model/hook.h) are given to it; what they follow from is
// the key. Bounded; where remembering is of no use, because no two jobs are alike, it stops for a
// while. Threads: the engine's only.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/hook.h"
#include "model/job.h"

namespace reprise {

class RememberedVerdicts {
 public:
  static constexpr std::size_t kBytesMax = 256U << 10;
  // Jobs that are not looked up after a memory was filled without being of use.
  static constexpr std::uint64_t kPause = 100'000;

  // The job as it was pushed. Null: its hook has to be asked. Valid until the next call.
  const EnqueueVerdict* find(const JobRecord& job);
  void learn(const JobRecord& job, const EnqueueVerdict& verdict);
  // The script is another one.
  void clear();

 private:
  const std::string& key_of(const JobRecord& job);

  absl::flat_hash_map<std::string, EnqueueVerdict> verdicts_;
  std::size_t bytes_ = 0;
  std::uint64_t hits_ = 0;   // since it was empty
  std::uint64_t pause_ = 0;  // lookups that are left out still
  std::string key_;          // kept for its memory
};

}  // namespace reprise
