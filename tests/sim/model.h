// Model: what the engine must do, in the plainest way: jobs in a map, looked through from end to
// end. It knows the promises of docs/api.md and docs/failures.md and none of the engine's
// structures, and it can be copied, so that a crash goes back to the copy of the last batch that
// survived.
// Replies are those of the engine, except that errors carry only their code and tokens come without
// their secret, which learn() fills in. What chance decides within bounds (jitter) is told by
// retries_at() before the command that it belongs to, and checked against the bounds.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/commands.h"
#include "engine/engine.h"
#include "engine/event.h"
#include "model/job.h"
#include "model/operation.h"
#include "model/queue.h"
#include "model/webhook.h"

namespace reprise::sim {

class Model {
 public:
  struct Job {
    JobRecord record;
    JobState state;
    // Pending as the engine sees it: a delay that has passed is noticed by the next tick.
    bool in_lane = false;
  };
  struct Queue {
    QueueRecord record;
    QueueTotals totals;       // without what can be counted: see totals_of()
    std::map<Seq, Job> jobs;  // the dead and the completed too
    std::map<std::string, KeyEntry> keys;
    std::uint64_t credit = 0;  // of the retry lane, in millionths of a job
  };
  struct WaitingClaim {
    ClaimId id{};
    QueueNumber queue{};
    Timestamp deadline;
    ClaimCommand command;
  };
  using Answers = std::map<ClaimId, Result<ClaimReply>>;
  using EventCounts = std::array<std::uint64_t, kEventTypeCount>;
  using RetryTimes = std::map<std::pair<QueueName, Seq>, Timestamp>;
  using Webhooks = std::map<WebhookKey, std::pair<JobRecord, JobState>>;

  Result<PushReply> push(const PushCommand& command, Timestamp now);
  std::optional<Result<ClaimReply>> claim(ClaimId id, const ClaimCommand& command, Timestamp now);
  void cancel_claim(ClaimId id);
  Result<Acked> ack(const AckItem& item, Timestamp now);
  Result<Failed> fail(const FailItem& item, Timestamp now);
  Result<Released> release(const ReleaseItem& item, Timestamp now);
  Result<Extended> extend(const ExtendItem& item, Timestamp now);
  Result<DroppedJob> drop(const QueueName& name, Seq seq, const std::string& asked_by,
                          Timestamp now);

  Result<SelectionReply> retry(const SelectionCommand& command, Timestamp now);
  Result<SelectionReply> purge(const SelectionCommand& command, Timestamp now);
  Result<Operation> start_operation(const StartOperationCommand& command, Timestamp now);
  Result<Operation> step_operation(const Engine::OperationStep& step, Timestamp now);
  Result<Operation> cancel_operation(OperationId id, const std::string& asked_by, Timestamp now);
  std::vector<Engine::Keeping> keepings(Timestamp now) const;  // by queue number
  void let_go(const Engine::EndedRef& ref, Timestamp now);
  void finish_webhook(const WebhookKey& key) { webhooks_.erase(key); }

  // Whether it was created.
  Result<bool> put_queue(const QueueName& name, const QueueConfig& config, Timestamp now);
  Status edit_queue(const QueueName& name, const ConfigEdit& edit, Timestamp now);
  Status pause_queue(const QueueName& name, bool paused, Timestamp now);
  Status delete_queue(const QueueName& name, const std::string& asked_by, Timestamp now);
  void forget_key(QueueNumber queue, const std::string& key, Timestamp now);
  void set_disk_low(bool low) { disk_low_ = low; }
  void tick(Timestamp now);

  // The secrets of leases that were granted.
  void learn(const ClaimReply& reply);
  // When the next command is said to retry which jobs.
  void retries_at(RetryTimes times) { retries_at_ = std::move(times); }
  Answers take_answers() { return std::exchange(answers_, {}); }
  EventCounts take_events() { return std::exchange(events_, {}); }
  // All that was not stored is gone.
  void restart();
  // As if something that is not stored had survived.
  void keep_credit_of(const Model& before);

  QueueStats stats_of(const QueueName& name, Timestamp now) const;
  static QueueTotals totals_of(const Queue& queue);
  // The latest time by which a tick must come.
  Timestamp next_wake() const;
  // Claims that wait in a queue that the next tick moves jobs to.
  std::vector<ClaimId> claims_that_a_tick_may_race(Timestamp now) const;
  // Dead-letter queues that are not there and will be.
  std::set<QueueName> queues_that_a_tick_may_make(Timestamp now) const;
  const std::map<QueueName, Queue>& queues() const { return queues_; }
  const std::map<OperationId, Operation>& operations() const { return operations_; }
  const std::map<std::uint64_t, AuditRecord>& audit() const { return audit_; }
  const Webhooks& webhooks() const { return webhooks_; }
  Seq next_seq() const { return next_seq_; }
  QueueNumber next_queue() const { return next_queue_; }
  OperationId next_operation() const { return next_operation_; }
  std::uint64_t next_audit() const { return next_audit_; }

 private:
  struct Held {
    Queue* queue = nullptr;
    Seq seq{};
    Job* job = nullptr;
  };
  using JobAction = Status (Model::*)(Queue&, Seq, Timestamp);

  // model.cpp
  Result<PushedJob> push_one(Queue& queue, const NewJob& job, Timestamp now);
  Status check_room(const Queue& queue, const JobRecord& record) const;
  static std::map<Seq, Job>::iterator head(Queue& queue, Lane lane);
  static bool has_room_for_retry(const Queue& queue);
  std::map<Seq, Job>::iterator next_job(Queue& queue, LaneChoice choice);
  ClaimReply grant(Queue& queue, const ClaimCommand& command, Timestamp now);
  void serve_waiting(Queue& queue, Timestamp now);
  Result<Held> held(const Result<LeaseToken>& token, Timestamp now);
  void end_attempt(Job& job, AttemptOutcome outcome, const FailItem& how, Timestamp now);

  // model_failures.cpp
  Failed end_in_failure(const Held& lease, const FailItem& how, Timestamp now);
  Timestamp retry_time(const Queue& queue, Seq seq, std::uint32_t failures, Timestamp now) const;
  void bury(Queue& queue, Seq seq, DeathReason reason, DecidedBy decided_by, Timestamp now);
  void admit(Queue& queue, Seq seq, JobRecord record, JobState state, Timestamp now);
  Status retry_one(Queue& queue, Seq seq, Timestamp now);
  Status purge_by_hand(Queue& queue, Seq seq, Timestamp now);
  Status purge_one(Queue& queue, Seq seq, PurgeCause cause);
  static Engine::Keeping keeping_of(const Queue& queue, Timestamp now);

  // model_operations.cpp
  Result<SelectionReply> select(const SelectionCommand& command, AuditAction action, JobAction act,
                                Timestamp now);
  static std::optional<JobStatus> status_of(const Queue& queue, Seq seq, Timestamp now);
  std::uint64_t write_audit(AuditRecord record, Timestamp now);
  void end_operation(Operation& operation, OperationState state, Timestamp now);

  // model_queues.cpp
  Queue* find(const QueueName& name);
  Queue* find(QueueNumber number);
  Queue& create(const QueueName& name, const QueueConfig& config, Timestamp now);
  Status check_dead_letter_queue(const QueueName& name, const QueueConfig& config) const;
  // The dead-letter queues of those from which a tick may move jobs.
  std::set<QueueName> targets_of_a_tick(Timestamp now) const;
  void expire_leases(Timestamp now);
  void note(EventType type) { ++events_[static_cast<std::size_t>(type)]; }

  std::map<QueueName, Queue> queues_;
  std::map<OperationId, Operation> operations_;
  std::map<std::uint64_t, AuditRecord> audit_;
  Webhooks webhooks_;
  Seq next_seq_ = 1;
  QueueNumber next_queue_ = 1;
  OperationId next_operation_ = 1;
  std::uint64_t next_audit_ = 1;
  bool disk_low_ = false;
  std::vector<WaitingClaim> waiting_;  // in order of arrival
  RetryTimes retries_at_;
  Answers answers_;
  EventCounts events_{};
};

// Still to be worked off: neither dead nor completed.
inline bool is_alive(const Model::Job& job) {
  return job.state.status != JobStatus::dead && job.state.status != JobStatus::completed;
}
inline bool is_active(const Model::Job& job) { return job.state.status == JobStatus::active; }
inline bool is_retry(const Model::Job& job) { return job.state.failures > 0; }

}  // namespace reprise::sim
