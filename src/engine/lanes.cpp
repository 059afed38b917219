#include "engine/lanes.h"

#include <algorithm>

#include "base/check.h"

namespace reprise {

void FreshLane::insert(Priority priority, Seq seq) {
  auto& seqs = by_priority_[priority];
  // Pushes come in rising order; the hint makes them an append.
  const std::size_t before = seqs.size();
  seqs.insert(seqs.end(), seq);
  size_ += seqs.size() - before;
}

bool FreshLane::erase(Priority priority, Seq seq) {
  const auto found = by_priority_.find(priority);
  if (found == by_priority_.end() || found->second.erase(seq) == 0) return false;
  if (found->second.empty()) by_priority_.erase(found);
  --size_;
  return true;
}

std::pair<Priority, Seq> FreshLane::front() const {
  REPRISE_CHECK(!empty());
  const auto& [priority, seqs] = *by_priority_.begin();
  return {priority, *seqs.begin()};
}

Seq FreshLane::oldest() const {
  REPRISE_CHECK(!empty());
  Seq oldest = *by_priority_.begin()->second.begin();
  for (const auto& [priority, seqs] : by_priority_) oldest = std::min(oldest, *seqs.begin());
  return oldest;
}

}  // namespace reprise
