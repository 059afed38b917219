// Queue: its name, its configuration, and the numbers people see about it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "model/job.h"
#include "model/retry_policy.h"

namespace reprise {

inline constexpr std::string_view kDefaultNamespace = "default";

struct QueueName {
  std::string ns{kDefaultNamespace};  // namespace
  std::string name;
  friend auto operator<=>(const QueueName&, const QueueName&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const QueueName& queue) {
    return H::combine(std::move(h), queue.ns, queue.name);
  }
};

// How the lanes share claims.
struct FetchPolicy {
  // Of the jobs given while both lanes wait, so many millionths come from the retry lane. Whole
  // parts, so that carried credit never drifts.
  std::uint32_t retry_share_ppm = 200'000;
  std::optional<std::uint64_t> retry_in_flight;  // retries leased at once; nothing: no limit
  friend bool operator==(const FetchPolicy&, const FetchPolicy&) = default;
};
inline constexpr std::uint32_t kWholeShare = 1'000'000;

struct QueueConfig {
  Duration lease = std::chrono::seconds(30);
  std::optional<Duration> ttl;  // for jobs that bring none of their own
  RetryPolicy retry;
  FetchPolicy fetch;
  std::optional<std::uint64_t> max_jobs;         // scheduled + pending + active + failed
  std::optional<std::uint64_t> max_bytes;        // of the same jobs
  Duration key_window = std::chrono::hours(24);  // how long an idempotency key is remembered
  std::string dead_letter_queue;                 // in the same namespace; empty: none
  std::optional<Duration> keep_dead;             // how long; nothing: for good
  std::optional<std::uint64_t> max_dead;
  std::optional<Duration> keep_completed;  // how long; nothing: not at all
  std::string on_dead_webhook;             // an address to tell deaths to; empty: none
  friend bool operator==(const QueueConfig&, const QueueConfig&) = default;
};

// A queue as it is stored.
struct QueueRecord {
  QueueNumber number{};
  QueueName name;
  QueueConfig config;
  bool paused = false;
  Timestamp created_at{};
  friend bool operator==(const QueueRecord&, const QueueRecord&) = default;
};

// Totals since the queue was created, and sums that a start must not have to count; durable.
struct QueueTotals {
  std::uint64_t pushed = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t claimed = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;  // failures of any kind, lease expiries included
  std::uint64_t released = 0;
  std::uint64_t lease_expired = 0;
  std::uint64_t expired = 0;  // by ttl
  std::uint64_t died = 0;
  std::uint64_t dropped = 0;
  std::uint64_t corrupt = 0;        // died because they could not be read
  std::uint64_t moved_in = 0;       // from another queue: to a dead-letter queue, or back from one
  std::uint64_t moved_out = 0;      // to another queue
  std::uint64_t claimed_retry = 0;  // of `claimed`, those from the retry lane
  std::uint64_t retried = 0;        // by hand
  std::uint64_t purged = 0;         // by hand
  std::uint64_t dead_expired = 0;   // deleted because of keep_dead
  std::uint64_t dead_evicted = 0;   // deleted because of max_dead
  // Dead jobs live on disk only, so their number is kept rather than counted at start.
  std::uint64_t dead_now = 0;
  std::uint64_t completed_now = 0;  // those that keep_completed keeps
  // The bytes of all jobs that are not dead; kept, because counting them at start would take a look
  // at every record.
  std::uint64_t live_bytes = 0;
  friend bool operator==(const QueueTotals&, const QueueTotals&) = default;
};

// Retries that wait, by how often they have failed: 1 to 9, and 10 or more.
inline constexpr std::size_t kFailureBuckets = 10;
using RetryCounts = std::array<std::uint64_t, kFailureBuckets>;
// The place of `failures` (at least 1) among them.
constexpr std::size_t failure_bucket(std::uint32_t failures) {
  return (failures < kFailureBuckets ? failures : kFailureBuckets) - 1;
}

// "1" to "9", "10+".
std::string_view failure_bucket_name(std::size_t bucket);

struct LaneStats {
  std::uint64_t fresh = 0;  // pending
  std::uint64_t retry = 0;  // pending
  std::uint64_t retry_in_flight = 0;
  double retry_credit = 0;  // 0 to 1
  RetryCounts retries_by_failures{};
};

struct QueueStats {
  QueueRecord queue;
  std::array<std::uint64_t, kJobStatusCount> by_status{};  // index: JobStatus; completed: a total
  std::uint64_t bytes = 0;                                 // of all jobs that are not dead
  std::optional<Duration> oldest_pending_age;
  std::uint64_t waiting_claims = 0;
  LaneStats lanes;
  QueueTotals totals;
  // Per second, over the last minute.
  double push_rate = 0;
  double claim_rate = 0;
  double completion_rate = 0;
  double failure_rate = 0;
};

}  // namespace reprise
