// Service: WorkerService as it is: projects, workers and runs on one loop. For its own .cpp files.
// Threads: everything is the loop's, but for what a mutex protects.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runbook/load.h"
#include "worker/items_in_hand.h"
#include "worker/loop.h"
#include "worker/run.h"
#include "worker/run_store.h"
#include "worker/step_runner.h"
#include "worker/worker.h"
#include "worker/worker_service.h"

namespace reprise::worker {

// A project that the server knows.
struct Project {
  std::string ns;
  std::string root;
  Book book;  // the version in force; null: none yet
  std::optional<Timestamp> loaded_at;
  std::string fingerprint;  // of the version that was looked at last; empty: look again
  std::vector<runbook::Finding> findings;
  bool broken = false;
  bool missing = false;       // the directory is gone
  bool applying = false;      // a version is being put in force
  std::vector<Task> waiting;  // for that
  std::map<std::string, std::shared_ptr<Worker>, std::less<>> workers;
};

// What is remembered of a worker: note "worker/<namespace>/<name>".
struct WorkerMemory {
  bool running = false;
  std::uint32_t concurrency = 0;  // 0: as declared
  std::uint32_t declared = 0;     // at that time
  friend bool operator==(const WorkerMemory&, const WorkerMemory&) = default;
};

class Service final : public WorkerService, private WorkerHost {
 public:
  Service(Broker& broker, const Clock& clock, Random& random, WorkerOptions options);
  ~Service() override;
  // Before anything else.
  Status start();

  void begin() override;
  void want_project(std::string root, std::string ns, Done<ProjectView> done) override;
  void add_project(std::string root, std::string ns, Done<ProjectView> done) override;
  void remove_project(std::string ns, Done<ProjectView> done) override;
  void list_projects(Done<std::vector<ProjectView>> done) override;
  void list_workers(std::string ns, Done<WorkerList> done) override;
  void change_workers(WorkerCommand command, Done<WorkerReply> done) override;
  bool is_external(const QueueName& queue) const override;
  Status check_root(const std::string& ns, const std::string& root) const override;
  void list_external(std::string ns, Done<std::vector<ExternalQueueView>> done) override;
  void refresh(QueueName queue, Done<ExternalQueueView> done) override;
  void start_run(StartRunCommand command, Done<RunView> done) override;
  void list_runs(RunQuery query, Done<std::vector<RunView>> done) override;
  void show_run(std::string id, Duration wait, Done<RunView> done) override;
  void cancel_run(std::string id, Done<RunView> done) override;
  void read_run_log(std::string id, LogQuery query, Done<LogPart> done) override;
  void read_worker_log(std::string ns, std::string worker, LogQuery query,
                       Done<LogPart> done) override;
  void list_timers(std::string ns, Done<std::vector<TimerView>> done) override;
  WorkerMetrics metrics() const override;
  void stop_waiting() override;
  void stop() override;

 private:
  using ProjectDone = absl::AnyInvocable<void(Result<Project*>)>;
  // Who waits for a run to end, or a log to grow.
  struct Waiter {
    Timestamp deadline{};
    absl::AnyInvocable<bool(bool last)> answer;  // false: not yet; with `last` it always does
  };

  // WorkerHost
  RunTools tools() override;
  Broker& broker() override { return broker_; }
  ItemsInHand& items() override { return *items_; }
  ExternalQueueState& external_state(const QueueName& queue) override;
  WorkerCounts& counts() override { return counts_; }
  void refresh_project(const std::string& ns, Task then) override;
  void redeclare_queue(const std::string& ns, const std::string& queue) override;
  void run_begins(std::shared_ptr<Run> run) override;
  void run_ends(const std::string& id, const RunEnd& end) override;
  void call_begins() override { ++calls_; }
  void call_ends() override {
    --calls_;
    check_idle();
  }
  void worker_changed(const std::string& ns, const std::string& worker) override;
  void publish(EventType type, const QueueName& queue, WorkerNews news, std::string error) override;
  void warn(std::string_view text) override;
  void info(std::string_view text);

  // service.cpp
  Status restore_notes();
  void change_notes(std::vector<NoteChange> changes, absl::AnyInvocable<void(Status)> done);
  void give_back_lost_jobs();
  void begin_shutdown(std::shared_ptr<std::promise<void>> idle);
  void check_idle();
  void update_metrics();
  void tick();
  void try_wanted();
  void when_refreshed(const std::string& ns, Task then);

  // service_projects.cpp
  void load_project(std::string root, std::string ns, ProjectDone done);
  // The project of a namespace, loaded from `root` first if it is not known. With a book.
  void with_project(const std::string& ns, const std::string& root, ProjectDone done);
  void put_in_force(Project& project, Book book, absl::AnyInvocable<void(Status)> done);
  void adopt(Project& project, Book book);
  void reconcile_worker(Project& project, const Book& book,
                        const runbook::WorkerDeclaration& declaration);
  std::shared_ptr<WorkerLog> log_of(const std::string& ns, const std::string& worker);
  void retire(const std::string& ns, std::shared_ptr<Worker> worker);
  void look_again(Project& project, Task then);
  void refuse(Project& project, std::vector<runbook::Finding> findings);
  void forget_project(const std::string& ns);
  void update_external_names();
  Project* find_project(const std::string& ns);
  ProjectView view_of(const Project& project) const;
  ExternalQueueView view_of(const Project& project, const runbook::QueueDeclaration& queue);

  // service_workers.cpp
  WorkerReply::Item change_worker(Project& project, const WorkerCommand& command,
                                  const std::string& name);

  void refuse_to_refresh(const QueueName& queue, Done<ExternalQueueView> done);

  // service_runs.cpp
  void wait(Duration wait, absl::AnyInvocable<bool(bool last)> answer);
  void ask_waiters();

  Broker& broker_;
  const Clock& clock_;
  Random& random_;
  const WorkerOptions options_;
  const std::vector<std::string> environment_;
  std::unique_ptr<ThreadLoop> loop_;
  std::unique_ptr<RunStore> store_;
  std::unique_ptr<StepRunner> steps_;
  std::unique_ptr<ItemsInHand> items_;

  std::map<std::string, std::unique_ptr<Project>, std::less<>> projects_;
  std::vector<std::shared_ptr<Worker>> retired_;               // until nothing of them runs
  std::map<std::string, WorkerMemory, std::less<>> memories_;  // by note key
  std::map<QueueName, ExternalQueueState> external_;
  std::map<std::string, std::shared_ptr<Run>, std::less<>> runs_;  // that run
  std::uint32_t trials_ = 0;
  std::uint64_t calls_ = 0;                               // that the broker has not answered
  std::map<std::string, std::weak_ptr<WorkerLog>> logs_;  // by path
  WorkerCounts counts_;
  std::vector<Waiter> waiters_;
  bool no_waiting_ = false;
  std::optional<std::pair<std::string, std::string>> wanted_;  // root and name of a project to load
  std::string wanted_fingerprint_;
  bool stopping_ = false;
  std::shared_ptr<std::promise<void>> idle_;

  mutable std::mutex mutex_;
  std::set<QueueName> external_names_;        // protected by mutex_
  std::map<std::string, std::string> roots_;  // of projects, protected by mutex_
  WorkerMetrics metrics_;                     // protected by mutex_
  bool stopped_ = false;                      // the stopping thread's
};

// "No worker 'shiper' in project 'shop'; did you mean 'shipper'?"
Error not_found(Errc code, std::string_view kind, std::string_view name, std::string_view ns,
                const std::vector<std::string>& known);

}  // namespace reprise::worker
