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

std::uint64_t Auditor::throttle_changed(const Throttle& throttle) {
  spending_.erase({throttle.ns, throttle.key});
  return ++changes_[{throttle.ns, throttle.key}];
}

void Auditor::told_throttle(const Throttle& throttle, Timestamp at, std::uint64_t changes) {
  if (changes_.at({throttle.ns, throttle.key}) != changes) return;
  spending_[{throttle.ns, throttle.key}] = {.throttle = throttle, .since = at};
}

void Auditor::told_started(const std::string& ns, const JobRecord& record, Timestamp at) {
  const auto& named = record.scheduling.throttle_keys;
  for (const std::string& key : std::set<std::string>(named.begin(), named.end())) {
    const auto found = spending_.find({ns, key});
    if (found == spending_.end()) continue;
    auto& [throttle, since, started] = found->second;
    const std::uint64_t come = static_cast<std::uint64_t>((at - since).count()) *
                               throttle.rate.count /
                               static_cast<std::uint64_t>(throttle.rate.per.count());
    ++started;
    require(started <= throttle.burst + come,
            "throttle '" + key + "' has let " + std::to_string(started) + " go, and had " +
                std::to_string(throttle.burst + come) + " tokens");
  }
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
