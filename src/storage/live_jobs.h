// What a restart needs to know of the jobs that are not dead: enough to put each in its lane, timer
// or lease, and no more. The records themselves are read, and their checksums verified, when a job
// is claimed.
#pragma once

#include <optional>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "model/job.h"
#include "storage/storage.h"

namespace reprise::storage {

inline constexpr std::uint32_t kFailuresKnown = 255;

struct LiveJob {
  JobKey key;
  Priority priority{};
  Timestamp expires_at = kNever;
  Scheduling scheduling;
  // Of a job that is not fresh and pending: status, failures (up to kFailuresKnown), due, and of an
  // active one its lease's nonce and deadline. Nothing else of it is set.
  std::optional<JobState> state;
};

class LiveJobVisitor {
 public:
  virtual ~LiveJobVisitor() = default;
  // Fresh pending jobs without a ttl and with the same attributes: most jobs, many at a time.
  // Ascending.
  virtual Status fresh(QueueNumber queue, Priority priority, const Scheduling& scheduling,
                       std::span<const Seq> seqs) = 0;
  virtual Status other(const LiveJob& job) = 0;
};

// The slow way: reads every record. For storages that keep no index, and to check those that do.
Status scan_live_jobs(const Storage::Snapshot& snapshot, LiveJobVisitor& visitor);

// What is kept of a state.
JobState outline_of(const JobState& state);

// "job 7ZK3M9QAX2B4C of queue number 3"
std::string describe_job(std::string_view key);

}  // namespace reprise::storage
