// KeyedJobs: the fresh jobs of a chunk of the job index that have scheduling attributes of their
// own. There may be as many different ones as jobs, so a group of jobs with the same is no more
// than a number that each of them has.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/job.h"

namespace reprise::storage {

inline constexpr int kChunkBits = 14;
inline constexpr std::size_t kChunkJobs = std::size_t{1} << kChunkBits;

// A seq within its chunk.
using LowSeq = std::uint16_t;

class KeyedJobs {
 public:
  // What the jobs of a group have in common.
  struct Group {
    Priority priority{};
    Scheduling scheduling;
    friend bool operator==(const Group&, const Group&) = default;
    template <class H>
    friend H AbslHashValue(H hash, const Group& group) {
      return H::combine(std::move(hash), group.priority, group.scheduling.fairness_key,
                        group.scheduling.weight, group.scheduling.throttle_keys);
    }
  };
  using GroupNumber = std::uint32_t;

  bool empty() const { return jobs_ == 0; }
  void set(LowSeq low, Group group);
  std::optional<Group> take(LowSeq low);

  // For a reader that has the jobs group by group. False: the job is there already.
  GroupNumber add_group(Group group);
  [[nodiscard]] bool add(LowSeq low, GroupNumber number);

  // Groups that have jobs.
  std::size_t group_count() const;
  // Their jobs ascending, until one visit fails.
  using Visit = std::function<Status(const Group& group, std::span<const LowSeq> jobs)>;
  Status for_each_group(const Visit& visit) const;

 private:
  static constexpr GroupNumber kNone = UINT32_MAX;

  GroupNumber number_of(Group group);

  struct Counted {
    Group group;
    std::uint32_t jobs = 0;  // 0: they are gone
  };
  std::vector<Counted> groups_;
  std::vector<GroupNumber> group_of_;                // by LowSeq; empty as long as there is no job
  absl::flat_hash_map<Group, GroupNumber> numbers_;  // of groups_; empty until one is looked for
  std::size_t jobs_ = 0;
};

}  // namespace reprise::storage
