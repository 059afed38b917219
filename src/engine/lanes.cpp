#include "engine/lanes.h"

#include <algorithm>

#include "base/check.h"

namespace reprise {

bool RetryTimes::insert(TimedSeq job, std::uint32_t failures, StrandRef strand) {
  const auto bucket = static_cast<std::uint8_t>(failure_bucket(failures));
  const bool inserted = jobs_.try_emplace(job, Waiting{bucket, std::move(strand)}).second;
  if (inserted) ++counts_[bucket];
  return inserted;
}

StrandRef RetryTimes::erase(TimedSeq job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return {};
  StrandRef strand = std::move(found->second.strand);
  --counts_[found->second.bucket];
  jobs_.erase(found);
  return strand;
}

std::optional<Timestamp> RetryTimes::time_of(Seq seq) const {
  const auto found =
      std::ranges::find_if(jobs_, [&](const auto& job) { return job.first.seq == seq; });
  if (found == jobs_.end()) return std::nullopt;
  return found->first.at;
}

RetryTimes::Retry RetryTimes::pop_front() {
  REPRISE_CHECK(!empty());
  const auto first = jobs_.begin();
  Retry retry{first->first, first->second.bucket + 1U, std::move(first->second.strand)};
  --counts_[first->second.bucket];
  jobs_.erase(first);
  return retry;
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

std::uint64_t FreshLane::count_below(Priority priority) const {
  std::uint64_t count = 0;
  for (const auto& [of_these, seqs] : by_priority_) {
    if (of_these >= priority) break;
    count += seqs.size();
  }
  return count;
}

}  // namespace reprise
