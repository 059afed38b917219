// Engine: the state machine of Reprise. In: commands and `now`. Out: replies, changes in the
// ledger, events, and answers to claims that waited.
// Deterministic: it reads no clock, no disk and no random device of its own; given the same ledger,
// random numbers and commands it does the same.
// Invariant: `now` never runs backwards from call to call.
// Threads: one owner; no locks, no blocking calls but the ledger's reads.
//
// Time-driven work (leases that expire, delays that end, ttls, claims that waited long enough) is
// done by tick(); next_wake() says when it is needed. Each tick does a bounded amount, so a million
// jobs due at once do not hold up commands: next_wake() is then in the past.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "base/time.h"
#include "engine/commands.h"
#include "engine/event.h"
#include "engine/failure_decision.h"
#include "engine/lease_table.h"
#include "engine/ledger.h"
#include "engine/step_budget.h"
#include "engine/waiting_claims.h"
#include "model/limits.h"
#include "model/operation.h"
#include "model/webhook.h"

namespace reprise {

struct QueueState;

class Engine {
 public:
  Engine(Ledger& ledger, Random& random, const Limits& limits);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // --- Recovery: first the server, then queues, then their jobs; no commands in between.
  void restore_server(const ServerState& server);
  void restore_queue(const QueueRecord& record, const QueueTotals& totals);
  struct StoredJob {
    JobKey key;
    Priority priority{};
    Timestamp expires_at = kNever;
    std::uint64_t byte_size{};  // needed for active jobs only: the queue's sum is in its totals
    const JobState* state = nullptr;  // null: fresh and pending
  };
  // The queue must have been restored. In any order, but ascending seqs are faster.
  void restore_job(const StoredJob& job);
  // The same for many jobs that are fresh and pending and have no ttl; ascending.
  void restore_fresh(QueueNumber queue, Priority priority, std::span<const Seq> seqs);
  void restore_operation(const Operation& operation);

  // --- Jobs.
  Result<PushReply> push(PushCommand command, Timestamp now);
  // Empty: the claim waits, and take_answers() will have it.
  std::optional<Result<ClaimReply>> claim(ClaimId id, ClaimCommand command, Timestamp now);
  // A claim that waits gets an empty reply.
  void cancel_claim(ClaimId id);
  void cancel_all_claims();
  ItemResults<Acked> ack(std::span<const AckItem> items, Timestamp now);
  ItemResults<Failed> fail(std::span<const FailItem> items, Timestamp now);
  ItemResults<Released> release(std::span<const ReleaseItem> items, Timestamp now);
  ItemResults<Extended> extend(std::span<const ExtendItem> items, Timestamp now);
  // Whatever its status, and whether or not it can be read.
  Result<DroppedJob> drop(const QueueName& queue, Seq seq, const std::string& asked_by,
                          Timestamp now);

  // --- Jobs that were given up. Each job is judged by itself.
  // Dead and failed jobs, and those that came to a dead-letter queue, are pending again.
  Result<SelectionReply> retry(const SelectionCommand& command, Timestamp now);
  // Dead jobs are gone for good.
  Result<SelectionReply> purge(const SelectionCommand& command, Timestamp now);
  Result<Operation> start_operation(const StartOperationCommand& command, Timestamp now);
  // What the caller found for an operation that runs: does it to these jobs, and notes where to go
  // on. `finished`: there are no more. Errc::operation_not_found; one that has ended meanwhile is
  // returned as it is, and nothing done.
  struct OperationStep {
    OperationId id{};
    std::vector<Seq> jobs;
    std::string cursor;
    bool finished = false;
    std::string failed;  // not empty: why it cannot go on
  };
  Result<Operation> step_operation(const OperationStep& step, Timestamp now);
  Result<Operation> cancel_operation(OperationId id, const std::string& asked_by, Timestamp now);
  Result<Operation> operation(OperationId id) const;
  const std::map<OperationId, Operation>& operations() const { return operations_; }

  // --- Queues.
  Result<PutQueueReply> put_queue(const PutQueueCommand& command, Timestamp now);
  Result<QueueStats> edit_queue(const QueueName& name, const ConfigEdit& edit, Timestamp now);
  Result<QueueStats> pause_queue(const QueueName& name, bool paused, Timestamp now);
  Result<QueueStats> delete_queue(const QueueName& name, const std::string& asked_by,
                                  Timestamp now);
  Result<QueueStats> queue_stats(const QueueName& name, Timestamp now);
  std::vector<QueueStats> list_queues(const std::string& ns, Timestamp now);  // "": all
  // Errc::queue_not_found says what was probably meant.
  Result<QueueNumber> find_queue(const QueueName& name) const;

  // --- Time.
  void tick(Timestamp now);
  Timestamp next_wake() const;

  // --- Housekeeping.
  // Forgets idempotency keys that are over or cannot be read. The caller found them in storage;
  // each is checked again.
  struct StoredKey {
    QueueNumber queue{};
    std::string key;
  };
  void forget_keys(std::span<const StoredKey> keys, Timestamp now);
  // What a queue keeps of jobs that have ended, for those who look for what it keeps no longer.
  struct Keeping {
    QueueNumber queue{};
    std::optional<Timestamp> dead_before;       // dead since before then: over
    std::uint64_t dead_beyond_max = 0;          // so many of the longest dead are too many
    std::optional<Timestamp> completed_before;  // completed before then: over
  };
  std::vector<Keeping> keepings(Timestamp now) const;
  // Lets go of ended jobs. The caller found them in the list of endings; each is checked again, and
  // entries with nothing behind them go too.
  struct EndedRef {
    JobKey job;
    JobStatus status{};  // dead or completed
    Timestamp ended_at;
    PurgeCause cause{};  // of a dead one
  };
  void let_go(std::span<const EndedRef> jobs, Timestamp now);
  // Deaths that were told, or given up.
  void finish_webhooks(std::span<const WebhookKey> keys);
  // Its name and config; null: there is no such queue any more.
  const QueueRecord* queue_record(QueueNumber number) const;
  // While set, pushes are refused with Errc::disk_full.
  void set_disk_low(bool low) { disk_low_ = low; }
  // Writes the totals and server state that changed since the last call. Call it once before each
  // commit, so that they cost one write per batch and not one per job.
  void seal(Timestamp now);

  struct ClaimAnswer {
    ClaimId id{};
    Result<ClaimReply> reply;
  };
  std::vector<ClaimAnswer> take_answers() { return std::exchange(answers_, {}); }
  std::vector<Event> take_events() { return std::exchange(events_, {}); }
  Seq next_seq() const { return server_.next_seq; }
  std::uint64_t next_audit() const { return server_.next_audit; }

 private:
  using QueuePtr = std::unique_ptr<QueueState>;

  // engine_queues.cpp
  QueueState* lookup(const QueueName& name) const;
  Error queue_not_found(const QueueName& name) const;
  QueueState& create_queue(const QueueName& name, const QueueConfig& config, Timestamp now);
  Status check_dead_letter_queue(const QueueName& name, const QueueConfig& config) const;
  QueueStats stats_of(QueueState& queue, Timestamp now);
  std::optional<Duration> oldest_pending_age(const QueueState& queue, Timestamp now);
  void touch(const QueueState& queue);  // its totals changed
  void rearm(QueueState& queue);

  // engine_push.cpp
  Result<PushedJob> push_one(QueueState& queue, NewJob job, Timestamp now);
  Status check_room(const QueueState& queue, std::uint64_t more_bytes) const;

  // engine_claim.cpp
  // Buries what turns out to be over its ttl or unreadable, within `budget`.
  ClaimReply grant(QueueState& queue, const ClaimCommand& command, StepBudget& budget,
                   Timestamp now);
  std::optional<Seq> next_job(QueueState& queue, LaneChoice choice);
  std::optional<ClaimedJob> lease_job(QueueState& queue, JobKey key, const ClaimCommand& command,
                                      StepBudget& budget, Timestamp now);
  void serve_waiting(QueueState& queue, Timestamp now);
  // The size of what was buried.
  std::uint64_t quarantine(QueueState& queue, JobKey key, const Error& why, Timestamp now);

  // engine_leases.cpp
  struct Held {
    QueueState* queue{};
    Lease lease;
  };
  struct AttemptEnd {
    AttemptOutcome outcome{};
    std::string error;
    std::string error_type;
  };
  Result<Held> held_lease(const Result<LeaseToken>& token, Timestamp now);
  Error lease_lost(const LeaseToken& token, Timestamp now);
  Result<Failed> end_in_failure(QueueState& queue, const Lease& lease, const Failure& failure,
                                const AttemptEnd& end, Timestamp now);
  Result<Acked> ack_one(const AckItem& item, Timestamp now);
  void keep_completed(QueueState& queue, const Lease& lease, Timestamp now);
  Result<Released> release_one(const ReleaseItem& item, Timestamp now);
  Result<JobState> end_attempt(const Lease& lease, const AttemptEnd& end, Timestamp now);
  void end_lease(QueueState& queue, const Lease& lease);
  void grant_lease(QueueState& queue, const Lease& lease);
  // Puts a job that is no longer leased where its state says.
  void place(QueueState& queue, JobKey key, Priority priority, const JobState& state,
             Timestamp now);

  // engine_burial.cpp
  // The caller has ended its lease or taken it out of its lane, and called forget_job().
  void bury(QueueState& queue, JobKey key, RecordPtr record, JobState state, DeathReason reason,
            DecidedBy decided_by, Timestamp now);
  RecordPtr record_for_burial(JobKey key, DeathReason& reason);
  QueueState* dead_letter_queue_of(const QueueState& queue, DeathReason reason, Timestamp now);
  static Timestamp expiry_of(const QueueState& queue, Timestamp now);
  // A job that is in no queue at the moment comes to one, pending.
  void admit(QueueState& queue, Seq seq, JobRecord record, JobState state, Timestamp now);

  // engine_retry.cpp
  Status check_disk_for_retry() const;
  Status retry_one(QueueState& queue, Seq seq, Timestamp now);
  Status retry_dead(QueueState& queue, JobKey key, const EndedJob& dead, Timestamp now);
  Status retry_alive(QueueState& queue, JobKey key, Timestamp now);
  void come_back(QueueState& from, QueueState& to, Seq seq, JobRecord record, JobState state,
                 Timestamp now);
  Result<QueueState*> home_of(QueueState& queue, const JobState& state);
  Status purge_one(QueueState& queue, Seq seq, PurgeCause cause, Timestamp now);
  // What a job is, also one that cannot be read; nothing: it is not there.
  std::optional<JobStatus> status_of(JobKey key, Timestamp now);
  static Keeping keeping_of(const QueueState& queue, Timestamp now);
  void let_go_one(QueueState& queue, const EndedRef& ref, Timestamp now);
  // Why nothing can be done to a job that is not among the dead.
  Error refusal(QueueState& queue, Seq seq, std::string_view what, Timestamp now);

  // engine_operations.cpp
  using JobAction = Status (Engine::*)(QueueState&, Seq, Timestamp);
  Result<SelectionReply> select(const SelectionCommand& command, AuditAction action, JobAction act,
                                Timestamp now);
  Status purge_by_hand(QueueState& queue, Seq seq, Timestamp now);
  void end_operation(Operation& operation, OperationState state, std::string error, Timestamp now);
  void forget_old_operations();
  void note_skipped(Operation& operation, Seq seq, const Error& why, Timestamp now);
  std::uint64_t write_audit(AuditRecord record, Timestamp now);
  AuditRecord audit_of(const Operation& operation) const;

  // engine_drop.cpp
  // What the job was; nullopt when it is not among the living, or the dead.
  Result<std::optional<JobStatus>> drop_alive(QueueState& queue, JobKey key, Timestamp now);
  Result<std::optional<JobStatus>> drop_ended(QueueState& queue, JobKey key);
  void forget_waiting(QueueState& queue, JobKey key, const JobRecord& record,
                      const JobState* state);
  std::optional<JobStatus> forget_unreadable(QueueState& queue, JobKey key, Timestamp now);
  // The caller has ended its lease or taken it out of its lane; it touches the queue, since every
  // end counts as something.
  void forget_job(QueueState& queue, JobKey key, Timestamp expires_at, std::uint64_t byte_size);

  // engine_timers.cpp
  void expire_leases(Timestamp now);
  void end_delays(QueueState& queue, Timestamp now);
  void expire_jobs(QueueState& queue, StepBudget& budget, Timestamp now);
  void expire_job(QueueState& queue, JobKey key, StepBudget& budget, Timestamp now);

  void emit(EventType type, const QueueState& queue, Seq seq, Timestamp now, Event details = {});

  Ledger& ledger_;
  Random& random_;
  const Limits limits_;

  ServerState server_;
  bool server_changed_ = false;
  bool disk_low_ = false;
  absl::flat_hash_map<QueueName, QueuePtr> queues_;
  absl::flat_hash_map<QueueNumber, QueueState*> by_number_;
  LeaseTable leases_;
  WaitingClaims waiting_;
  absl::btree_set<std::pair<Timestamp, QueueNumber>> wakes_;
  absl::btree_set<QueueNumber> touched_;  // totals not yet written
  std::map<OperationId, Operation> operations_;

  std::vector<ClaimAnswer> answers_;
  std::vector<Event> events_;
};

}  // namespace reprise
