// Commands and replies: what can be asked of the engine, as plain values. Multi-item is the only
// form; one job is a batch of one. Per-item results stand at the index of their item.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/time.h"
#include "model/job.h"
#include "model/operation.h"
#include "model/queue.h"

namespace reprise {

// Names a push or a fail while it waits for hooks, so that it can be answered; unique, given by the
// caller.
using RequestId = std::uint64_t;

struct NewJob {
  std::string payload;
  PayloadKind payload_kind = PayloadKind::json;
  Headers headers;
  Duration delay{};
  Priority priority = kDefaultPriority;
  std::optional<Duration> ttl;
  std::string key;                // empty: none
  Duration least_key_window{};    // its key is remembered so long where the queue says less
  std::optional<Duration> lease;  // of claims that do not say; nothing: the queue's
  Scheduling scheduling;
};

struct PushCommand {
  QueueName queue;
  bool create = false;  // make the queue with defaults when it is not there
  // An item that the server could refuse on its own (limits, bad field) arrives as its error, so
  // that results keep their places.
  std::vector<Result<NewJob>> jobs;
};
struct PushedJob {
  Seq seq{};
  bool duplicate = false;  // the key was known; seq is the job it named first
};
struct PushReply {
  std::vector<Result<PushedJob>> results;
};

// Names a claim while it waits, so that it can be answered or cancelled; unique, given by the
// caller.
using ClaimId = std::uint64_t;

enum class LaneChoice : std::uint8_t { any, fresh, retry };

struct ClaimCommand {
  QueueName queue;
  // Further queues; the most urgent job of them all comes first. Those that are not there (any
  // more) have no jobs.
  std::vector<QueueName> also;
  std::uint32_t max = 1;
  Duration wait{};                // how long to wait for the first job
  std::optional<Duration> lease;  // default: the job's, or the queue's
  LaneChoice lane = LaneChoice::any;
  std::string worker;  // who asks; kept in the job's history
  // By a worker of this very server: what it holds when the server ends is given back by the next
  // one (release_own), however long that takes.
  bool own = false;
};
struct ClaimedJob {
  LeaseToken token;  // token.job says which
  RecordPtr record;
  std::uint32_t attempts{};
  std::uint32_t failures{};
  Timestamp lease_deadline;
  std::string last_error;
};
struct ClaimReply {
  std::vector<ClaimedJob> jobs;
  std::uint64_t payload_bytes = 0;  // of all of them
};

// One item each of ack, fail, release and extend. A token that could not be decoded arrives as its
// error.
struct AckItem {
  Result<LeaseToken> token;
};
struct FailItem {
  Result<LeaseToken> token;
  std::string error;
  std::string error_type;
  AttemptOutcome outcome = AttemptOutcome::failed;  // or worker_lost
  std::optional<Duration> delay;                    // retry then, instead of when the policy says
  bool final = false;                               // give up now
};
struct ReleaseItem {
  Result<LeaseToken> token;
  Duration delay{};
  bool undelivered = false;          // nobody has got it, so its tokens are there again
  std::optional<Priority> priority;  // from now on
  AttemptOutcome outcome = AttemptOutcome::released;  // or worker_lost, which is no failure here
};
struct BuryItem {
  Result<LeaseToken> token;
  std::optional<Priority> priority;  // when it comes back
};
struct ExtendItem {
  Result<LeaseToken> token;
  std::optional<Duration> lease;  // from now on; default: the job's, or the queue's
};

struct Acked {
  JobKey job;
};
struct Failed {
  JobKey job;
  JobStatus status{};  // failed, or dead
  Timestamp retry_at{};
  DeathReason reason = DeathReason::none;
  std::string death_note;  // in the hook's own words; empty: none
};
struct Released {
  JobKey job;
};
struct Buried {
  JobKey job;
};
struct Extended {
  JobKey job;
  Timestamp lease_deadline;
};
template <class T>
using ItemResults = std::vector<Result<T>>;

struct PutQueueCommand {
  QueueName queue;
  QueueConfig config;
  bool only_if_absent = false;  // Errc::queue_exists otherwise
};
struct PutQueueReply {
  bool created = false;
  QueueStats stats;
};

// Edits a config in place or refuses; runs on the engine's thread, so it sees the current one.
using ConfigEdit = std::function<Status(QueueConfig&)>;

// Jobs named by hand. An id that names no job, or several, arrives as its error.
struct SelectedJob {
  std::string id;  // as it was given
  Result<Seq> seq;
};
struct SelectionCommand {
  QueueName queue;
  std::vector<SelectedJob> jobs;
  std::string asked_by;  // the name of the token it came with; empty: none
};
struct SelectionReply {
  std::uint64_t done = 0;
  std::vector<SkippedJob> skipped;
  std::vector<std::string> not_found;
  std::optional<Error> first_refusal;
};

// A retry or purge of all that a filter selects.
struct StartOperationCommand {
  OperationKind kind{};
  QueueName queue;
  JobFilter filter;
  std::optional<std::uint64_t> limit;
  std::optional<Rate> rate;
  std::string asked_by;
};

struct DroppedJob {
  JobKey job;
  JobStatus status{};  // what it was
};

}  // namespace reprise
