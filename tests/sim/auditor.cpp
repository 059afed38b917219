#include "sim/auditor.h"

#include "sim/describe.h"
#include "sim/violation.h"

namespace reprise::sim {

void Auditor::granted(const ClaimReply& reply, Timestamp now) {
  for (const ClaimedJob& claimed : reply.jobs) {
    const JobKey job = claimed.token.job;
    require(secrets_.insert(claimed.token.nonce).second,
            "two leases have the same secret: " + describe(claimed.token));
    require(!acked_.contains(job.seq), "job " + describe(job) + " was given out after its ack");
    const auto lease = leased_until_.find(job.seq);
    require(lease == leased_until_.end() || lease->second <= now,
            "job " + describe(job) + " has two live leases");
    token_used(job);
  }
}

void Auditor::token_used(JobKey job) {
  ++touches_[job.seq];
  leased_until_.erase(job.seq);
}

void Auditor::end_asked(JobKey job) {
  token_used(job);
  end_asked_.insert(job.seq);
}

std::uint64_t Auditor::touches(JobKey job) const {
  const auto found = touches_.find(job.seq);
  return found == touches_.end() ? 0 : found->second;
}

void Auditor::told_leased(JobKey job, Timestamp until, std::uint64_t touches_then) {
  if (touches(job) == touches_then) leased_until_[job.seq] = until;
}

void Auditor::check_nothing_is_lost(const Image& image) const {
  std::set<Seq> open;  // to be worked off, or dead
  std::set<Seq> completed;
  const auto take = [](std::set<Seq>& seqs, const auto& jobs) {
    for (const auto& [key, job] : jobs) {
      require(seqs.insert(key.seq).second, "job " + describe(key) + " is in two places");
    }
  };
  take(open, image.records);
  take(open, image.dead);
  take(completed, image.completed);
  for (const Seq seq : pushed_) {
    require(end_asked_.contains(seq) || open.contains(seq),
            "job " + std::to_string(seq) + " is lost, and its push had been acknowledged");
  }
  for (const Seq seq : acked_) {
    require(!open.contains(seq),
            "job " + std::to_string(seq) + " is back, and its ack had been acknowledged");
  }
  for (const Seq seq : completed) {
    require(!open.contains(seq), "job " + std::to_string(seq) + " is done and is not");
  }
}

}  // namespace reprise::sim
