// FakeBroker: answers as it was told and remembers what it was asked, for tests of the server.
// Callbacks come on a thread of its own, as the real broker's do. A claim with a wait stays open
// until answer_claim() or cancel_claim(). A session's command that `on_command` does not answer
// stays open, and holds up those behind it, until answer_command().
#pragma once

#include <absl/functional/any_invocable.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "broker/broker.h"

namespace reprise::test {

inline QueueStats stats_of(QueueName name) {
  QueueStats stats;
  stats.queue.number = 1;
  stats.queue.name = std::move(name);
  return stats;
}

inline RecordPtr record_of(std::string payload) {
  JobRecord record;
  record.payload = std::move(payload);
  return std::make_shared<const JobRecord>(std::move(record));
}

inline ClaimedJob claimed_job(Seq seq, std::string payload = "1") {
  ClaimedJob job;
  job.token = {.job = {.queue = 1, .seq = seq}, .nonce = seq * 7};
  job.record = record_of(std::move(payload));
  job.attempts = 1;
  return job;
}

// A command of a session as if all were well; a reserve finds nothing and waits.
class SessionAnswers {
 public:
  std::vector<session::Reply> operator()(const session::Command& command) {
    return std::visit([&](const auto& one) { return answer(one); }, command);
  }

 private:
  using Replies = std::vector<session::Reply>;

  static Replies settled(session::How how, std::size_t items) {
    return {session::Settled{how, std::vector<Status>(items)}};
  }

  Replies answer(const session::Say& say) { return {say}; }
  Replies answer(const session::UseQueue&) { return {session::QueueReady{}}; }
  Replies answer(const session::Put& put) {
    session::PutDone done;
    for (const auto& job : put.jobs) {
      if (job) {
        done.results.emplace_back(PushedJob{.seq = ++last_seq_});
      } else {
        done.results.emplace_back(job.error());
      }
    }
    return {std::move(done)};
  }
  Replies answer(const session::Reserve&) { return {}; }
  Replies answer(const session::ReserveJob& reserve) {
    return {session::Reserved{{claimed_job(reserve.job)}}};
  }
  Replies answer(const session::Delete& command) {
    return settled(session::How::deleted, command.jobs.size());
  }
  Replies answer(const session::Release& command) {
    return settled(session::How::released, command.items.size());
  }
  Replies answer(const session::Bury& command) {
    return settled(session::How::buried, command.items.size());
  }
  Replies answer(const session::Touch& command) {
    return settled(session::How::touched, command.jobs.size());
  }
  Replies answer(const session::KickJob&) { return settled(session::How::kicked, 1); }
  Replies answer(const session::PauseQueue&) { return settled(session::How::paused, 1); }
  Replies answer(const session::Fail&) {
    return {session::FailDone{Failed{.status = JobStatus::dead}, Timestamp{}}};
  }
  Replies answer(const session::Kick& kick) { return {session::Kicked{kick.most}}; }
  Replies answer(const session::FindJob&) { return {session::Found{}}; }
  Replies answer(const session::FindNext&) { return {session::Found{}}; }
  Replies answer(const session::FindQueue&) { return {session::QueueFound{}}; }
  Replies answer(const session::ListQueues&) { return {session::AllQueues{}}; }

  Seq last_seq_ = 0;
};

class FakeBroker final : public Broker {
 public:
  FakeBroker() : thread_([this] { run(); }) {}
  ~FakeBroker() override { stop(); }

  // What comes next is answered so. Set them before the server runs, or under with_lock().
  std::function<Result<PushReply>(const PushCommand&)> on_push =
      [this](const PushCommand& command) {
        PushReply reply;
        for (const auto& job : command.jobs) {
          if (job) {
            reply.results.emplace_back(PushedJob{.seq = ++pushed_seq_});
          } else {
            reply.results.emplace_back(job.error());
          }
        }
        return Result<PushReply>(std::move(reply));
      };
  Result<ClaimReply> claim_reply = ClaimReply{};  // of claims that do not wait
  std::deque<Error> refusals;                     // of acks, fails and releases: the next, one each
  std::deque<Error> extension_refusals;
  Result<JobView> view = Error{Errc::job_not_found, "no such job"};
  Result<BrowsePage> page = BrowsePage{};
  std::function<Result<BrowsePage>(const BrowseQuery&)> on_browse;  // empty: `page` for all
  Result<BackupReply> backup_reply = BackupReply{};
  Result<SelectionReply> selection = SelectionReply{};
  Result<Operation> operation = Operation{};
  Result<SelectionPreview> preview_reply = SelectionPreview{};
  Result<ErrorGroups> groups = ErrorGroups{};
  Result<AuditPage> audit_page = AuditPage{};
  Result<QueueStats> stats = stats_of({"default", "orders"});
  std::vector<QueueStats> queues;
  bool created = true;
  bool disk_is_low = false;
  Limits limits_in_force;
  BrokerMetrics metrics_now;
  std::map<std::pair<std::string, std::string>, ConfigEntry> config;  // by namespace and key
  std::map<std::string, std::string> notes;
  std::optional<Error> config_refusal;                                     // of set_config
  std::map<std::pair<std::string, std::string>, ThrottleStats> throttles;  // the same
  std::optional<Error> throttle_refusal;                                   // of set_throttle
  Result<HookTrialReply> hook_trial_reply = HookTrialReply{};
  Result<HookReplayReply> hook_replay_reply = HookReplayReply{};

  // The replies to a command of a session, together; none: it waits.
  std::function<std::vector<session::Reply>(const session::Command&)> on_command = SessionAnswers();
  std::optional<Error> submit_refusal;

  // What was asked; read under with_lock() or after wait_for().
  struct Asked {
    struct Submitted {
      SessionId session{};
      std::vector<session::Command> commands;
    };
    std::vector<SessionOptions> sessions;  // in the order of their ids, from 1 on
    std::vector<Submitted> submitted;
    std::uint64_t submits_refused = 0;
    std::vector<SessionId> sessions_closed;
    std::vector<PushCommand> pushes;
    std::vector<ClaimCommand> claims;
    std::vector<ClaimId> cancelled;
    std::vector<AckItem> acks;
    std::vector<FailItem> fails;
    std::vector<ReleaseItem> releases;
    std::vector<ExtendItem> extensions;
    std::vector<PutQueueCommand> puts;
    std::vector<QueueName> named;  // of queue_stats, edit, pause, delete
    std::vector<bool> pauses;
    std::vector<QueueConfig> edited;
    std::vector<std::string> listed;
    std::vector<std::string> ids;  // of show_job and drop_job
    std::vector<BrowseQuery> browses;
    std::vector<BackupCommand> backups;
    std::vector<std::string> asked_by;  // of drop_job, delete_queue and cancel_operation
    std::vector<SelectionRequest> retries;
    std::vector<SelectionRequest> purges;
    std::vector<StartOperationCommand> operations;
    std::vector<Duration> waits;  // of start_operation
    std::vector<StartOperationCommand> previews;
    std::vector<OperationId> operation_ids;  // of show_operation and cancel_operation
    std::vector<ErrorGroupsQuery> groupings;
    std::vector<AuditQuery> audits;
    std::vector<ConfigEntry> config_sets;
    std::vector<Throttle> throttle_sets;
    std::vector<HookTrialRequest> hook_trials;
    std::vector<HookReplayRequest> hook_replays;
  };

  // Waits until `condition`, a function of Asked, holds. False after ten seconds.
  template <class Condition>
  bool wait_for(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return condition(asked_); });
  }
  template <class Use>
  auto with_lock(Use use) {
    const std::lock_guard lock(mutex_);
    return use(asked_);
  }
  bool wait_for_waiting_claims(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10),
                             [&] { return waiting_.size() == count; });
  }
  // Answers the oldest waiting claim.
  void answer_claim(Result<ClaimReply> reply) {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return;
    auto first = waiting_.begin();
    finish(std::move(first->second), std::move(reply));
    waiting_.erase(first);
  }
  // Answers the command that a session waits in, and goes on with those behind it.
  void answer_command(SessionId id, std::vector<session::Reply> replies) {
    const std::lock_guard lock(mutex_);
    auto& waiting = sessions_.at(id).waiting;
    if (waiting.empty()) return;
    waiting.pop_front();
    answer_session(id, std::move(replies));
  }
  // Sends something to a session, whatever it waits in.
  void deliver(SessionId id, std::vector<session::Reply> replies) {
    const std::lock_guard lock(mutex_);
    send_to_session(id, std::move(replies));
  }
  // From now on callbacks are kept until let_go().
  void hold_replies() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }

  void push(PushCommand command, Done<PushReply> done) override {
    const std::lock_guard lock(mutex_);
    auto reply = on_push(command);
    note(asked_.pushes, std::move(command));
    finish(std::move(done), std::move(reply));
  }
  ClaimId claim(ClaimCommand command, Done<ClaimReply> done) override {
    const std::lock_guard lock(mutex_);
    const ClaimId id = ++last_claim_;
    const bool waits = command.wait > Duration::zero();
    note(asked_.claims, std::move(command));
    if (waits) {
      waiting_.emplace(id, std::move(done));
    } else {
      finish(std::move(done), claim_reply);
    }
    return id;
  }
  void cancel_claim(ClaimId id) override {
    const std::lock_guard lock(mutex_);
    note(asked_.cancelled, id);
    if (auto found = waiting_.find(id); found != waiting_.end()) {
      finish(std::move(found->second), Result<ClaimReply>(ClaimReply{}));
      waiting_.erase(found);
    }
  }
  void ack(std::vector<AckItem> items, Done<ItemResults<Acked>> done) override {
    answer_items(asked_.acks, std::move(items), std::move(done),
                 [](JobKey job) { return Acked{job}; });
  }
  void fail(std::vector<FailItem> items, Done<ItemResults<Failed>> done) override {
    answer_items(asked_.fails, std::move(items), std::move(done), [](JobKey job) {
      return Failed{.job = job, .status = JobStatus::failed, .retry_at = Timestamp{}};
    });
  }
  void release(std::vector<ReleaseItem> items, Done<ItemResults<Released>> done) override {
    answer_items(asked_.releases, std::move(items), std::move(done),
                 [](JobKey job) { return Released{job}; });
  }
  void release_own(Done<std::size_t> done) override { done(std::size_t{0}); }
  void extend(std::vector<ExtendItem> items, Done<ItemResults<Extended>> done) override {
    answer_items(asked_.extensions, std::move(items), std::move(done),
                 [](JobKey job) { return Extended{.job = job, .lease_deadline = Timestamp{}}; });
  }

  SessionId open_session(SessionOptions options) override {
    const std::lock_guard lock(mutex_);
    const SessionId id = ++last_session_;
    sessions_[id].sink = options.sink;
    note(asked_.sessions, std::move(options));
    return id;
  }
  Status submit(SessionId id, std::vector<session::Command>& commands) override {
    const std::lock_guard lock(mutex_);
    if (submit_refusal) {
      ++asked_.submits_refused;
      changed_.notify_all();
      return *submit_refusal;
    }
    Session& session = sessions_.at(id);
    const bool waits = !session.waiting.empty();
    session.waiting.insert(session.waiting.end(), commands.begin(), commands.end());
    note(asked_.submitted, {id, std::exchange(commands, {})});
    if (!waits) answer_session(id, {});
    return ok();
  }
  void end_waits(SessionId) override {}
  void close_session(SessionId id) override {
    const std::lock_guard lock(mutex_);
    sessions_.erase(id);
    note(asked_.sessions_closed, id);
  }
  void attend() override {}

  void put_queue(PutQueueCommand command, Done<PutQueueReply> done) override {
    const std::lock_guard lock(mutex_);
    PutQueueReply reply{.created = created, .stats = stats_of(command.queue)};
    reply.stats.queue.config = command.config;
    note(asked_.puts, std::move(command));
    finish(std::move(done), Result<PutQueueReply>(std::move(reply)));
  }
  void edit_queue(QueueName name, ConfigEdit edit, Done<QueueStats> done) override {
    const std::lock_guard lock(mutex_);
    note(asked_.named, std::move(name));
    Result<QueueStats> edited = stats;
    if (edited) {
      if (const Status status = edit(edited->queue.config); !status) edited = status.error();
    }
    if (edited) note(asked_.edited, edited->queue.config);
    finish(std::move(done), std::move(edited));
  }
  void pause_queue(QueueName name, bool paused, Done<QueueStats> done) override {
    const std::lock_guard lock(mutex_);
    note(asked_.pauses, paused);
    answer_stats(std::move(name), std::move(done));
  }
  void delete_queue(QueueName name, std::string asked_by, Done<QueueStats> done) override {
    const std::lock_guard lock(mutex_);
    note(asked_.asked_by, std::move(asked_by));
    answer_stats(std::move(name), std::move(done));
  }
  void queue_stats(QueueName name, Done<QueueStats> done) override {
    const std::lock_guard lock(mutex_);
    answer_stats(std::move(name), std::move(done));
  }
  void list_queues(std::string ns, Done<std::vector<QueueStats>> done) override {
    const std::lock_guard lock(mutex_);
    note(asked_.listed, std::move(ns));
    finish(std::move(done), Result<std::vector<QueueStats>>(queues));
  }
  void drop_job(QueueName, std::string id, std::string asked_by, Done<DroppedJob> done) override {
    const std::lock_guard lock(mutex_);
    note(asked_.asked_by, std::move(asked_by));
    note(asked_.ids, std::move(id));
    if (view) {
      finish(std::move(done), Result<DroppedJob>(DroppedJob{{1, view->seq}, view->status}));
    } else {
      finish(std::move(done), Result<DroppedJob>(view.error()));
    }
  }
  void show_job(QueueName, std::string id, Done<JobView> done) override {
    const std::lock_guard lock(mutex_);
    note(asked_.ids, std::move(id));
    finish(std::move(done), view);
  }
  void browse(BrowseQuery query, Done<BrowsePage> done) override {
    const std::lock_guard lock(mutex_);
    auto reply = on_browse ? on_browse(query) : page;
    note(asked_.browses, std::move(query));
    finish(std::move(done), std::move(reply));
  }

  void retry(SelectionRequest request, Done<SelectionReply> done) override {
    answer(asked_.retries, std::move(request), std::move(done), selection);
  }
  void purge(SelectionRequest request, Done<SelectionReply> done) override {
    answer(asked_.purges, std::move(request), std::move(done), selection);
  }
  void start_operation(StartOperationCommand command, Duration wait,
                       Done<Operation> done) override {
    {
      const std::lock_guard lock(mutex_);
      note(asked_.waits, wait);
    }
    answer(asked_.operations, std::move(command), std::move(done), operation);
  }
  void preview(StartOperationCommand command, Done<SelectionPreview> done) override {
    answer(asked_.previews, std::move(command), std::move(done), preview_reply);
  }
  void list_operations(Done<std::vector<Operation>> done) override {
    const std::lock_guard lock(mutex_);
    std::vector<Operation> list;
    if (operation && operation->id != 0) list.push_back(*operation);
    finish(std::move(done), Result<std::vector<Operation>>(std::move(list)));
  }
  void show_operation(OperationId id, Done<Operation> done) override {
    answer(asked_.operation_ids, id, std::move(done), operation);
  }
  void cancel_operation(OperationId id, std::string asked_by, Done<Operation> done) override {
    {
      const std::lock_guard lock(mutex_);
      note(asked_.asked_by, std::move(asked_by));
    }
    answer(asked_.operation_ids, id, std::move(done), operation);
  }
  void error_groups(ErrorGroupsQuery query, Done<ErrorGroups> done) override {
    answer(asked_.groupings, std::move(query), std::move(done), groups);
  }
  void audit(AuditQuery query, Done<AuditPage> done) override {
    answer(asked_.audits, std::move(query), std::move(done), audit_page);
  }
  void pending_webhooks(std::optional<WebhookKey> /*after*/, std::uint32_t /*limit*/,
                        Done<std::vector<PendingWebhook>> done) override {
    const std::lock_guard lock(mutex_);
    finish(std::move(done), Result<std::vector<PendingWebhook>>(std::vector<PendingWebhook>{}));
  }
  void finish_webhooks(std::vector<WebhookKey> keys, Done<std::uint64_t> done) override {
    const std::lock_guard lock(mutex_);
    finish(std::move(done), Result<std::uint64_t>(keys.size()));
  }

  void on_webhooks(std::function<void()> /*told*/) override {}

  void set_config(ConfigEntry entry, Done<ConfigEntry> done) override {
    const std::lock_guard lock(mutex_);
    note(asked_.config_sets, entry);
    if (config_refusal) return finish(std::move(done), Result<ConfigEntry>(*config_refusal));
    config[{entry.ns, entry.key}] = entry;
    finish(std::move(done), Result<ConfigEntry>(std::move(entry)));
  }
  void unset_config(std::string ns, std::string key, Done<ConfigEntry> done) override {
    const std::lock_guard lock(mutex_);
    finish(std::move(done), find_config(ns, key));
    config.erase({ns, key});
  }
  void show_config(std::string ns, std::string key, Done<ConfigEntry> done) override {
    const std::lock_guard lock(mutex_);
    finish(std::move(done), find_config(ns, key));
  }
  void list_config(std::string ns, Done<std::vector<ConfigEntry>> done) override {
    const std::lock_guard lock(mutex_);
    std::vector<ConfigEntry> list;
    for (const auto& [name, entry] : config) {
      if (name.first == ns) list.push_back(entry);
    }
    finish(std::move(done), Result<std::vector<ConfigEntry>>(std::move(list)));
  }
  void change_notes(std::vector<NoteChange> changes, Done<std::size_t> done) override {
    const std::lock_guard lock(mutex_);
    for (const NoteChange& change : changes) {
      if (change.value) {
        notes[change.key] = *change.value;
      } else {
        notes.erase(change.key);
      }
    }
    finish(std::move(done), Result<std::size_t>(changes.size()));
  }
  void list_notes(std::string prefix, Done<std::vector<Note>> done) override {
    const std::lock_guard lock(mutex_);
    std::vector<Note> list;
    for (const auto& [key, value] : notes) {
      if (key.starts_with(prefix)) list.push_back({key, value});
    }
    finish(std::move(done), Result<std::vector<Note>>(std::move(list)));
  }
  void set_throttle(Throttle throttle, Done<ThrottleStats> done) override {
    const std::lock_guard lock(mutex_);
    note(asked_.throttle_sets, throttle);
    if (throttle_refusal) return finish(std::move(done), Result<ThrottleStats>(*throttle_refusal));
    const ThrottleStats set{.throttle = throttle, .tokens = static_cast<double>(throttle.burst)};
    throttles[{throttle.ns, throttle.key}] = set;
    finish(std::move(done), Result<ThrottleStats>(set));
  }
  void unset_throttle(std::string ns, std::string key, Done<ThrottleStats> done) override {
    const std::lock_guard lock(mutex_);
    finish(std::move(done), find_throttle(ns, key));
    throttles.erase({ns, key});
  }
  void show_throttle(std::string ns, std::string key, Done<ThrottleStats> done) override {
    const std::lock_guard lock(mutex_);
    finish(std::move(done), find_throttle(ns, key));
  }
  void list_throttles(std::string ns, Done<std::vector<ThrottleStats>> done) override {
    const std::lock_guard lock(mutex_);
    std::vector<ThrottleStats> list;
    for (const auto& [name, throttle] : throttles) {
      if (ns.empty() || name.first == ns) list.push_back(throttle);
    }
    finish(std::move(done), Result<std::vector<ThrottleStats>>(std::move(list)));
  }
  void try_hook(HookTrialRequest request, Done<HookTrialReply> done) override {
    answer(asked_.hook_trials, std::move(request), std::move(done), hook_trial_reply);
  }
  void replay_hook(HookReplayRequest request, Done<HookReplayReply> done) override {
    answer(asked_.hook_replays, std::move(request), std::move(done), hook_replay_reply);
  }

  void backup(BackupCommand command, Done<BackupReply> done) override {
    const std::lock_guard lock(mutex_);
    note(asked_.backups, std::move(command));
    finish(std::move(done), backup_reply);
  }

  EventHub& events() override { return hub_; }
  BrokerMetrics metrics() const override { return metrics_now; }
  const Limits& limits() const override { return limits_in_force; }
  bool disk_low() const override { return disk_is_low; }
  Timestamp now() const override {
    return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  }

  void stop_waiting() override {}
  void stop() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      held_ = false;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  using Callback = absl::AnyInvocable<void()>;

  template <class T>
  void note(std::vector<T>& list, T item) {
    list.push_back(std::move(item));
    changed_.notify_all();
  }

  template <class T>
  void finish(Done<T> done, Result<T> result) {
    callbacks_.push_back([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
    changed_.notify_all();
  }

  template <class Item, class T>
  void answer(std::vector<Item>& asked, Item item, Done<T> done, const Result<T>& reply) {
    const std::lock_guard lock(mutex_);
    note(asked, std::move(item));
    finish(std::move(done), reply);
  }

  Result<ConfigEntry> find_config(const std::string& ns, const std::string& key) const {
    const auto found = config.find({ns, key});
    if (found == config.end()) return Error{Errc::config_not_found, "no key '" + key + "'"};
    return found->second;
  }

  Result<ThrottleStats> find_throttle(const std::string& ns, const std::string& key) const {
    const auto found = throttles.find({ns, key});
    if (found == throttles.end()) return Error{Errc::throttle_not_found, "no throttle " + key};
    return found->second;
  }

  void answer_stats(QueueName name, Done<QueueStats> done) {
    note(asked_.named, std::move(name));
    finish(std::move(done), stats);
  }

  template <class Item, class T, class Succeed>
  void answer_items(std::vector<Item>& asked, std::vector<Item> items, Done<ItemResults<T>> done,
                    Succeed succeed) {
    const std::lock_guard lock(mutex_);
    auto& refused = std::is_same_v<T, Extended> ? extension_refusals : refusals;
    if (!refused.empty()) {
      Error refusal = std::move(refused.front());
      refused.pop_front();
      for (Item& item : items) note(asked, std::move(item));
      return finish(std::move(done), Result<ItemResults<T>>(std::move(refusal)));
    }
    ItemResults<T> results;
    for (const Item& item : items) {
      if (item.token) {
        results.emplace_back(succeed(item.token->job));
      } else {
        results.emplace_back(item.token.error());
      }
    }
    for (Item& item : items) note(asked, std::move(item));
    finish(std::move(done), Result<ItemResults<T>>(std::move(results)));
  }

  struct Session {
    std::shared_ptr<session::Sink> sink;
    std::deque<session::Command> waiting;  // the first one waits for answer_command()
  };

  void answer_session(SessionId id, std::vector<session::Reply> replies) {
    auto& waiting = sessions_.at(id).waiting;
    for (; !waiting.empty(); waiting.pop_front()) {
      auto next = on_command(waiting.front());
      if (next.empty()) break;
      for (auto& reply : next) replies.push_back(std::move(reply));
    }
    if (!replies.empty()) send_to_session(id, std::move(replies));
  }

  void send_to_session(SessionId id, std::vector<session::Reply> replies) {
    callbacks_.push_back([sink = sessions_.at(id).sink, replies = std::move(replies)]() mutable {
      sink->deliver(std::move(replies));
      sink->delivered();
    });
    changed_.notify_all();
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || (!held_ && !callbacks_.empty()); });
      if (callbacks_.empty()) return;
      Callback callback = std::move(callbacks_.front());
      callbacks_.pop_front();
      lock.unlock();
      callback();
      callback = nullptr;
      lock.lock();
    }
  }

  EventHub hub_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Protected by mutex_.
  Asked asked_;
  Seq pushed_seq_ = 0;
  ClaimId last_claim_ = 0;
  SessionId last_session_ = 0;
  std::map<SessionId, Session> sessions_;
  std::map<ClaimId, Done<ClaimReply>> waiting_;
  std::deque<Callback> callbacks_;
  bool held_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace reprise::test
