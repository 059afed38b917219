#include "storage/durable/keyed_jobs.h"

#include <algorithm>

#include "base/check.h"

namespace reprise::storage {

void KeyedJobs::set(LowSeq low, Group group) {
  take(low);
  REPRISE_CHECK(add(low, number_of(std::move(group))));
}

std::optional<KeyedJobs::Group> KeyedJobs::take(LowSeq low) {
  if (group_of_.empty() || group_of_[low] == kNone) return std::nullopt;
  Counted& counted = groups_[std::exchange(group_of_[low], kNone)];
  --counted.jobs;
  --jobs_;
  return counted.group;
}

KeyedJobs::GroupNumber KeyedJobs::add_group(Group group) {
  groups_.push_back({.group = std::move(group)});
  return static_cast<GroupNumber>(groups_.size() - 1);
}

bool KeyedJobs::add(LowSeq low, GroupNumber number) {
  if (group_of_.empty()) group_of_.assign(kChunkJobs, kNone);
  if (group_of_[low] != kNone) return false;
  group_of_[low] = number;
  ++groups_[number].jobs;
  ++jobs_;
  return true;
}

KeyedJobs::GroupNumber KeyedJobs::number_of(Group group) {
  if (numbers_.empty()) {
    for (GroupNumber number = 0; number < groups_.size(); ++number) {
      numbers_.emplace(groups_[number].group, number);
    }
  }
  const auto [known, is_new] = numbers_.try_emplace(std::move(group), groups_.size());
  return is_new ? add_group(known->first) : known->second;
}

std::size_t KeyedJobs::group_count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(groups_, [](const Counted& counted) { return counted.jobs > 0; }));
}

// Sorts the jobs by their groups, which is one pass because it is known how many each has.
Status KeyedJobs::for_each_group(const Visit& visit) const {
  if (empty()) return ok();
  std::vector<std::uint32_t> ends;
  ends.reserve(groups_.size());
  for (std::uint32_t end = 0; const Counted& counted : groups_) {
    ends.push_back(end);
    end += counted.jobs;
  }
  std::vector<LowSeq> sorted(jobs_);
  for (std::size_t low = 0; low < kChunkJobs; ++low) {
    if (group_of_[low] == kNone) continue;
    sorted[ends[group_of_[low]]++] = static_cast<LowSeq>(low);
  }
  for (GroupNumber number = 0; number < groups_.size(); ++number) {
    const auto& [group, jobs] = groups_[number];
    if (jobs == 0) continue;
    REPRISE_TRY(visit(group, std::span(sorted).subspan(ends[number] - jobs, jobs)));
  }
  return ok();
}

}  // namespace reprise::storage
