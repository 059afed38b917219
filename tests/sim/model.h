// Model: what the engine must do, in the plainest way: jobs in a map, looked through from end to
// end. It knows the promises of docs/api.md and none of the engine's structures, and it can be
// copied, so that a crash goes back to the copy of the last batch that survived.
// Replies are those of the engine, except that errors carry only their code and tokens come without
// their secret, which learn() fills in.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/commands.h"
#include "engine/event.h"
#include "model/job.h"
#include "model/queue.h"

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
    std::map<Seq, Job> jobs;  // the dead too
    std::map<std::string, KeyEntry> keys;
    std::uint64_t shared_picks = 0;  // jobs given while both lanes had one
  };
  struct WaitingClaim {
    ClaimId id{};
    QueueNumber queue{};
    Timestamp deadline;
    ClaimCommand command;
  };
  using Answers = std::map<ClaimId, Result<ClaimReply>>;
  using EventCounts = std::array<std::uint64_t, kEventTypeCount>;

  Result<PushReply> push(const PushCommand& command, Timestamp now);
  std::optional<Result<ClaimReply>> claim(ClaimId id, const ClaimCommand& command, Timestamp now);
  void cancel_claim(ClaimId id);
  Result<Acked> ack(const AckItem& item, Timestamp now);
  Result<Failed> fail(const FailItem& item, Timestamp now);
  Result<Released> release(const ReleaseItem& item, Timestamp now);
  Result<Extended> extend(const ExtendItem& item, Timestamp now);
  Result<DroppedJob> drop(const QueueName& name, Seq seq, Timestamp now);
  // Whether it was created.
  bool put_queue(const QueueName& name, const QueueConfig& config, Timestamp now);
  Status set_retry(const QueueName& name, const RetryPolicy& retry);
  Status pause_queue(const QueueName& name, bool paused, Timestamp now);
  Status delete_queue(const QueueName& name);
  void forget_key(QueueNumber queue, const std::string& key, Timestamp now);
  void set_disk_low(bool low) { disk_low_ = low; }
  void tick(Timestamp now);

  // The secrets of leases that were granted.
  void learn(const ClaimReply& reply);
  Answers take_answers() { return std::exchange(answers_, {}); }
  EventCounts take_events() { return std::exchange(events_, {}); }
  // All that was not stored is gone.
  void restart();

  QueueStats stats_of(const QueueName& name, Timestamp now) const;
  static QueueTotals totals_of(const Queue& queue);
  // The latest time by which a tick must come.
  Timestamp next_wake() const;
  const std::map<QueueName, Queue>& queues() const { return queues_; }
  Seq next_seq() const { return next_seq_; }
  QueueNumber next_queue() const { return next_queue_; }

 private:
  struct Held {
    Queue* queue = nullptr;
    Job* job = nullptr;
  };

  Queue* find(const QueueName& name);
  Queue* find(QueueNumber number);
  Queue& create(const QueueName& name, const QueueConfig& config, Timestamp now);
  Result<PushedJob> push_one(Queue& queue, const NewJob& job, Timestamp now);
  Status check_room(const Queue& queue, const JobRecord& record) const;
  Job* head(Queue& queue, Lane lane);
  Job* next_job(Queue& queue, LaneChoice choice);
  ClaimReply grant(Queue& queue, const ClaimCommand& command, Timestamp now);
  void serve_waiting(Queue& queue, Timestamp now);
  Result<Held> held(const Result<LeaseToken>& token, Timestamp now);
  void end_attempt(Job& job, AttemptOutcome outcome, const std::string& error, Timestamp now);
  Failed end_in_failure(Queue& queue, Job& job, AttemptOutcome outcome, const FailItem& how,
                        Timestamp now);
  void bury(Queue& queue, Job& job, DeathReason reason, DecidedBy decided_by, Timestamp now);
  void expire_leases(Timestamp now);
  void note(EventType type) { ++events_[static_cast<std::size_t>(type)]; }
  static JobKey key_of(const Queue& queue, const Job& job);

  std::map<QueueName, Queue> queues_;
  Seq next_seq_ = 1;
  QueueNumber next_queue_ = 1;
  bool disk_low_ = false;
  std::vector<WaitingClaim> waiting_;  // in order of arrival
  Answers answers_;
  EventCounts events_{};
};

}  // namespace reprise::sim
