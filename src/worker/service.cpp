#include "worker/service.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/json_view.h"
#include "base/json_writer.h"
#include "worker/step_environment.h"

namespace reprise::worker {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(500);
constexpr auto kStopGrace = std::chrono::seconds(5);
constexpr std::string_view kProjectNotes = "project/";
constexpr std::string_view kWorkerNotes = "worker/";
constexpr char kTickTimer[] = "tick";

std::string encode_memory(const WorkerMemory& memory) {
  JsonWriter out;
  out.begin_object();
  out.key("running").value(memory.running);
  out.key("concurrency").value(memory.concurrency);
  out.key("declared").value(memory.declared);
  out.end_object();
  return out.take();
}

WorkerMemory decode_memory(std::string_view text) {
  const JsonView json(text);
  const auto number = [&](std::string_view name) {
    return static_cast<std::uint32_t>(json[name].unsigned_integer().value_or(0));
  };
  return {json["running"].is_true(), number("concurrency"), number("declared")};
}

}  // namespace

Result<std::unique_ptr<WorkerService>> WorkerService::open(Broker& broker, const Clock& clock,
                                                           Random& random, WorkerOptions options) {
  auto service = std::make_unique<Service>(broker, clock, random, std::move(options));
  REPRISE_TRY(service->start());
  return std::unique_ptr<WorkerService>(std::move(service));
}

Service::Service(Broker& broker, const Clock& clock, Random& random, WorkerOptions options)
    : broker_(broker),
      clock_(clock),
      random_(random),
      options_(std::move(options)),
      environment_(inherited_environment()) {}

Service::~Service() { stop(); }

Status Service::start() {
  auto store = RunStore::open({.directory = options_.directory + "/runs",
                               .keep = options_.keep_runs,
                               .log_bytes = options_.run_log_bytes},
                              random_, clock_.now());
  if (!store) return store.error();
  store_ = *std::move(store);
  loop_ = std::make_unique<ThreadLoop>(clock_);
  StepRunnerOptions steps;
  steps.program = options_.step_program;
  steps.lock_file = options_.directory + "/steps.lock";
  steps.warn = [this](std::string_view text) { warn(text); };
  auto runner = StepRunner::make(std::move(steps));
  if (!runner) return runner.error();
  steps_ = *std::move(runner);
  items_ = std::make_unique<ItemsInHand>(
      tools(),
      [this](std::vector<NoteChange> changes, absl::AnyInvocable<void(Status)> done) {
        change_notes(std::move(changes), std::move(done));
      },
      [this](std::string_view text) { warn(text); });
  steps_->when_ready([this] { give_back_lost_jobs(); });
  return restore_notes();
}

// Nothing of the former server runs any more, so that its jobs may run again.
void Service::give_back_lost_jobs() {
  broker_.release_own([this](const Result<std::size_t>& released) {
    if (!released) {
      warn(fmt::format("jobs that ran when the server ended cannot be given back: {}",
                       released.error().detail));
    } else if (*released > 0) {
      info(fmt::format("{} jobs that ran when the server ended are back in their queues",
                       *released));
    }
  });
}

Status Service::restore_notes() {
  std::promise<Result<std::vector<Note>>> promise;
  auto future = promise.get_future();
  broker_.list_notes("",
                     [&](Result<std::vector<Note>> notes) { promise.set_value(std::move(notes)); });
  auto notes = future.get();
  if (!notes) return notes.error();
  loop_->post([this, notes = *std::move(notes)] {
    for (const Note& note : notes) {
      const std::string_view key = note.key;
      if (key.starts_with(kProjectNotes)) {
        auto project = std::make_unique<Project>();
        project->ns = key.substr(kProjectNotes.size());
        project->root = JsonView(note.value)["root"].string_or("");
        projects_.emplace(project->ns, std::move(project));
      } else if (key.starts_with(kWorkerNotes)) {
        memories_.emplace(note.key, decode_memory(note.value));
      } else if (key.starts_with(kItemNotes)) {
        auto item = decode_item(note.value);
        if (item) {
          items_->restore(*std::move(item));
        } else {
          warn(item.error().detail);
        }
      }
    }
    update_external_names();
  });
  return ok();
}

void Service::begin() {
  loop_->post([this] {
    std::vector<std::string> names;
    for (const auto& [ns, project] : projects_) names.push_back(ns);
    // Their fingerprints are empty, so each is read.
    for (const std::string& ns : names) {
      Project* project = find_project(ns);
      if (project != nullptr && project->book == nullptr && !project->applying) {
        look_again(*project, [] {});
      }
    }
    tick();
  });
}

void Service::change_notes(std::vector<NoteChange> changes, absl::AnyInvocable<void(Status)> done) {
  broker_.change_notes(std::move(changes), [this, done = std::move(done)](
                                               const Result<std::size_t>& stored) mutable {
    Status result = ok();
    if (!stored) result = stored.error();
    loop_->post([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  });
}

void Service::want_project(std::string root, std::string ns, Done<ProjectView> done) {
  loop_->post([this, root, ns] {
    wanted_.emplace(root, ns);
    wanted_fingerprint_ = runbook::runbook_fingerprint(root);
  });
  add_project(root, ns, [this, done = std::move(done)](Result<ProjectView> project) mutable {
    if (project || project.error().code != Errc::invalid_runbook) wanted_.reset();
    done(std::move(project));
  });
}

void Service::try_wanted() {
  if (!wanted_) return;
  const std::string fingerprint = runbook::runbook_fingerprint(wanted_->first);
  if (fingerprint == wanted_fingerprint_) return;
  wanted_fingerprint_ = fingerprint;
  load_project(wanted_->first, wanted_->second, [this](const Result<Project*>& project) {
    if (project) {
      wanted_.reset();
    } else {
      warn(fmt::format("the project is still not loaded: {}", project.error().detail));
    }
  });
}

// An edit is seen at the next occasion; this is the latest.
void Service::tick() {
  if (stopping_) return;
  std::vector<std::string> names;
  for (const auto& [ns, project] : projects_) names.push_back(ns);
  for (const std::string& ns : names) refresh_project(ns, [] {});
  try_wanted();
  update_metrics();
  loop_->after(kTickTimer, kTick, [this] { tick(); });
}

RunTools Service::tools() {
  return {.loop = *loop_,
          .steps = *steps_,
          .store = *store_,
          .environment = environment_,
          .server_url = options_.server_url};
}

ExternalQueueState& Service::external_state(const QueueName& queue) { return external_[queue]; }

void Service::warn(std::string_view text) {
  if (options_.warn) options_.warn(text);
}

void Service::info(std::string_view text) {
  if (options_.info) options_.info(text);
}

void Service::publish(EventType type, const QueueName& queue, WorkerNews news, std::string error) {
  std::vector<Event> events(1);
  Event& event = events.front();
  event.type = type;
  event.at = loop_->now();
  event.queue = std::make_shared<const QueueName>(queue);
  event.worker = std::make_shared<const WorkerNews>(std::move(news));
  if (!error.empty()) event.error = std::make_shared<const std::string>(std::move(error));
  broker_.events().publish(events);
}

void Service::worker_changed(const std::string& ns, const std::string& name) {
  std::erase_if(retired_, [](const auto& worker) { return worker->idle(); });
  if (stopping_) return check_idle();
  const Project* project = find_project(ns);
  if (project == nullptr) return;
  const auto worker = project->workers.find(name);
  if (worker == project->workers.end()) return;  // retired
  const WorkerStatus status = worker->second->status();
  WorkerMemory memory;
  memory.running = status == WorkerStatus::running || status == WorkerStatus::restarting;
  memory.declared = worker->second->declared_concurrency();
  if (worker->second->concurrency() != memory.declared) {
    memory.concurrency = worker->second->concurrency();
  }
  const std::string key = fmt::format("{}{}/{}", kWorkerNotes, ns, name);
  if (const auto known = memories_.find(key); known != memories_.end() && known->second == memory) {
    return;
  }
  memories_.insert_or_assign(key, memory);
  change_notes({{key, encode_memory(memory)}}, [this, key](const Status& stored) {
    if (!stored) warn(fmt::format("{} could not be remembered: {}", key, stored.error().detail));
  });
}

void Service::update_metrics() {
  WorkerMetrics metrics;
  for (const auto& [ns, project] : projects_) {
    ++metrics.projects;
    metrics.broken_projects += project->broken ? 1 : 0;
    for (const auto& [name, worker] : project->workers) {
      const WorkerView view = worker->view();
      metrics.active += view.active;
      if (view.status == WorkerStatus::running) {
        ++metrics.workers_running;
        metrics.slots += view.concurrency;
      } else {
        ++metrics.workers_stopped;
      }
    }
  }
  metrics.runs_succeeded = counts_.runs_succeeded;
  metrics.runs_failed = counts_.runs_failed;
  metrics.runs_cancelled = counts_.runs_cancelled;
  metrics.runs_lost = counts_.runs_lost;
  metrics.polls_succeeded = counts_.polls_succeeded;
  metrics.polls_failed = counts_.polls_failed;
  const std::lock_guard lock(mutex_);
  metrics_ = metrics;
}

WorkerMetrics Service::metrics() const {
  const std::lock_guard lock(mutex_);
  return metrics_;
}

Status Service::check_root(const std::string& ns, const std::string& root) const {
  const std::lock_guard lock(mutex_);
  const auto known = roots_.find(ns);
  if (known != roots_.end() && known->second == root) return ok();
  for (const auto& [name, other] : roots_) {
    if (other != root) continue;
    return Error{Errc::project_conflict,
                 fmt::format("this directory is known as project '{}', not as '{}'; say --project "
                             "{}, or name it so in [project] of .reprise/config.toml",
                             name, ns, name)};
  }
  if (known == roots_.end()) return ok();
  return Error{Errc::project_conflict,
               fmt::format("project '{}' is the one in {}; this directory needs another name: "
                           "[project] name in .reprise/config.toml, or --project",
                           ns, known->second)};
}

bool Service::is_external(const QueueName& queue) const {
  const std::lock_guard lock(mutex_);
  return external_names_.contains(queue);
}

// --- The end ------------------------------------------------------------------------------------

void Service::stop() {
  if (std::exchange(stopped_, true)) return;
  if (loop_) {
    auto idle = std::make_shared<std::promise<void>>();
    auto future = idle->get_future();
    loop_->post([this, idle] { begin_shutdown(idle); });
    if (future.wait_for(kStopGrace) != std::future_status::ready) {
      warn("some steps did not end in time; their jobs are given back at the next start");
    }
  }
  // The loop uses the runner, and the runner only posts to the loop.
  if (loop_) loop_->stop();
  steps_.reset();
}

void Service::begin_shutdown(std::shared_ptr<std::promise<void>> idle) {
  stopping_ = true;
  no_waiting_ = true;
  idle_ = std::move(idle);
  ask_waiters();
  loop_->cancel_timer(kTickTimer);
  for (const auto& [ns, project] : projects_) {
    for (const auto& [name, worker] : project->workers) worker->shut_down();
  }
  for (const auto& worker : retired_) worker->shut_down();
  std::vector<std::shared_ptr<Run>> runs;
  for (const auto& [id, run] : runs_) runs.push_back(run);
  for (const auto& run : runs) run->abandon("the server stopped");
  check_idle();
}

void Service::check_idle() {
  if (stopping_ && runs_.empty() && calls_ == 0 && idle_)
    std::exchange(idle_, nullptr)->set_value();
}

}  // namespace reprise::worker
