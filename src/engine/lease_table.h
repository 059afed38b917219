// LeaseTable: which job is out with which secret, and until when.
// Invariants: a job has at most one lease. Each lease of by_job_ stands in rising_ or others_ with
// its deadline; others_ has nothing else, rising_ also deadlines of leases that have ended, which
// are about as many as there are leases at most.
// Nothing here is durable: leases are stored in job states, and a restart rebuilds this table.
// Threads: the engine's only. Time: never read here.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
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
  // Those without a deadline, in the order of their jobs. Looks at all leases.
  std::vector<Lease> endless() const;

  // The lease that ends first.
  const Lease* first() const;
  std::size_t size() const { return by_job_.size(); }

 private:
  struct Deadline {
    Timestamp at;
    JobKey job;
    friend auto operator<=>(const Deadline&, const Deadline&) = default;
  };

  void add(const Deadline& deadline);
  // Of a lease that has ended already, or has another one now.
  void forget(const Deadline& deadline);
  bool is_over(const Deadline& deadline) const;
  void drop_what_is_over();

  absl::flat_hash_map<JobKey, Lease, NeighbourHash> by_job_;
  // Most leases are as long as those before them, so that their deadlines come in rising order, and
  // most end long before these: nothing needs to be searched for. The first is that of a lease.
  std::deque<Deadline> rising_;
  absl::btree_set<Deadline> others_;
};

}  // namespace reprise
