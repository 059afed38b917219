#include "engine/lease_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace reprise {
namespace {

// So many deadlines of leases that have ended are never worth a look at all of them.
constexpr std::size_t kSurplusKept = 64;

}  // namespace

void LeaseTable::grant(const Lease& lease) {
  const bool inserted = by_job_.emplace(lease.job, lease).second;
  REPRISE_CHECK(inserted);
  add({lease.deadline, lease.job});
}

const Lease* LeaseTable::find(JobKey job) const {
  const auto found = by_job_.find(job);
  return found == by_job_.end() ? nullptr : &found->second;
}

void LeaseTable::extend(JobKey job, Timestamp deadline) {
  const auto found = by_job_.find(job);
  REPRISE_CHECK(found != by_job_.end());
  const Deadline before{std::exchange(found->second.deadline, deadline), job};
  if (before.at == deadline) return;
  forget(before);
  add({deadline, job});
}

std::optional<Lease> LeaseTable::end(JobKey job) {
  const auto found = by_job_.find(job);
  if (found == by_job_.end()) return std::nullopt;
  Lease lease = std::move(found->second);
  by_job_.erase(found);
  forget({lease.deadline, job});
  return lease;
}

void LeaseTable::end_all_of(QueueNumber queue) {
  std::vector<JobKey> jobs;
  for (const auto& [job, lease] : by_job_) {
    if (job.queue == queue) jobs.push_back(job);
  }
  for (const JobKey job : jobs) end(job);
}

std::vector<Lease> LeaseTable::endless() const {
  std::vector<Lease> leases;
  for (const auto& [job, lease] : by_job_) {
    if (lease.deadline == kNever) leases.push_back(lease);
  }
  std::ranges::sort(leases, {}, &Lease::job);
  return leases;
}

const Lease* LeaseTable::first() const {
  if (rising_.empty() && others_.empty()) return nullptr;
  if (others_.empty()) return find(rising_.front().job);
  if (rising_.empty()) return find(others_.begin()->job);
  return find(std::min(rising_.front(), *others_.begin()).job);
}

void LeaseTable::add(const Deadline& deadline) {
  if (rising_.empty() || rising_.back() < deadline) {
    rising_.push_back(deadline);
  } else {
    others_.insert(deadline);
  }
}

void LeaseTable::forget(const Deadline& deadline) {
  if (!others_.empty()) others_.erase(deadline);
  while (!rising_.empty() && is_over(rising_.front())) rising_.pop_front();
  drop_what_is_over();
}

// A look at all of them, once in so many leases that it costs each of them next to nothing.
void LeaseTable::drop_what_is_over() {
  const std::size_t surplus = rising_.size() + others_.size() - by_job_.size();
  if (surplus <= kSurplusKept || surplus <= by_job_.size()) return;
  // One whose job was leased again until the same moment is not over, but may stand in both.
  std::erase_if(rising_, [this](const Deadline& one) {
    return is_over(one) || (!others_.empty() && others_.contains(one));
  });
}

bool LeaseTable::is_over(const Deadline& deadline) const {
  const Lease* lease = find(deadline.job);
  return lease == nullptr || lease->deadline != deadline.at;
}

}  // namespace reprise
