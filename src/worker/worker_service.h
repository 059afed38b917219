// WorkerService: the projects this server knows, their workers and their runs (docs/runbooks.md).
//
// Threads: every method may be called from any thread. Callbacks come on the service's own thread,
// or on the caller's for what is refused at once, and must be short. Each is called exactly once.
#pragma once

#include <absl/functional/any_invocable.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/result.h"
#include "base/time.h"
#include "broker/broker.h"
#include "runbook/runbook.h"

namespace reprise::worker {

struct ProjectView {
  std::string ns;
  std::string root;
  std::optional<Timestamp> loaded_at;  // when the version in force was read; nothing: never
  std::vector<std::string> files;
  std::uint64_t queues = 0;
  std::uint64_t pipelines = 0;
  std::uint64_t workers = 0;
  // Of the version on disk. With errors among them the last good version is in force, if any.
  std::vector<runbook::Finding> findings;
  bool broken = false;   // there are errors among them, or the directory is gone
  bool missing = false;  // the latter
};

enum class WorkerStatus : std::uint8_t {
  stopped,
  running,
  stopping,    // takes no more; some still run
  restarting,  // the same, and starts again afterwards
};
std::string_view worker_status_name(WorkerStatus status);

struct WorkerView {
  std::string ns;
  std::string name;
  std::string queue;
  bool external = false;
  std::string pipeline;
  WorkerStatus status{};
  std::uint32_t active = 0;
  std::uint32_t concurrency = 0;
  bool autostart = false;
  std::optional<Timestamp> last_poll_at;  // of an external queue
  std::optional<Timestamp> next_poll_at;
  std::uint64_t succeeded = 0;  // runs, since the server started
  std::uint64_t failed = 0;
  std::string last_error;  // empty: none since it last went well
  std::optional<Timestamp> last_error_at;
};
struct WorkerList {
  std::vector<WorkerView> workers;    // by namespace and name
  std::vector<ProjectView> projects;  // theirs
};

enum class WorkerVerb : std::uint8_t { start, stop, restart, resize };
struct WorkerCommand {
  WorkerVerb verb{};
  std::string ns;
  std::string root;  // start: the project, if the server may not know it yet; empty: it does
  std::vector<std::string> names;
  bool all = false;               // instead of names
  bool now = false;               // stop, restart: running ones are given back
  std::uint32_t concurrency = 0;  // resize
};
struct WorkerReply {
  struct Item {
    std::string name;
    Result<WorkerView> worker;
    bool was_running = false;
  };
  std::vector<Item> items;
};

struct ExternalQueueView {
  QueueName queue;
  std::vector<std::string> workers;
  std::optional<Duration> poll;
  std::optional<Timestamp> last_poll_at;  // of any worker
  std::uint64_t listed = 0;               // items of the last list
  std::uint64_t in_hand = 0;
  std::string last_error;  // empty: none
};

enum class RunStatus : std::uint8_t { running, succeeded, failed, cancelled, lost };
std::string_view run_status_name(RunStatus status);
std::optional<RunStatus> run_status_from_name(std::string_view name);

struct StepView {
  std::string name;
  std::uint32_t visit = 1;
  RunStatus status{};
  std::optional<int> exit_code;
  std::string error;  // empty: none
  Timestamp started_at{};
  std::optional<Timestamp> ended_at;
};
struct RunView {
  std::string id;
  std::string ns;
  std::string pipeline;
  std::string worker;  // empty: a trial
  std::string queue;   // the same
  std::string job;     // its id, or the key of an external item
  bool external = false;
  RunStatus status{};
  Timestamp started_at{};
  std::optional<Timestamp> ended_at;
  std::string error;  // empty: none
  std::string error_type;
  std::vector<StepView> steps;     // in the order they ran; the latest 100
  std::uint64_t log_bytes = 0;     // that are kept
  std::uint64_t log_left_out = 0;  // bytes beyond the limit
};

struct StartRunCommand {
  std::string ns;
  std::string root;  // as with WorkerCommand
  std::string pipeline;
  std::string item;  // JSON; empty: {}
};
struct RunQuery {
  std::string ns;  // empty: all
  std::string worker;
  std::string queue;
  std::string pipeline;
  std::optional<RunStatus> status;
  std::uint32_t limit = 50;
};

// A piece of a log, from a place on. `next` is where the following one begins.
struct LogQuery {
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> tail;  // instead: its last so many bytes
  std::uint64_t limit = 256 * 1024;
  Duration wait{};  // for something to read, if there is nothing yet
};
struct LogPart {
  std::string text;
  std::uint64_t next = 0;
  bool ended = false;  // nothing will follow
};

struct TimerView {
  std::string id;  // "queue-poll:shop/fixer", "queue-retry:shop/orders:7ZK3M9QAX2B4C"
  Timestamp due_at{};
};

struct WorkerMetrics {
  std::uint64_t projects = 0;
  std::uint64_t broken_projects = 0;
  std::uint64_t workers_running = 0;
  std::uint64_t workers_stopped = 0;
  std::uint64_t slots = 0;  // of running workers
  std::uint64_t active = 0;
  std::uint64_t runs_succeeded = 0;
  std::uint64_t runs_failed = 0;
  std::uint64_t runs_cancelled = 0;
  std::uint64_t runs_lost = 0;
  std::uint64_t polls_succeeded = 0;
  std::uint64_t polls_failed = 0;
};

struct WorkerOptions {
  std::string directory;     // for runs, logs and the lock; made if missing
  std::string step_program;  // see StepRunnerOptions
  std::uint32_t keep_runs = 1000;
  std::uint64_t run_log_bytes = 10ULL << 20;
  std::function<std::string()> server_url;  // for REPRISE_URL
  std::function<void(std::string_view)> info;
  std::function<void(std::string_view)> warn;
};

class WorkerService {
 public:
  // Remembers the projects and workers of the last run of the server. Broker and clock must outlive
  // it, and it must outlive the broker's stop().
  static Result<std::unique_ptr<WorkerService>> open(Broker& broker, const Clock& clock,
                                                     Random& random, WorkerOptions options);
  virtual ~WorkerService() = default;  // stops first

  // Loads the projects it remembers and starts their workers. Once, when the server answers.
  virtual void begin() = 0;

  // Loads the project in `root` and remembers it. `ns` overrides its name unless empty.
  // Errc::project_conflict, unsafe_project, or invalid_runbook with all findings in the message;
  // then nothing is changed.
  virtual void add_project(std::string root, std::string ns, Done<ProjectView> done) = 0;
  // The same, but one whose runbook is broken is tried again whenever it has changed.
  virtual void want_project(std::string root, std::string ns, Done<ProjectView> done) = 0;
  virtual void remove_project(std::string ns, Done<ProjectView> done) = 0;
  virtual void list_projects(Done<std::vector<ProjectView>> done) = 0;

  virtual void list_workers(std::string ns, Done<WorkerList> done) = 0;  // empty: all
  // Errc::project_not_found; errors of single workers (worker_not_found) are in the reply.
  virtual void change_workers(WorkerCommand command, Done<WorkerReply> done) = 0;

  virtual bool is_external(const QueueName& queue) const = 0;  // never waits
  // Errc::project_conflict: `ns` is the project of another directory, or `root` is known by another
  // name. What the server does not know is fine. Never waits.
  virtual Status check_root(const std::string& ns, const std::string& root) const = 0;
  virtual void list_external(std::string ns, Done<std::vector<ExternalQueueView>> done) = 0;
  // Has its running workers list it now. Errc::queue_not_external, queue_not_found.
  virtual void refresh(QueueName queue, Done<ExternalQueueView> done) = 0;

  virtual void start_run(StartRunCommand command, Done<RunView> done) = 0;
  virtual void list_runs(RunQuery query, Done<std::vector<RunView>> done) = 0;  // newest first
  // `id` is whole or a unique prefix of at least 4. Answers when it has ended, or after `wait`.
  virtual void show_run(std::string id, Duration wait, Done<RunView> done) = 0;
  virtual void cancel_run(std::string id, Done<RunView> done) = 0;  // Errc::wrong_status: ended
  virtual void read_run_log(std::string id, LogQuery query, Done<LogPart> done) = 0;
  virtual void read_worker_log(std::string ns, std::string worker, LogQuery query,
                               Done<LogPart> done) = 0;

  // Poll timers of all, or of one namespace.
  virtual void list_timers(std::string ns, Done<std::vector<TimerView>> done) = 0;
  virtual WorkerMetrics metrics() const = 0;

  // Who waits is answered at once from now on.
  virtual void stop_waiting() = 0;
  // Ends running steps, gives their jobs back, and joins the threads. Call it before broker.stop().
  virtual void stop() = 0;
};

}  // namespace reprise::worker
