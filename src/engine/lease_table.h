// LeaseTable: which job is out with which secret, and until when.
// Invariants: a job has at most one lease; by_deadline_ and by_job_ hold the same leases.
// Nothing here is durable: leases are stored in job states, and a restart rebuilds this table.
// Threads: the engine's only. Time: never read here.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "engine/fair_key.h"
#include "model/job.h"

namespace reprise {

// Leases of the server's own workers are told from those of clients by their secret, which nobody
// else has a say in. So nothing more needs to be stored, and nobody can pretend.
inline constexpr std::uint64_t kOwnLeaseMask = 0xFFFF;
inline constexpr std::uint64_t kOwnLeaseMark = 0x5752;
constexpr bool is_own_lease(std::uint64_t nonce) {
  return (nonce & kOwnLeaseMask) == kOwnLeaseMark;
}

struct Lease {
  JobKey job;
  std::uint64_t nonce{};
  Timestamp deadline;
  // What ending the lease needs to know without reading the record.
  Priority priority{};
  Timestamp expires_at = kNever;
  std::uint64_t byte_size{};
  Lane lane = Lane::fresh;
  StrandRef strand;
  std::uint32_t trial = 0;  // of the queue's breaker that it is a canary of; 0: it is none
};

class LeaseTable {
 public:
  // The job must not have a lease.
  void grant(const Lease& lease);
  const Lease* find(JobKey job) const;
  // The job must have a lease.
  void extend(JobKey job, Timestamp deadline);
  // The lease that ended, if there was one.
  std::optional<Lease> end(JobKey job);
  void end_all_of(QueueNumber queue);
  // Those without a deadline.
  std::vector<Lease> endless() const;

  // The lease that ends first.
  const Lease* first() const;
  std::size_t size() const { return by_job_.size(); }

 private:
  absl::flat_hash_map<JobKey, Lease, NeighbourHash> by_job_;
  absl::btree_set<std::pair<Timestamp, JobKey>> by_deadline_;
};

}  // namespace reprise
