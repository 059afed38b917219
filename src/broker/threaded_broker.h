// ThreadedBroker: Broker with its threads (see broker.h for what it promises).
//
//   any thread ── post ──▶ inbox ──▶ engine thread ── batches ──▶ committer ──▶ replies
//                                        ▲                            │
//                                        └───── batch committed ──────┘
//   reader: browse, show, ids.   scanner: reads that may take long.
//   maintenance: disk space of deleted queues, old keys, backups.
//   housekeeper: operations, and ended jobs that are kept no longer.
//   hooks: asks the hooks of queues; its answers come back through the inbox.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "broker/broker.h"
#include "broker/committer.h"
#include "broker/core.h"
#include "broker/disk_guard.h"
#include "broker/housekeeper.h"
#include "broker/sessions.h"
#include "broker/worker_thread.h"
#include "hooks/hook_runner.h"

namespace reprise {

class ThreadedBroker final : public Broker {
 public:
  ThreadedBroker(storage::Storage& storage, const Clock& clock, std::unique_ptr<BrokerCore> core,
                 BrokerOptions options);
  ~ThreadedBroker() override;

  void push(PushCommand command, Done<PushReply> done) override;
  ClaimId claim(ClaimCommand command, Done<ClaimReply> done) override;
  void cancel_claim(ClaimId id) override;
  void ack(std::vector<AckItem> items, Done<ItemResults<Acked>> done) override;
  void fail(std::vector<FailItem> items, Done<ItemResults<Failed>> done) override;
  void release(std::vector<ReleaseItem> items, Done<ItemResults<Released>> done) override;
  void extend(std::vector<ExtendItem> items, Done<ItemResults<Extended>> done) override;
  void release_own(Done<std::size_t> done) override;

  SessionId open_session(SessionOptions options) override;
  Status submit(SessionId session, std::vector<session::Command>& commands) override;
  void end_waits(SessionId session) override;
  void close_session(SessionId session) override;
  void attend() override;

  void put_queue(PutQueueCommand command, Done<PutQueueReply> done) override;
  void edit_queue(QueueName name, ConfigEdit edit, Done<QueueStats> done) override;
  void pause_queue(QueueName name, bool paused, Done<QueueStats> done) override;
  void delete_queue(QueueName name, std::string asked_by, Done<QueueStats> done) override;
  void queue_stats(QueueName name, Done<QueueStats> done) override;
  void list_queues(std::string ns, Done<std::vector<QueueStats>> done) override;

  void drop_job(QueueName queue, std::string id, std::string asked_by,
                Done<DroppedJob> done) override;
  void show_job(QueueName queue, std::string id, Done<JobView> done) override;
  void browse(BrowseQuery query, Done<BrowsePage> done) override;

  void retry(SelectionRequest request, Done<SelectionReply> done) override;
  void purge(SelectionRequest request, Done<SelectionReply> done) override;
  void start_operation(StartOperationCommand command, Duration wait, Done<Operation> done) override;
  void preview(StartOperationCommand command, Done<SelectionPreview> done) override;
  void list_operations(Done<std::vector<Operation>> done) override;
  void show_operation(OperationId id, Done<Operation> done) override;
  void cancel_operation(OperationId id, std::string asked_by, Done<Operation> done) override;
  void error_groups(ErrorGroupsQuery query, Done<ErrorGroups> done) override;
  void audit(AuditQuery query, Done<AuditPage> done) override;
  void pending_webhooks(std::optional<WebhookKey> after, std::uint32_t limit,
                        Done<std::vector<PendingWebhook>> done) override;
  void finish_webhooks(std::vector<WebhookKey> keys, Done<std::uint64_t> done) override;
  void on_webhooks(std::function<void()> told) override;

  void set_config(ConfigEntry entry, Done<ConfigEntry> done) override;
  void unset_config(std::string ns, std::string key, Done<ConfigEntry> done) override;
  void show_config(std::string ns, std::string key, Done<ConfigEntry> done) override;
  void list_config(std::string ns, Done<std::vector<ConfigEntry>> done) override;
  void change_notes(std::vector<NoteChange> changes, Done<std::size_t> done) override;
  void list_notes(std::string prefix, Done<std::vector<Note>> done) override;
  void set_throttle(Throttle throttle, Done<ThrottleStats> done) override;
  void unset_throttle(std::string ns, std::string key, Done<ThrottleStats> done) override;
  void show_throttle(std::string ns, std::string key, Done<ThrottleStats> done) override;
  void list_throttles(std::string ns, Done<std::vector<ThrottleStats>> done) override;
  void try_hook(HookTrialRequest request, Done<HookTrialReply> done) override;
  void replay_hook(HookReplayRequest request, Done<HookReplayReply> done) override;

  void backup(BackupCommand command, Done<BackupReply> done) override;

  EventHub& events() override { return events_; }
  BrokerMetrics metrics() const override;
  const Limits& limits() const override { return options_.limits; }
  bool disk_low() const override { return disk_guard_.is_low() || storage_.out_of_space(); }
  Timestamp now() const override { return clock_.now(); }
  void stop_waiting() override { housekeeper_->stop_waiting(); }
  void stop() override;

 private:
  // A command on its way to the engine's thread.
  using Task = absl::AnyInvocable<void(Timestamp now)>;
  struct Queued {
    Task task;
    std::size_t bytes = 0;
  };
  // Where a reader starts: which queue, and which seqs can exist.
  struct ReadStart {
    QueueNumber queue{};
    Seq seq_end{};
  };

  // Puts a command in line. `apply(now)` runs on the engine's thread and returns the reply, which
  // leaves with the batch that is open then.
  template <class T, class Apply>
  void post(Done<T> done, std::size_t bytes, Apply apply);
  enum class Wake : std::uint8_t { at_once, later };
  Status admit(Queued queued, Wake wake = Wake::at_once);
  // What the broker sends itself is never too much: it has its own bounds.
  void admit_own(Task task);
  template <class T>
  void reply_with_batch(Done<T> done, Result<T> result);
  // As post(), for what may have to wait for hooks: `apply(id, now)` returns nothing then, and
  // take_answers() finds who waits by the id.
  template <class T, class Apply>
  void post_waiting(Done<T> done, std::size_t bytes,
                    absl::flat_hash_map<RequestId, Done<T>>& waiting, Apply apply);
  template <class T>
  void answer_waiting(absl::flat_hash_map<RequestId, Done<T>>& waiting, RequestId id,
                      Result<T> result);
  // Runs `read(start)` on the reader's thread once all that came before is committed.
  template <class T, class Read>
  void post_read(WorkerThread& reader, QueueName queue, Done<T> done, Read read);
  // The same without a queue, and without waiting for anything.
  template <class T, class Read>
  void read_on(WorkerThread& reader, Done<T> done, Read read);

  using SelectionAction = Result<SelectionReply> (Engine::*)(const SelectionCommand&, Timestamp);
  void select(SelectionRequest request, SelectionAction act, Done<SelectionReply> done);
  Housekeeper::Requests housekeeping();

  // threaded_broker_hooks.cpp
  // Whether the scripts of a config can be used; `then` runs on some thread, or at once.
  using Checked = absl::AnyInvocable<void(Status)>;
  void check_hooks(QueueName queue, QueueConfig config, HookKind from, Checked then);
  void take_hook_work(Timestamp now);
  // On the engine's thread: a queue, and a script to try with it.
  struct TrialStart {
    QueueRecord queue;
    std::string source;
  };
  Result<TrialStart> start_trial(const QueueName& queue, HookKind hook,
                                 const std::optional<std::string>& given);
  Result<HookReplayReply> replay(const HookReplayRequest& request, const TrialStart& start);
  std::unique_ptr<hooks::HookRunner> start_hooks();

  // threaded_broker_sessions.cpp
  Sessions::Host session_host();
  void find_dead(QueueNumber queue, std::optional<storage::EndingKey> after, std::size_t most,
                 Sessions::Host::DeadFound found);
  void tell_sessions();

  void run_engine();
  std::vector<Queued> wait_for_tasks();
  void leave_engine();
  bool engine_is_wanted() const;
  bool can_submit(bool is_much) const;
  bool open_work_is_much() const;
  bool inbox_is_little() const;
  bool inbox_is_much() const;
  std::vector<Queued> take_inbox();
  std::optional<std::vector<Queued>> take_engine_for_little();
  // Who commits a batch that is alone: whoever has applied it, or one of the committer's threads.
  enum class Commits : std::uint8_t { here_if_alone, by_committer };
  void serve(std::vector<Queued> tasks, Commits commits);
  void apply(std::vector<Queued> tasks);
  void take_answers(Timestamp now);
  void give_back(const Result<ClaimReply>& reply, Timestamp now);
  bool open_batch_is_full() const;
  bool has_open_work() const;
  void submit_open_batch(Commits commits);
  void on_committed(std::uint64_t batch);
  void finish();
  void on_fatal(const Error& error);

  void reclaim_later(QueueNumber queue);
  void sweep_keys_if_due(Timestamp now);
  void sweep_keys();
  Result<BackupReply> write_backup(const BackupCommand& command);

  storage::Storage& storage_;
  const Clock& clock_;
  const BrokerOptions options_;
  EventHub events_;
  DiskGuard disk_guard_;
  std::atomic<ClaimId> next_claim_{1};
  std::atomic<SessionId> next_session_{1};
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> backup_running_{false};

  // Of whoever has the engine: its thread, or one that attends to it.
  std::unique_ptr<BrokerCore> core_;
  const std::vector<Operation> unfinished_;  // when the server started
  absl::flat_hash_map<ClaimId, Done<ClaimReply>> waiting_;
  absl::flat_hash_map<RequestId, Done<PushReply>> waiting_pushes_;
  absl::flat_hash_map<RequestId, Done<ItemResults<Failed>>> waiting_fails_;
  RequestId next_request_ = 1;
  std::unique_ptr<Sessions> sessions_;
  std::vector<Committer::Reply> open_replies_;
  std::size_t open_commands_ = 0;
  std::size_t submitted_commands_ = 0;  // of the last batch
  Timestamp last_now_{};
  Timestamp next_key_sweep_{};

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Protected by mutex_.
  struct EngineState {
    bool taken = true;  // by its thread, from the start
    // Of the time when it was left.
    bool batch_is_full = false;
    bool has_open_work = false;
    bool open_work_is_much = false;
    Timestamp next_wake = kNever;
  };
  EngineState engine_;
  Timestamp engine_sleeps_until_ = kNever;  // its thread
  std::vector<Queued> inbox_;
  std::size_t inbox_bytes_ = 0;
  std::size_t batches_under_way_ = 0;
  std::uint64_t settled_batch_ = 0;
  bool stopping_ = false;
  bool fatal_ = false;
  BrokerMetrics engine_metrics_;
  std::function<void()> told_webhooks_;

  WorkerThread reader_;
  WorkerThread scanner_;  // reads that may take long
  WorkerThread maintenance_;
  Committer committer_;
  std::unique_ptr<hooks::HookRunner> hooks_;
  std::thread engine_thread_;
  std::unique_ptr<Housekeeper> housekeeper_;
};

}  // namespace reprise
