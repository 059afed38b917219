// Job: the plain values of one unit of work.
// JobRecord is written once at push; JobState changes with every attempt. A job without a state is
// fresh and pending, which is what most jobs are for most of their life.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/time.h"
#include "model/attempt_history.h"

namespace reprise {

enum class JobStatus : std::uint8_t {
  scheduled = 0,  // pushed with a delay that has not passed
  pending = 1,
  active = 2,  // leased
  failed = 3,  // cooling down until its retry
  dead = 4,
  completed = 5,
};
inline constexpr std::size_t kJobStatusCount = 6;

std::string_view status_name(JobStatus status);
std::optional<JobStatus> status_from_name(std::string_view name);

// fresh: no failure yet. retry: at least one.
enum class Lane : std::uint8_t { fresh = 0, retry = 1 };
std::string_view lane_name(Lane lane);

using Priority = std::uint32_t;  // lower is sooner
inline constexpr Priority kDefaultPriority = 1000;

inline constexpr std::string_view kDefaultFairnessKey = "default";

using Headers = std::vector<std::pair<std::string, std::string>>;

enum class PayloadKind : std::uint8_t { json = 0, bytes = 1 };

// By what a job is told apart from others of its queue when claims are shared out.
struct Scheduling {
  std::string fairness_key{kDefaultFairnessKey};
  std::uint32_t weight = 1;
  std::vector<std::string> throttle_keys;
  friend bool operator==(const Scheduling&, const Scheduling&) = default;
};
// Each has its place where it was named first; again, it changes nothing.
void add_throttle_key(Scheduling& scheduling, std::string key);

struct JobRecord {
  Timestamp pushed_at;
  Timestamp expires_at = kNever;  // from the job's or the queue's ttl
  Priority priority = kDefaultPriority;
  PayloadKind payload_kind = PayloadKind::json;
  std::optional<Duration> lease;  // of claims that do not say; nothing: the queue's
  std::string key;                // idempotency key; empty: none
  Headers headers;
  Scheduling scheduling;
  std::string payload;  // JSON exactly as it came, or bytes

  // What a quota counts.
  std::uint64_t byte_size() const;
  friend bool operator==(const JobRecord&, const JobRecord&) = default;
};
using RecordPtr = std::shared_ptr<const JobRecord>;

enum class DeathReason : std::uint8_t {
  none = 0,
  max_attempts = 1,
  final = 2,          // the client said so
  lease_expired = 3,  // the last allowed attempt ended without a word
  expired = 4,        // ttl
  corrupt = 5,
  worker_lost = 6,  // the last allowed attempt ended with its worker
  hook = 7,         // on_failure said so
  hook_error = 8,   // on_failure gave no answer, and the queue gives up then
  buried = 9,       // put aside by who had it, which is no failure
};
std::string_view death_reason_name(DeathReason reason);
std::optional<DeathReason> death_reason_from_name(std::string_view name);
enum class DecidedBy : std::uint8_t { policy = 0, client = 1, hook = 2 };
std::string_view decided_by_name(DecidedBy decided_by);
struct JobState;
// As people are told them: a hook's own words where there are any; "hook:VERSION".
std::string_view death_reason_text(const JobState& dead);
std::string decided_by_text(const JobState& dead);

struct JobState {
  JobStatus status = JobStatus::pending;
  std::uint32_t failures = 0;    // since push or manual retry
  std::uint32_t attempts = 0;    // leases ever granted
  std::uint32_t generation = 1;  // one more with each manual retry
  // scheduled: when it becomes pending. failed, and pending in the retry lane: the retry time,
  // which is also its place in the lane.
  Timestamp due{};
  // active only.
  std::uint64_t lease_nonce = 0;
  Timestamp lease_started_at{};
  Timestamp lease_deadline{};
  std::string worker;
  // Any time after the first attempt.
  Timestamp first_attempt_at{};
  std::string last_error;
  std::string last_error_type;
  AttemptHistory history;
  // When it came to its queue again, by a manual retry or from another queue: what its ttl counts
  // from then; zero: it never left.
  Timestamp returned_at{};
  // In a dead-letter queue: the name of the queue that the job died in; empty otherwise.
  std::string origin_queue;
  // dead only.
  DeathReason death_reason = DeathReason::none;
  DecidedBy decided_by = DecidedBy::policy;
  std::string death_note;    // in the hook's own words; empty: none
  std::string hook_version;  // of the script that decided
  // dead and completed.
  Timestamp ended_at{};

  Lane lane() const { return failures == 0 ? Lane::fresh : Lane::retry; }
  friend bool operator==(const JobState&, const JobState&) = default;
};
using StatePtr = std::shared_ptr<const JobState>;
// One that nobody else has seen yet, so that it may still be changed.
using StateDraft = std::shared_ptr<JobState>;

// What a stored state means at `now`: a delay that has passed needs no write to have passed.
// A missing state (null) is pending.
JobStatus effective_status(const JobState* state, Timestamp now);

// A job that is dead, or completed and kept: its record and the state it ended in, together.
struct EndedJob {
  RecordPtr record;
  StatePtr state;
};

// What an idempotency key points at, until when.
struct KeyEntry {
  Seq seq{};
  Timestamp expires_at{};
  friend bool operator==(const KeyEntry&, const KeyEntry&) = default;
};

}  // namespace reprise
