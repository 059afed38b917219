// Broker: the engine with its storage and its threads.
//
// The engine's thread applies commands in the order they came and gathers their changes into one
// open batch; the committer's threads write batches, two at a time in sync mode. While they write,
// the next one gathers, so load makes batches large and idleness makes them immediate; there is no
// timer. A command that comes alone is committed by the thread that has applied it. Replies leave
// in order, after the batch that holds them is as durable as the mode promises.
//
// A failed commit or sync: nothing of that batch is answered, now or later; `on_fatal` is called
// once and the broker takes no further commands. The process must end; a restart finds out what
// reached the disk.
//
// Threads: every method may be called from any thread. Callbacks run on one of the broker's own
// threads (or, for a command that is refused at once, on the caller's) and must be short: hand the
// work on. Each callback is called exactly once, except after a fatal error.
#pragma once

#include <absl/functional/any_invocable.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "broker/browse.h"
#include "broker/event_hub.h"
#include "broker/metrics.h"
#include "broker/session.h"
#include "engine/commands.h"
#include "model/config_entry.h"
#include "model/hook.h"
#include "model/limits.h"
#include "model/note.h"
#include "model/throttle.h"
#include "model/webhook.h"
#include "storage/storage.h"

namespace reprise {

enum class DurabilityMode : std::uint8_t { sync, interval, none };
std::string_view durability_mode_name(DurabilityMode mode);

template <class T>
using Done = absl::AnyInvocable<void(Result<T>)>;

struct SelectionRequest {
  QueueName queue;
  std::vector<std::string> ids;
  std::string asked_by;  // the name of the token it came with; empty: none
};

struct BackupCommand {
  std::string directory;
  std::string asked_by;  // the name of the token it came with, for the log; empty: none
};
struct BackupReply {
  std::string directory;
  std::uint64_t bytes = 0;
  Duration took{};
};

// A script of a queue, run against messages that change nothing.
struct HookTrialRequest {
  QueueName queue;
  HookKind hook{};
  std::optional<std::string> source;  // nothing: the queue's own
  std::vector<HookMessage> messages;
};
struct HookTrialReply {
  struct Item {
    HookOutcome outcome;
    std::vector<std::string> log;
  };
  std::string version;
  std::vector<Item> items;  // one for each message
};

// What an on_failure would have decided for jobs that are dead or failed.
struct HookReplayRequest {
  QueueName queue;
  std::optional<std::string> source;  // nothing: the queue's own
  JobFilter filter;
  std::uint64_t limit = 1000;
};
struct HookReplayReply {
  struct Item {
    JobView job;
    HookOutcome outcome;
  };
  std::string version;
  std::vector<Item> items;
  std::uint64_t unreadable = 0;
  bool truncated = false;  // more jobs fit the filter
};

struct BrokerOptions {
  DurabilityMode durability = DurabilityMode::sync;
  Duration sync_interval = std::chrono::milliseconds(50);
  std::uint64_t cache_bytes = 16ULL << 20;
  std::uint64_t max_queued_commands = 20000;      // beyond: Errc::overloaded
  std::uint64_t max_queued_bytes = 128ULL << 20;  // of jobs in commands not yet applied
  Limits limits;
  // Bytes free on the data directory's file system, and how many must stay free for acks.
  std::function<std::uint64_t()> free_disk_bytes;  // empty: never low
  std::uint64_t disk_reserve_bytes = 256ULL << 20;
  // Processes that run hooks at once, and what to start for them; empty: this very program.
  std::uint32_t max_hook_hosts = 64;
  std::string hook_program;
  // What scripts log, and what is worth knowing about hooks; from threads of the broker.
  std::function<void(const QueueName&, HookKind, std::string_view text)> on_hook_log;
  std::function<void(const QueueName&, HookKind, std::string_view text)> on_hook_trouble;
  std::function<void(std::string_view text)> on_hook_notice;
  // Called once, from a thread that commits, with the reason.
  std::function<void(const Error&)> on_fatal;
  // Called for each backup that was tried, when it has ended.
  std::function<void(const BackupCommand&, const Result<BackupReply>&)> on_backup;
};

class Broker {
 public:
  // Recovers the engine from storage. The storage must outlive the broker.
  static Result<std::unique_ptr<Broker>> open(storage::Storage& storage, const Clock& clock,
                                              Random& random, BrokerOptions options);
  virtual ~Broker() = default;  // stops first

  virtual void push(PushCommand command, Done<PushReply> done) = 0;
  // Waits up to command.wait for the first job; an empty reply is a timeout.
  virtual ClaimId claim(ClaimCommand command, Done<ClaimReply> done) = 0;
  // The waiting claim ends with an empty reply; unknown ids are fine.
  virtual void cancel_claim(ClaimId id) = 0;
  virtual void ack(std::vector<AckItem> items, Done<ItemResults<Acked>> done) = 0;
  virtual void fail(std::vector<FailItem> items, Done<ItemResults<Failed>> done) = 0;
  virtual void release(std::vector<ReleaseItem> items, Done<ItemResults<Released>> done) = 0;
  virtual void extend(std::vector<ExtendItem> items, Done<ItemResults<Extended>> done) = 0;
  // Gives back, unharmed, what workers of the server that was before (ClaimCommand::own) held when
  // it ended; how many jobs. Until then these leases do not expire, so call it once at each start,
  // when nobody works on them any more.
  virtual void release_own(Done<std::size_t> done) = 0;

  // Sessions (session.h). What one leases is released when it is closed; replies to commands that
  // are still in line then do not come. Unknown ids are fine.
  virtual SessionId open_session(SessionOptions options) = 0;
  // Takes the commands when it returns ok, and leaves them as they are when not: Errc::overloaded,
  // Errc::shutting_down. They are in line then; attend() has to follow, on the same thread, when
  // all that has come is in line.
  virtual Status submit(SessionId session, std::vector<session::Command>& commands) = 0;
  // From now on its reserves wait for nothing: that which does ends as if its time were over.
  virtual void end_waits(SessionId session) = 0;
  virtual void close_session(SessionId session) = 0;
  // Has what is in line done: by the engine's thread, or, when that rests and it is little, by the
  // caller's, replies and all. A client that is alone waits for no other thread that way.
  virtual void attend() = 0;

  virtual void put_queue(PutQueueCommand command, Done<PutQueueReply> done) = 0;
  virtual void edit_queue(QueueName name, ConfigEdit edit, Done<QueueStats> done) = 0;
  virtual void pause_queue(QueueName name, bool paused, Done<QueueStats> done) = 0;
  virtual void delete_queue(QueueName name, std::string asked_by,
                            Done<QueueStats> done) = 0;  // its last stats
  virtual void queue_stats(QueueName name, Done<QueueStats> done) = 0;
  // Of one namespace, or of all when `ns` is empty; by name.
  virtual void list_queues(std::string ns, Done<std::vector<QueueStats>> done) = 0;

  // `id` is a whole id or a unique prefix of one.
  virtual void drop_job(QueueName queue, std::string id, std::string asked_by,
                        Done<DroppedJob> done) = 0;
  virtual void show_job(QueueName queue, std::string id, Done<JobView> done) = 0;
  virtual void browse(BrowseQuery query, Done<BrowsePage> done) = 0;

  // Of jobs that were given up. `ids` are whole ids or unique prefixes.
  virtual void retry(SelectionRequest request, Done<SelectionReply> done) = 0;
  virtual void purge(SelectionRequest request, Done<SelectionReply> done) = 0;
  // Answers when the operation has ended, or after `wait` as it is then.
  virtual void start_operation(StartOperationCommand command, Duration wait,
                               Done<Operation> done) = 0;
  virtual void preview(StartOperationCommand command, Done<SelectionPreview> done) = 0;
  virtual void list_operations(Done<std::vector<Operation>> done) = 0;  // newest first
  virtual void show_operation(OperationId id, Done<Operation> done) = 0;
  virtual void cancel_operation(OperationId id, std::string asked_by, Done<Operation> done) = 0;
  virtual void error_groups(ErrorGroupsQuery query, Done<ErrorGroups> done) = 0;
  virtual void audit(AuditQuery query, Done<AuditPage> done) = 0;

  // Deaths that are to be told, oldest first, after a given one; and those that need not be told
  // any more (how many).
  virtual void pending_webhooks(std::optional<WebhookKey> after, std::uint32_t limit,
                                Done<std::vector<PendingWebhook>> done) = 0;
  virtual void finish_webhooks(std::vector<WebhookKey> keys, Done<std::uint64_t> done) = 0;
  // From now on `told` is called, on one of the broker's threads, when there are new ones. It must
  // be short.
  virtual void on_webhooks(std::function<void()> told) = 0;

  // Copies everything that was acknowledged before the call to a directory that is not there yet.
  // Runs beside everything else and may take long. Errc::backup_running: one at a time; the others
  // are those of Storage::backup().
  virtual void backup(BackupCommand command, Done<BackupReply> done) = 0;

  // Runtime values that hooks look up. Hooks see a change from the next call on.
  virtual void set_config(ConfigEntry entry, Done<ConfigEntry> done) = 0;
  virtual void unset_config(std::string ns, std::string key, Done<ConfigEntry> done) = 0;
  virtual void show_config(std::string ns, std::string key, Done<ConfigEntry> done) = 0;
  virtual void list_config(std::string ns, Done<std::vector<ConfigEntry>> done) = 0;  // by key

  // What jobs that name a throttle key may be started with. An empty `ns`: all namespaces.
  virtual void set_throttle(Throttle throttle, Done<ThrottleStats> done) = 0;
  virtual void unset_throttle(std::string ns, std::string key, Done<ThrottleStats> done) = 0;
  virtual void show_throttle(std::string ns, std::string key, Done<ThrottleStats> done) = 0;
  virtual void list_throttles(std::string ns,
                              Done<std::vector<ThrottleStats>> done) = 0;  // by namespace and key

  // Changes all of them or none. Notes with keys that begin with `prefix`, by key.
  virtual void change_notes(std::vector<NoteChange> changes, Done<std::size_t> done) = 0;
  virtual void list_notes(std::string prefix, Done<std::vector<Note>> done) = 0;

  virtual void try_hook(HookTrialRequest request, Done<HookTrialReply> done) = 0;
  virtual void replay_hook(HookReplayRequest request, Done<HookReplayReply> done) = 0;

  virtual EventHub& events() = 0;
  virtual BrokerMetrics metrics() const = 0;
  virtual const Limits& limits() const = 0;
  virtual bool disk_low() const = 0;
  virtual Timestamp now() const = 0;

  // Who waits for an operation is answered at once, from now on: the server is about to stop.
  virtual void stop_waiting() = 0;

  // Ends waiting claims with an empty reply, commits what was accepted, syncs, answers, and joins
  // the threads. Commands from then on get Errc::shutting_down.
  virtual void stop() = 0;
};

}  // namespace reprise
