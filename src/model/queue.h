// Queue: its name, its configuration, and the numbers people see about it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "model/hook_kind.h"
#include "model/job.h"
#include "model/outage_policy.h"
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
  std::optional<std::uint64_t> concurrency;          // jobs leased at once; nothing: no limit
  std::optional<std::uint64_t> concurrency_per_key;  // the same, of each fairness key
  std::optional<OutagePolicy> breaker;
  std::optional<std::uint64_t> max_jobs;         // scheduled + pending + active + failed
  std::optional<std::uint64_t> max_bytes;        // of the same jobs
  Duration key_window = std::chrono::hours(24);  // how long an idempotency key is remembered
  std::string dead_letter_queue;                 // in the same namespace; empty: none
  std::optional<Duration> keep_dead;             // how long; nothing: for good
  std::optional<std::uint64_t> max_dead;
  std::optional<Duration> keep_completed;         // how long; nothing: not at all
  std::string on_dead_webhook;                    // an address to tell deaths to; empty: none
  std::array<std::string, kHookKindCount> hooks;  // Lua, index: HookKind; empty: none
  OnHookError on_hook_error = OnHookError::retry;
  std::optional<std::uint32_t> hook_timeout_ms;    // nothing: the server's default
  std::optional<std::uint64_t> hook_memory_bytes;  // the same
  std::vector<std::string> vars;                   // fields that a payload must have
  std::string defaults;  // JSON object: fields that a payload gets; empty: none

  const std::string& hook(HookKind kind) const { return hooks[static_cast<std::size_t>(kind)]; }
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

enum class BreakerState : std::uint8_t {
  closed = 0,
  open = 1,   // nothing is asked until its time is over
  trial = 2,  // one call is out, or would be; it decides
};
std::string_view breaker_state_name(BreakerState state);

// One hook of a queue; counts since the server started.
struct HookStats {
  std::string version;
  BreakerState breaker = BreakerState::closed;
  Timestamp open_until{};  // when open
  std::uint32_t failures_in_a_row = 0;
  std::uint64_t opened = 0;  // times
  std::uint64_t succeeded = 0;
  std::uint64_t remembered = 0;  // of those: answered from memory, without a call
  std::array<std::uint64_t, kHookFaultCount> failed{};  // index: HookFault
  std::uint64_t in_flight = 0;                          // calls that are out, or wait for it
  std::string last_error;                               // empty: there was none
  Timestamp last_error_at{};
  friend bool operator==(const HookStats&, const HookStats&) = default;
};

// The breaker of a queue; counts since the server started.
struct OutageStats {
  BreakerState state = BreakerState::closed;
  Timestamp open_until{};    // when open
  std::uint64_t opened = 0;  // times
  std::uint64_t spared = 0;  // failures that did not count
  double failure_rate = 0;   // 0 to 1, of the attempts in the window; when closed
  std::uint64_t ended = 0;   // how many those are
  std::uint32_t canaries_out = 0;
};

// A fairness key of a queue.
struct KeyStats {
  std::string key;
  std::uint64_t pending = 0;
  std::uint64_t active = 0;
  std::uint32_t weight = 0;     // 0: it has no jobs any more
  std::uint64_t delivered = 0;  // in the last minute
  double share = 0;             // 0 to 1, of all that was delivered in the last minute
};
inline constexpr std::size_t kTopKeys = 20;
struct KeysStats {
  std::uint64_t active = 0;   // keys that have jobs, leased ones too
  std::vector<KeyStats> top;  // most pending or delivered first; at most kTopKeys
  KeyStats other;             // the sum of the others; without key and weight
};

struct QueueStats {
  QueueRecord queue;
  std::array<std::uint64_t, kJobStatusCount> by_status{};  // index: JobStatus; completed: a total
  std::uint64_t bytes = 0;                                 // of all jobs that are not dead
  std::optional<Duration> oldest_pending_age;
  std::uint64_t waiting_claims = 0;
  LaneStats lanes;
  KeysStats keys;
  std::optional<OutageStats> breaker;                          // nothing: it has none
  std::array<std::optional<HookStats>, kHookKindCount> hooks;  // index: HookKind; nothing: none
  QueueTotals totals;
  // Per second, over the last minute.
  double push_rate = 0;
  double claim_rate = 0;
  double completion_rate = 0;
  double failure_rate = 0;
};

}  // namespace reprise
