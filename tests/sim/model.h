// Model: what the engine must do, in the plainest way: jobs in a map, looked through from end to
// end. It knows the promises of docs/api.md, docs/failures.md, docs/hooks.md and docs/scheduling.md
// and none of the engine's structures, and it can be copied, so that a crash goes back to the copy
// of the last batch that survived. Replies are those of the engine, except that errors carry only
// their code and tokens come without their secret, which learn() fills in. What the promises leave
// open (which of several jobs is given out, jitter, how late a server was) is told by hear() before
// the command that it belongs to, and checked against what is allowed.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/commands.h"
#include "engine/engine.h"
#include "engine/event.h"
#include "model/config_entry.h"
#include "model/hook.h"
#include "model/job.h"
#include "model/operation.h"
#include "model/outage_policy.h"
#include "model/queue.h"
#include "model/throttle.h"
#include "model/webhook.h"
#include "sim/fair_stretch.h"
#include "sim/saboteur.h"

namespace reprise::sim {

class Model {
 public:
  struct Job {
    JobRecord record;
    JobState state;
    // Pending as the engine sees it: a delay that has passed is noticed by the next tick.
    bool in_lane = false;
    // Its lease was given in a trial of the queue's breaker.
    bool canary = false;
  };
  // What a hook is asked about: a job that failed, or one of a push.
  struct Ticket {
    Seq failed{};
    RequestId push{};
    std::size_t index{};
    HookCallId call{};  // 0: it has not been asked yet
  };
  struct Hook {
    std::deque<Ticket> line;
    BreakerState breaker = BreakerState::closed;  // trial: one call has been let through
    HookStats stats;                              // but for what the two above say
  };
  // A failure that the hook has not decided yet. The job is leased until then.
  struct Undecided {
    FailItem how;
    Timestamp failed_at;
    std::optional<RequestId> request;
    std::size_t index{};
    bool spared = false;  // by the queue's breaker
  };
  // The breaker of a queue. Nothing of it is stored.
  struct Guard {
    OutagePolicy policy;
    BreakerState state = BreakerState::closed;
    Timestamp open_until{};
    std::set<Seq> canaries;  // that are out
    std::uint32_t succeeded = 0;
    std::uint32_t failed_trials = 0;
    std::uint64_t opened = 0;
    std::uint64_t spared = 0;
    std::vector<std::pair<Timestamp, bool>> ended;  // attempts, and whether each failed
  };
  struct WaitingPush {
    RequestId id{};
    std::vector<Result<NewJob>> jobs;
    std::vector<std::optional<std::string>> rejected;
    std::size_t unanswered{};
  };
  struct Queue {
    QueueRecord record;
    QueueTotals totals;       // without what can be counted: see totals_of()
    std::map<Seq, Job> jobs;  // the dead and the completed too
    std::map<std::string, KeyEntry> keys;
    // None of this is stored.
    // What the credit of the retry lane may be, in millionths of a job.
    std::set<std::uint64_t> credits{0};
    std::map<std::string, std::uint32_t> weights;  // of the keys that have jobs, maybe of others
    std::array<FairStretch, 2> stretches;          // index: Lane
    std::optional<Guard> guard;
    std::array<std::optional<Hook>, kHookKindCount> hooks;
    HookLimits hook_limits;
    std::map<Seq, Undecided> undecided;
    std::deque<WaitingPush> pushes;  // in order of arrival
  };
  struct WaitingClaim {
    ClaimId id{};
    QueueNumber queue{};
    Timestamp deadline;
    ClaimCommand command;
  };
  // A throttle and the tokens it has, in their smallest parts as of `at`. A server that was late
  // may have made up for it.
  struct Bucket {
    Throttle throttle;
    std::uint64_t least = 0;
    std::uint64_t most = 0;
    Timestamp at;
    std::uint64_t late = 0;  // parts that it may hold above its burst, within a tick
  };
  // What a fairness key is seen to have.
  struct Key {
    std::uint64_t pending = 0;
    std::uint64_t active = 0;
    std::uint32_t weight = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  using Keys = std::map<std::string, Key>;
  using Buckets = std::map<std::pair<std::string, std::string>, Bucket>;  // by namespace and key
  using Answers = std::map<ClaimId, Result<ClaimReply>>;
  using PushAnswers = std::map<RequestId, Result<PushReply>>;
  using FailAnswers = std::map<RequestId, ItemResults<Failed>>;
  using EventCounts = std::array<std::uint64_t, kEventTypeCount>;
  using RetryTimes = std::map<std::pair<QueueName, Seq>, Timestamp>;
  using Webhooks = std::map<WebhookKey, std::pair<JobRecord, JobState>>;
  using Config = std::map<std::pair<std::string, std::string>, ConfigEntry>;

  // What a command is said to have done.
  struct Told {
    RetryTimes retries_at;
    // Given out, or found to be over its ttl.
    struct Met {
      Seq seq{};
      bool died = false;
      std::size_t place{};  // among all
    };
    std::map<QueueName, std::deque<Met>> met;  // in order
    std::map<Seq, ClaimId> given_to;
    bool tick_is_due = false;  // it says that it will look again at once
  };

  std::optional<Result<PushReply>> push(RequestId id, const PushCommand& command, Timestamp now);
  std::optional<Result<ClaimReply>> claim(ClaimId id, const ClaimCommand& command, Timestamp now);
  void cancel_claim(ClaimId id);
  Result<Acked> ack(const AckItem& item, Timestamp now);
  std::optional<ItemResults<Failed>> fail(RequestId id, std::span<const FailItem> items,
                                          Timestamp now);
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

  // What must be asked now; `ids` are those that its calls were given.
  std::vector<HookWork> take_hook_work(std::span<const HookCallId> ids);
  void finish_hook_calls(std::span<const HookResult> results, Timestamp now);
  ConfigEntry set_config(ConfigEntry entry, Timestamp now);
  Result<ConfigEntry> unset_config(const std::string& ns, const std::string& key);
  void set_throttle(Throttle throttle, Timestamp now);
  bool unset_throttle(const std::string& ns, const std::string& key);

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
  // Before the command that it is about.
  void hear(Told told);
  // All that was told had a reason.
  void check_all_is_explained() const;
  // What is seen of what hear() could not tell. Throws a Violation when it cannot be.
  void see_credit(const QueueName& name, double credit);
  void see_throttles(const std::vector<ThrottleStats>& throttles, Timestamp now);
  Answers take_answers() { return std::exchange(answers_, {}); }
  PushAnswers take_push_answers() { return std::exchange(push_answers_, {}); }
  FailAnswers take_fail_answers() { return std::exchange(fail_answers_, {}); }
  EventCounts take_events() { return std::exchange(events_, {}); }
  // All that was not stored is gone.
  void restart();
  // As if the promises were others; one of those that saboteur.h says are the model's.
  void believe(Sabotage otherwise) { believes_ = otherwise; }
  // As if something that is not stored had survived.
  void keep_credit_of(const Model& before);

  QueueStats stats_of(const QueueName& name, Timestamp now) const;
  static QueueTotals totals_of(const Queue& queue);
  static Keys keys_of(const Queue& queue);
  // The latest time by which a tick must come.
  Timestamp next_wake(Timestamp now) const;
  // Claims that wait although there is something for them.
  bool somebody_waits_in_vain(Timestamp now) const;
  // Claims that wait in a queue that the next tick moves jobs to.
  std::vector<ClaimId> claims_that_a_tick_may_race(Timestamp now) const;
  // Dead-letter queues that are not there and will be.
  std::set<QueueName> queues_that_a_tick_may_make(Timestamp now) const;
  const std::map<QueueName, Queue>& queues() const { return queues_; }
  const std::map<OperationId, Operation>& operations() const { return operations_; }
  const std::map<std::uint64_t, AuditRecord>& audit() const { return audit_; }
  const Webhooks& webhooks() const { return webhooks_; }
  const Config& config() const { return config_; }
  const Buckets& throttles() const { return throttles_; }
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
  PushReply accept(Queue& queue, const WaitingPush& push, Timestamp now);
  Result<PushedJob> push_one(Queue& queue, const NewJob& job,
                             const std::optional<std::string>& rejected, Timestamp now);
  Status check_room(const Queue& queue, const JobRecord& record) const;
  Result<Held> held(const Result<LeaseToken>& token, Timestamp now);
  void end_attempt(Job& job, AttemptOutcome outcome, const FailItem& how, Timestamp now);

  // model_claims.cpp
  // The jobs of a lane that may be given out next.
  struct Candidates {
    std::set<Seq> jobs;
    bool certain = false;  // one of them names no throttle: nothing can be in its way
    bool ready = false;    // one of them has all its tokens for sure
  };
  using Strand = std::pair<std::string, std::set<std::string>>;  // fairness and throttle keys
  static std::map<Strand, Seq> heads(const Queue& queue, Lane lane);
  static bool comes_before(const Queue& queue, Lane lane, Seq a, Seq b);
  Candidates candidates(const Queue& queue, Lane lane, Timestamp now) const;
  static bool has_room_for_retry(const Queue& queue);
  bool key_has_room(const Queue& queue, const std::string& key) const;
  std::uint64_t room(const Queue& queue) const;
  bool is_served_later(const Queue& queue, ClaimId id) const;
  const Told::Met* next_met(const Queue& queue) const;
  std::size_t death_place(const Queue& queue, Seq seq) const;
  std::map<Seq, Job>::iterator next_job(Queue& queue, ClaimId id, LaneChoice choice, Timestamp now);
  static void share_lanes(Queue& queue, Lane lane, const Candidates& other, bool perhaps_not);
  ClaimReply grant(Queue& queue, ClaimId id, const ClaimCommand& command, Timestamp now);
  void serve_waiting(Queue& queue, Timestamp now);
  bool is_ready_for(const Queue& queue, LaneChoice choice, Timestamp now) const;
  static void forget_idle_keys(Queue& queue);
  void note_keys(Queue& queue) const;

  // model_throttles.cpp
  using Level = std::pair<std::uint64_t, std::uint64_t>;  // at least, at most
  static Level level_of(const Bucket& bucket, Timestamp now);
  std::vector<const Bucket*> buckets_of(const Queue& queue,
                                        const std::set<std::string>& keys) const;
  void take_tokens(const Queue& queue, const Job& job, Timestamp now);
  Timestamp ready_at(const Queue& queue, const std::set<std::string>& keys, Timestamp now) const;
  Timestamp next_token_that_is_awaited(Timestamp now) const;
  void allow_lateness(Timestamp now);
  void settle_lateness(Timestamp now);

  // model_breaker.cpp
  static void define_guard(Queue& queue);
  void advance_guard(Queue& queue, Timestamp now);
  static std::uint64_t guard_room(const Queue& queue);
  enum class LeaseEnd : std::uint8_t { succeeded, failed, neither };
  void end_lease(Queue& queue, Seq seq, LeaseEnd end, Timestamp now);
  void open_guard(Guard& guard, Timestamp now);
  static std::pair<std::uint64_t, std::uint64_t> ended_in_window(const Guard& guard, Timestamp now);
  static OutageStats shown_stats(const Guard& guard, Timestamp now);

  // model_failures.cpp
  // Nothing: the hook is asked first.
  std::optional<Failed> end_in_failure(const Held& lease, Undecided failure, Timestamp now);
  Failed settle_failure(const Held& lease, const Undecided& failure, const HookOutcome* hook,
                        Timestamp now);
  Timestamp retry_time(const Queue& queue, Seq seq, std::uint32_t failures, Timestamp now) const;
  void bury(Queue& queue, Seq seq, DeathReason reason, DecidedBy decided_by, Timestamp now);
  void admit(Queue& queue, Seq seq, JobRecord record, JobState state, Timestamp now);
  Status retry_one(Queue& queue, Seq seq, Timestamp now);
  Status purge_by_hand(Queue& queue, Seq seq, Timestamp now);
  Status purge_one(Queue& queue, Seq seq, PurgeCause cause);
  static Engine::Keeping keeping_of(const Queue& queue, Timestamp now);

  // model_hooks.cpp
  void define_hooks(Queue& queue, Timestamp now);
  void forget_hooks(Queue& queue);
  std::deque<Ticket> call_back(Queue& queue, HookKind kind);
  std::optional<Result<PushReply>> ask_before_push(Queue& queue, WaitingPush push, Timestamp now);
  // Whether the breaker lets a call through.
  static bool admit_call(Hook& hook, Timestamp now);
  static void note_outcome(Hook& hook, const HookOutcome& outcome, Timestamp now);
  static HookStats shown_stats(const Hook& hook, Timestamp now);
  static HookMessage message_of(const Queue& queue, const Ticket& ticket);
  void settle_ticket(Queue& queue, HookKind kind, const Ticket& ticket, const HookOutcome* outcome,
                     Timestamp now);
  void answer_pushes(Queue& queue, Timestamp now);
  void answer_fail(const Undecided& failure, Result<Failed> result);

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
  std::map<std::size_t, Seq> deaths_of_age(const Queue& queue, Timestamp now) const;  // in order
  void note(EventType type) { ++events_[static_cast<std::size_t>(type)]; }

  std::map<QueueName, Queue> queues_;
  std::map<OperationId, Operation> operations_;
  std::map<std::uint64_t, AuditRecord> audit_;
  Webhooks webhooks_;
  Config config_;
  Buckets throttles_;
  Seq next_seq_ = 1;
  QueueNumber next_queue_ = 1;
  OperationId next_operation_ = 1;
  std::uint64_t next_audit_ = 1;
  bool disk_low_ = false;
  std::vector<WaitingClaim> waiting_;  // in order of arrival
  Told told_;
  Sabotage believes_ = Sabotage::none;
  Answers answers_;
  std::vector<HookWork> hook_work_;                                                 // but for calls
  std::map<RequestId, std::pair<ItemResults<Failed>, std::size_t>> waiting_fails_;  // and undecided
  PushAnswers push_answers_;
  FailAnswers fail_answers_;
  EventCounts events_{};
};

// Still to be worked off: neither dead nor completed.
inline bool is_alive(const Model::Job& job) {
  return job.state.status != JobStatus::dead && job.state.status != JobStatus::completed;
}
inline bool is_active(const Model::Job& job) { return job.state.status == JobStatus::active; }
inline bool is_retry(const Model::Job& job) { return job.state.failures > 0; }

}  // namespace reprise::sim
