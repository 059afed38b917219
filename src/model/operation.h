// Operation: a retry or purge of all jobs that a filter selects, done in steps by the server and
// gone on with after a restart. And AuditRecord: what is remembered of it, and of every other
// change made by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/errc.h"
#include "base/ids.h"
#include "base/json_writer.h"
#include "base/rate.h"
#include "base/time.h"
#include "model/job_filter.h"
#include "model/queue.h"

namespace reprise {

using OperationId = std::uint64_t;

enum class OperationKind : std::uint8_t { retry = 0, purge = 1 };
std::string_view operation_kind_name(OperationKind kind);

enum class OperationState : std::uint8_t { running = 0, done = 1, cancelled = 2, failed = 3 };
std::string_view operation_state_name(OperationState state);
std::optional<OperationState> operation_state_from_name(std::string_view name);

// A job that was selected and left alone.
struct SkippedJob {
  std::string id;
  std::optional<JobStatus> status;  // nothing: the id names no job
  Errc code{};
  std::string reason;
  friend bool operator==(const SkippedJob&, const SkippedJob&) = default;
};

struct Operation {
  OperationId id{};
  OperationKind kind{};
  QueueNumber queue{};
  QueueName name;
  JobFilter filter;
  std::optional<std::uint64_t> limit;
  std::optional<Rate> rate;
  std::optional<std::uint64_t> total;  // at most so many are to do, when that is known
  std::string asked_by;                // the name of a token; empty: none
  std::uint64_t audit_number{};
  Timestamp started_at{};

  OperationState state = OperationState::running;
  std::uint64_t done = 0;
  std::uint64_t skipped = 0;
  std::vector<SkippedJob> first_skipped;  // up to kSkippedTold
  // Where to go on, in the terms of whoever finds the jobs (broker/selection.h); empty: the start.
  std::string cursor;
  Timestamp ended_at{};
  std::string error;  // when it failed
  friend bool operator==(const Operation&, const Operation&) = default;

  std::uint64_t left() const { return limit ? *limit - (done < *limit ? done : *limit) : ~0ULL; }
};
inline constexpr std::size_t kSkippedTold = 10;

enum class AuditAction : std::uint8_t {
  retry = 0,
  purge = 1,
  drop = 2,
  delete_queue = 3,
  cancel = 4,
};
std::string_view audit_action_name(AuditAction action);
std::optional<AuditAction> audit_action_from_name(std::string_view name);

struct AuditRecord {
  std::uint64_t number{};
  Timestamp at{};
  AuditAction action{};
  QueueName queue;
  std::string asked_by;
  std::vector<std::string> ids;  // the first few
  std::optional<JobFilter> filter;
  std::uint64_t done = 0;
  std::uint64_t skipped = 0;
  std::uint64_t not_found = 0;
  OperationId operation = 0;  // 0: none
  friend bool operator==(const AuditRecord&, const AuditRecord&) = default;
};
inline constexpr std::size_t kAuditIdsTold = 10;

}  // namespace reprise
