#include "engine/lease_table.h"

#include <vector>

#include "base/check.h"

namespace reprise {

void LeaseTable::grant(const Lease& lease) {
  const bool inserted = by_job_.emplace(lease.job, lease).second;
  REPRISE_CHECK(inserted);
  by_deadline_.emplace(lease.deadline, lease.job);
}

const Lease* LeaseTable::find(JobKey job) const {
  const auto found = by_job_.find(job);
  return found == by_job_.end() ? nullptr : &found->second;
}

void LeaseTable::extend(JobKey job, Timestamp deadline) {
  const auto found = by_job_.find(job);
  REPRISE_CHECK(found != by_job_.end());
  by_deadline_.erase({found->second.deadline, job});
  by_deadline_.emplace(deadline, job);
  found->second.deadline = deadline;
}

std::optional<Lease> LeaseTable::end(JobKey job) {
  const auto found = by_job_.find(job);
  if (found == by_job_.end()) return std::nullopt;
  Lease lease = std::move(found->second);
  by_deadline_.erase({lease.deadline, job});
  by_job_.erase(found);
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
  for (auto at = by_deadline_.lower_bound({kNever, JobKey{}}); at != by_deadline_.end(); ++at) {
    leases.push_back(*find(at->second));
  }
  return leases;
}

const Lease* LeaseTable::first() const {
  return by_deadline_.empty() ? nullptr : find(by_deadline_.begin()->second);
}

}  // namespace reprise
