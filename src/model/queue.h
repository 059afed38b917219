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

// When to try again after a failure. With nothing configured, a job is dead at its first failure.
struct RetryPolicy {
  std::uint32_t attempts = 0;  // dead at this many failures; 0 and 1: at the first
  Duration cooldown{};         // wait before each retry
  friend bool operator==(const RetryPolicy&, const RetryPolicy&) = default;
};

struct QueueConfig {
  Duration lease = std::chrono::seconds(30);
  std::optional<Duration> ttl;  // for jobs that bring none of their own
  RetryPolicy retry;
  std::optional<std::uint64_t> max_jobs;         // scheduled + pending + active + failed
  std::optional<std::uint64_t> max_bytes;        // of the same jobs
  Duration key_window = std::chrono::hours(24);  // how long an idempotency key is remembered
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
  std::uint64_t corrupt = 0;  // died because they could not be read
  // Dead jobs live on disk only, so their number is kept rather than counted at start.
  std::uint64_t dead_now = 0;
  // The bytes of all jobs that are not dead; kept, because counting them at start would take a look
  // at every record.
  std::uint64_t live_bytes = 0;
  friend bool operator==(const QueueTotals&, const QueueTotals&) = default;
};

struct QueueStats {
  QueueRecord queue;
  std::array<std::uint64_t, kJobStatusCount> by_status{};  // index: JobStatus; completed: a total
  std::uint64_t bytes = 0;                                 // of all jobs that are not dead
  std::optional<Duration> oldest_pending_age;
  std::uint64_t waiting_claims = 0;
  QueueTotals totals;
  // Per second, over the last minute.
  double push_rate = 0;
  double claim_rate = 0;
  double completion_rate = 0;
  double failure_rate = 0;
};

}  // namespace reprise
