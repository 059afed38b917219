#include "sim/auditor.h"

#include "sim/describe.h"
#include "sim/violation.h"

namespace reprise::sim {

void Auditor::granted(const ClaimReply& reply, Timestamp now) {
  for (const ClaimedJob& claimed : reply.jobs) {
    const JobKey job = claimed.token.job;
    require(secrets_.insert(claimed.token.nonce).second,
            "two leases have the same secret: " + describe(claimed.token));
    require(!acked_.contains(job), "job " + describe(job) + " was given out after its ack");
    const auto lease = leased_until_.find(job);
    require(lease == leased_until_.end() || lease->second <= now,
            "job " + describe(job) + " has two live leases");
    token_used(job);
  }
}

void Auditor::token_used(JobKey job) {
  ++touches_[job];
  leased_until_.erase(job);
}

void Auditor::end_asked(JobKey job) {
  token_used(job);
  end_asked_.insert(job);
}

std::uint64_t Auditor::touches(JobKey job) const {
  const auto found = touches_.find(job);
  return found == touches_.end() ? 0 : found->second;
}

void Auditor::told_leased(JobKey job, Timestamp until, std::uint64_t touches_then) {
  if (touches(job) == touches_then) leased_until_[job] = until;
}

void Auditor::check_nothing_is_lost(const Image& image) const {
  for (const JobKey job : pushed_) {
    const bool may_be_gone = end_asked_.contains(job) || ended_queues_.contains(job.queue);
    require(may_be_gone || image.records.contains(job) || image.dead.contains(job),
            "job " + describe(job) + " is lost, and its push had been acknowledged");
  }
  for (const JobKey job : acked_) {
    require(!image.records.contains(job) && !image.dead.contains(job),
            "job " + describe(job) + " is back, and its ack had been acknowledged");
  }
}

}  // namespace reprise::sim
