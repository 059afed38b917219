#include "engine/lanes.h"

#include <algorithm>

#include "base/check.h"

namespace reprise {

void RetryLane::insert(TimedSeq job, std::uint32_t failures) {
  const auto bucket = static_cast<std::uint8_t>(failure_bucket(failures));
  if (jobs_.emplace(job, bucket).second) ++counts_[bucket];
}

bool RetryLane::erase(TimedSeq job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return false;
  erase(found);
  return true;
}

std::optional<Timestamp> RetryLane::erase(Seq seq) {
  const auto found =
      std::ranges::find_if(jobs_, [&](const auto& job) { return job.first.seq == seq; });
  if (found == jobs_.end()) return std::nullopt;
  const Timestamp at = found->first.at;
  erase(found);
  return at;
}

void RetryLane::erase(Jobs::iterator job) {
  --counts_[job->second];
  jobs_.erase(job);
}

int RetryLane::move_due(RetryLane& to, Timestamp now, int most) {
  int moved = 0;
  auto end = jobs_.begin();
  for (; end != jobs_.end() && end->first.at <= now && moved < most; ++end, ++moved) {
    to.jobs_.insert(to.jobs_.end(), *end);
    ++to.counts_[end->second];
    --counts_[end->second];
  }
  jobs_.erase(jobs_.begin(), end);
  return moved;
}

void FreshLane::insert(Priority priority, Seq seq) {
  if (by_priority_[priority].insert(seq)) ++size_;
}

void FreshLane::insert_all(Priority priority, std::span<const Seq> seqs) {
  if (seqs.empty()) return;
  SeqSet& set = by_priority_[priority];
  const std::uint64_t before = set.size();
  set.insert_all(seqs);
  size_ += set.size() - before;
}

bool FreshLane::erase(Priority priority, Seq seq) {
  const auto found = by_priority_.find(priority);
  return found != by_priority_.end() && erase(found, seq);
}

bool FreshLane::erase(Seq seq) {
  for (auto place = by_priority_.begin(); place != by_priority_.end(); ++place) {
    if (erase(place, seq)) return true;
  }
  return false;
}

bool FreshLane::erase(ByPriority::iterator place, Seq seq) {
  if (!place->second.erase(seq)) return false;
  if (place->second.empty()) by_priority_.erase(place);
  --size_;
  return true;
}

std::pair<Priority, Seq> FreshLane::front() const {
  REPRISE_CHECK(!empty());
  const auto& [priority, seqs] = *by_priority_.begin();
  return {priority, seqs.first()};
}

Seq FreshLane::oldest() const {
  REPRISE_CHECK(!empty());
  Seq oldest = by_priority_.begin()->second.first();
  for (const auto& [priority, seqs] : by_priority_) oldest = std::min(oldest, seqs.first());
  return oldest;
}

}  // namespace reprise
