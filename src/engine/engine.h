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
//
// Hooks are asked by others: take_hook_work() says what, finish_hook_calls() brings the answers,
// and in between a job that failed stays leased in storage, so that a crash loses nothing.
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
#include "engine/hook_line.h"
#include "engine/lease_table.h"
#include "engine/ledger.h"
#include "engine/pending_jobs.h"
#include "engine/step_budget.h"
#include "engine/throttles.h"
#include "engine/waiting_claims.h"
#include "model/config_entry.h"
#include "model/hook.h"
#include "model/limits.h"
#include "model/operation.h"
#include "model/throttle.h"
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
    Scheduling scheduling;
    std::uint64_t byte_size{};  // needed for active jobs only: the queue's sum is in its totals
    const JobState* state = nullptr;  // null: fresh and pending
  };
  // The queue must have been restored. In any order, but ascending seqs are faster.
  void restore_job(const StoredJob& job);
  // The same for many jobs that are fresh and pending and have no ttl; ascending.
  void restore_fresh(QueueNumber queue, Priority priority, const Scheduling& scheduling,
                     std::span<const Seq> seqs);
  void restore_operation(const Operation& operation);
  void restore_config(const ConfigEntry& entry);
  void restore_throttle(const ThrottleRecord& record);
  // That was all.
  void finish_restore();

  // --- Jobs.
  // Empty: a hook is asked first, and take_push_answers() will have it. So with fail().
  std::optional<Result<PushReply>> push(RequestId id, PushCommand command, Timestamp now);
  // Empty: the claim waits, and take_answers() will have it.
  std::optional<Result<ClaimReply>> claim(ClaimId id, ClaimCommand command, Timestamp now);
  // A claim that waits gets an empty reply.
  void cancel_claim(ClaimId id);
  void cancel_all_claims();
  ItemResults<Acked> ack(std::span<const AckItem> items, Timestamp now);
  std::optional<ItemResults<Failed>> fail(RequestId id, std::span<const FailItem> items,
                                          Timestamp now);
  ItemResults<Released> release(std::span<const ReleaseItem> items, Timestamp now);
  // Put aside, among the dead: no failure, and nobody else is asked.
  ItemResults<Buried> bury_leased(std::span<const BuryItem> items, Timestamp now);
  // Gives back what workers of the server that was before held when it ended; how many.
  std::size_t release_own(Timestamp now);
  ItemResults<Extended> extend(std::span<const ExtendItem> items, Timestamp now);
  // Whatever its status, and whether or not it can be read.
  Result<DroppedJob> drop(const QueueName& queue, Seq seq, const std::string& asked_by,
                          Timestamp now);

  // --- One job, by its seq alone.
  // Where it is: in one of these queues, or in another of the namespace. Nothing: nowhere.
  std::optional<JobKey> locate(const std::string& ns, std::span<const std::string> guesses,
                               Seq seq);
  struct Sight {
    JobStatus status{};
    RecordPtr record;
    StatePtr state;    // null: fresh and pending, never leased
    Duration lease{};  // how long one of it is
  };
  bool has_lease(JobKey job) const { return is_leased(job); }
  // Errc::job_not_found; Errc::corrupt.
  Result<Sight> look_at(JobKey job, Timestamp now);
  // Leases it, whatever it waits for and whatever its queue would give first. Errc::wrong_status:
  // somebody has it, or its queue has no room.
  Result<ClaimedJob> claim_job(JobKey job, const ClaimCommand& command, Timestamp now);
  // It is dead or waits for its time: makes it pending. Errc::wrong_status otherwise.
  Status make_pending(JobKey job, Timestamp now);
  // The job that a claim would give, and the one whose time comes first.
  std::optional<Seq> next_pending(const QueueName& queue, Timestamp now);
  std::optional<Seq> next_delayed(const QueueName& queue) const;
  // Pending ones of the fresh lane that are more urgent than this.
  std::uint64_t count_below(const QueueName& queue, Priority priority) const;

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
  // Gives out no job for so long, or until a restart; zero: from now on again.
  Status rest_queue(const QueueName& name, Duration pause, Timestamp now);
  struct RestLeft {
    Duration asked{};
    Duration left{};
  };
  std::optional<RestLeft> rest_of(const QueueName& name, Timestamp now) const;
  Result<QueueStats> delete_queue(const QueueName& name, const std::string& asked_by,
                                  Timestamp now);
  Result<QueueStats> queue_stats(const QueueName& name, Timestamp now);
  std::vector<QueueStats> list_queues(const std::string& ns, Timestamp now);  // "": all
  bool has_queue(const QueueName& name) const { return lookup(name) != nullptr; }
  std::uint64_t dead_in(const QueueName& name) const;  // how many
  // Errc::queue_not_found says what was probably meant.
  Result<QueueNumber> find_queue(const QueueName& name) const;

  // --- Hooks.
  // What is to be done about hooks, in order. Call it after a round of commands, before answers are
  // taken: a call that turns out to be pointless is decided at once.
  std::vector<HookWork> take_hook_work(Timestamp now);
  void finish_hook_calls(std::span<const HookResult> results, Timestamp now);
  // Whoever waits for a hook is told `why`, and nothing of it has happened.
  void give_up_hook_calls(const Error& why);
  // For the log.
  struct HookNotice {
    QueueName queue;
    HookKind hook{};
    std::string text;
  };
  std::vector<HookNotice> take_hook_notices() { return std::exchange(hook_notices_, {}); }

  // --- Runtime values.
  Result<ConfigEntry> set_config(ConfigEntry entry, Timestamp now);
  Result<ConfigEntry> unset_config(const std::string& ns, const std::string& key);
  Result<ConfigEntry> config(const std::string& ns, const std::string& key) const;
  std::vector<ConfigEntry> list_config(const std::string& ns) const;  // by key

  // --- Throttles: what jobs that name a key may be started with.
  Result<ThrottleStats> set_throttle(Throttle throttle, Timestamp now);
  Result<ThrottleStats> unset_throttle(const std::string& ns, const std::string& key,
                                       Timestamp now);
  Result<ThrottleStats> throttle(const std::string& ns, const std::string& key,
                                 Timestamp now) const;
  std::vector<ThrottleStats> list_throttles(const std::string& ns, Timestamp now) const;

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
  struct PushAnswer {
    RequestId id{};
    Result<PushReply> reply;
  };
  std::vector<PushAnswer> take_push_answers() { return std::exchange(push_answers_, {}); }
  struct FailAnswer {
    RequestId id{};
    ItemResults<Failed> results;
  };
  std::vector<FailAnswer> take_fail_answers() { return std::exchange(fail_answers_, {}); }
  std::vector<Event> take_events() {
    std::vector<Event> next;
    next.reserve(events_.size());  // as many as in this batch, about
    return std::exchange(events_, std::move(next));
  }
  Seq next_seq() const { return server_.next_seq; }
  std::uint64_t next_audit() const { return server_.next_audit; }

 private:
  using QueuePtr = std::unique_ptr<QueueState>;

  // engine_queues.cpp
  QueueState* lookup(const QueueName& name) const;
  Error queue_not_found(const QueueName& name) const;
  QueueState& create_queue(const QueueName& name, const QueueConfig& config, Timestamp now);
  Status check_dead_letter_queue(const QueueName& name, const QueueConfig& config) const;
  void config_changed(QueueState& queue, Timestamp now);
  QueueStats stats_of(QueueState& queue, Timestamp now);
  std::optional<Duration> oldest_pending_age(const QueueState& queue, Timestamp now);
  void touch(const QueueState& queue);  // its totals changed
  void rearm(QueueState& queue);

  // engine_push.cpp
  // A job on its way into a queue.
  struct Arrival {
    std::shared_ptr<JobRecord> record;  // but for its times
    Duration delay{};
    std::optional<Duration> ttl;
    Duration least_key_window{};
    std::optional<std::string> rejected;  // why its hook refuses it
  };
  using Arrivals = std::vector<Result<Arrival>>;
  PushReply accept(QueueState& queue, Arrivals arrivals, Timestamp now);
  Result<PushedJob> accept_one(QueueState& queue, Arrival arrival, Timestamp now);
  Status check_room(const QueueState& queue, std::uint64_t more_bytes) const;

  // engine_claim.cpp
  std::vector<QueueState*> queues_of(const ClaimCommand& command) const;
  // Adds to the reply until it has `most` jobs. Buries what turns out to be over its ttl or
  // unreadable, within `budget`.
  void grant(QueueState& queue, const ClaimCommand& command, std::size_t most, StepBudget& budget,
             ClaimReply& reply, Timestamp now);
  void grant_most_urgent(std::span<QueueState* const> queues, const ClaimCommand& command,
                         StepBudget& budget, ClaimReply& reply, Timestamp now);
  std::optional<std::pair<Priority, Seq>> urgency_of(QueueState& queue, LaneChoice lane,
                                                     StepBudget& budget, Timestamp now);
  bool has_room(const ClaimReply& reply) const;
  void count_claimed(QueueState& queue, std::span<const ClaimedJob> jobs, Timestamp now);
  // The next job of each lane that may be given out.
  struct Candidates {
    std::optional<PendingJobs::Next> fresh;
    std::optional<PendingJobs::Next> retry;
  };
  static Candidates candidates(QueueState& queue, LaneChoice choice, StepBudget& budget,
                               Timestamp now);
  static std::optional<PendingJobs::Next> next_job(QueueState& queue, LaneChoice choice,
                                                   StepBudget& budget, Timestamp now);
  std::optional<ClaimedJob> lease_job(QueueState& queue, JobKey key, const StrandRef& strand,
                                      const ClaimCommand& command, StepBudget& budget,
                                      Timestamp now);
  void serve_waiting(QueueState& queue, Timestamp now);
  // As soon as possible, after other commands.
  void look_again_later(QueueState& queue);
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
  // A failure whose decision is the hook's. Its lease is out of the table, so that it neither ends
  // nor is ended, but still counts.
  struct Undecided {
    Lease lease;
    Failure failure;
    AttemptEnd end;
    Timestamp failed_at;
    // Who is to be told; nobody when the lease ran out.
    std::optional<RequestId> request;
    std::size_t index = 0;
  };
  Result<Held> held_lease(const Result<LeaseToken>& token, Timestamp now);
  Error lease_lost(const LeaseToken& token, Timestamp now);
  bool is_leased(JobKey job) const;
  // Takes the lease away from a job that leaves for another reason.
  std::optional<Lease> take_lease(QueueState& queue, JobKey job, Timestamp now);
  // Empty: on_failure is asked first.
  std::optional<Result<Failed>> end_in_failure(QueueState& queue, Undecided failed, Timestamp now);
  Result<Failed> settle_failure(QueueState& queue, const Undecided& failed, const HookOutcome* hook,
                                Timestamp now);
  Result<Failed> give_up(QueueState& queue, const Lease& lease, StateDraft state, Decision decision,
                         Timestamp now);
  Result<Acked> ack_one(const AckItem& item, Timestamp now);
  void keep_completed(QueueState& queue, const Lease& lease, Timestamp now);
  std::uint64_t lease_nonce(bool own);
  Result<Released> release_one(const ReleaseItem& item, Timestamp now);
  Priority set_priority(const Lease& lease, std::optional<Priority> priority);
  // Of claims that do not say.
  static Duration lease_of(const QueueState& queue, const JobRecord& record);
  Duration usual_lease(const QueueState& queue, JobKey job);
  Result<StateDraft> end_attempt(const Lease& lease, const AttemptEnd& end, Timestamp ended_at);
  enum class LeaseEnd : std::uint8_t { succeeded, failed, neither };
  void end_lease(QueueState& queue, const Lease& lease, LeaseEnd end, Timestamp now);
  void grant_lease(QueueState& queue, const Lease& lease);
  // Puts a job that is no longer leased where its state says.
  static void place(QueueState& queue, JobKey key, Priority priority, const StrandRef& strand,
                    const JobState& state, Timestamp now);

  // engine_guard.cpp
  static void define_guard(QueueState& queue);
  void advance_guard(QueueState& queue, Timestamp now);
  void tell_guard(QueueState& queue, const Lease& lease, LeaseEnd end, Timestamp now);

  // engine_throttles.cpp
  void wake_throttled(Timestamp now);
  void wake_throttled_of(const std::vector<QueueState*>& queues, Timestamp now);

  // engine_burial.cpp
  // The caller has ended its lease or taken it out of its lane, and called forget_job().
  void bury(QueueState& queue, JobKey key, RecordPtr record, StateDraft state, DeathReason reason,
            DecidedBy decided_by, Timestamp now);
  RecordPtr record_for_burial(JobKey key, DeathReason& reason);
  QueueState* dead_letter_queue_of(const QueueState& queue, DeathReason reason, Timestamp now);
  static Timestamp expiry_of(const QueueState& queue, Timestamp now);
  // A job that is in no queue at the moment comes to one, pending.
  void admit(QueueState& queue, Seq seq, RecordPtr record, StateDraft state, Timestamp now);

  // engine_retry.cpp
  Status check_disk_for_retry() const;
  Status retry_one(QueueState& queue, Seq seq, Timestamp now);
  // By hand, or because somebody takes it as it is.
  enum class Return : std::uint8_t { by_hand, taken };
  Status retry_dead(QueueState& queue, JobKey key, const EndedJob& dead, Return how, Timestamp now);
  Status retry_alive(QueueState& queue, JobKey key, Timestamp now);
  void come_back(QueueState& from, QueueState& to, Seq seq, RecordPtr record, StateDraft state,
                 Return how, Timestamp now);
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
  static void forget_waiting(QueueState& queue, JobKey key, const JobRecord& record,
                             const JobState* state);
  std::optional<JobStatus> forget_unreadable(QueueState& queue, JobKey key, Timestamp now);
  // The caller has ended its lease or taken it out of its lane; it touches the queue, since every
  // end counts as something.
  void forget_job(QueueState& queue, JobKey key, Timestamp expires_at, std::uint64_t byte_size);

  // engine_by_seq.cpp
  bool is_in(JobKey job);
  Status end_delay_of(QueueState& queue, JobKey key, Timestamp now);

  // engine_timers.cpp
  void expire_leases(Timestamp now);
  static void end_delays(QueueState& queue, Timestamp now);
  void expire_jobs(QueueState& queue, StepBudget& budget, Timestamp now);
  void expire_job(QueueState& queue, JobKey key, StepBudget& budget, Timestamp now);

  // engine_hooks.cpp
  struct WaitingPush {
    QueueNumber queue{};
    Arrivals arrivals;
    std::size_t unanswered = 0;
    std::uint64_t bytes = 0;
  };
  struct WaitingFail {
    ItemResults<Failed> results;
    std::size_t undecided = 0;
  };
  // The config is new: so may be its hooks.
  void define_hooks(QueueState& queue, Timestamp now);
  std::optional<Result<PushReply>> ask_before_push(QueueState& queue, RequestId id,
                                                   Arrivals arrivals, Timestamp now);
  // Whether its hook's verdict is known without a call; it is taken then.
  static bool knows_verdict(HookLine& line, Arrival& arrival, Timestamp now);
  static void take_verdict(Arrival& arrival, const EnqueueVerdict& verdict);
  void remember(HookLine& line, const HookTicket& ticket, const HookOutcome& outcome);
  void answer_pushes(QueueState& queue, Timestamp now);
  void answer_fail(const Undecided& failed, Result<Failed> result);
  void hand_out_calls(QueueState& queue, HookKind hook, Timestamp now);
  // Nothing: there is nobody to ask about any more, or it was decided without asking.
  std::optional<HookMessage> message_of(QueueState& queue, const HookTicket& ticket, Timestamp now);
  // Whether whoever asks the hook may still look at the message.
  enum class Asking : std::uint8_t { over, perhaps_not_over };
  void settle_ticket(QueueState& queue, const HookTicket& ticket, const HookOutcome* outcome,
                     Asking asking, Timestamp now);
  void note_outcome(QueueState& queue, HookKind hook, const HookOutcome& outcome, Timestamp now);
  void notice(const QueueState& queue, HookKind hook, std::string text);
  // The breaker has opened: nobody waits for what is out.
  void settle_all(QueueState& queue, HookKind hook, Timestamp now);
  std::deque<HookTicket> call_back(QueueState& queue, HookKind hook);
  void forget_hooks(QueueState& queue, const Error& why);

  void emit(EventType type, const QueueState& queue, Seq seq, Timestamp now, Event details = {});

  Ledger& ledger_;
  Random& random_;
  const Limits limits_;

  ServerState server_;
  bool server_changed_ = false;
  bool disk_low_ = false;
  Throttles throttles_;  // before the queues, which have strands that wait for them
  absl::flat_hash_map<QueueName, QueuePtr> queues_;
  absl::flat_hash_map<QueueNumber, QueueState*> by_number_;
  LeaseTable leases_;
  WaitingClaims waiting_;
  absl::btree_set<std::pair<Timestamp, QueueNumber>> wakes_;
  absl::btree_set<QueueNumber> touched_;  // totals not yet written
  Timestamp last_burial_{};
  std::map<OperationId, Operation> operations_;

  std::map<std::string, std::map<std::string, ConfigEntry>> config_;  // namespace, key

  std::uint64_t next_hook_call_ = 1;
  absl::btree_set<std::pair<QueueNumber, HookKind>> lines_to_ask_;  // they have calls to hand out
  absl::flat_hash_map<JobKey, Undecided> undecided_;
  absl::flat_hash_map<RequestId, WaitingPush> waiting_pushes_;
  absl::flat_hash_map<RequestId, WaitingFail> waiting_fails_;
  std::vector<HookWork> hook_work_;
  std::vector<HookNotice> hook_notices_;
  std::vector<PushAnswer> push_answers_;
  std::vector<FailAnswer> fail_answers_;

  std::vector<ClaimAnswer> answers_;
  std::vector<Event> events_;
};

}  // namespace reprise
