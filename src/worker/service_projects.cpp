// Projects: loaded, put in force, looked at again when they have changed, forgotten.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/json_writer.h"
#include "base/text.h"
#include "model/limits.h"
#include "worker/service.h"

namespace reprise::worker {
namespace {

using runbook::Finding;
using runbook::Severity;

bool has_errors(const std::vector<Finding>& findings) {
  return std::ranges::any_of(findings,
                             [](const Finding& f) { return f.severity == Severity::error; });
}

// All errors, one a line.
std::string text_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    if (finding.severity != Severity::error) continue;
    if (!text.empty()) text += '\n';
    text += to_text(finding);
  }
  return text;
}

// The broker could not take it now.
bool is_passing(Errc code) {
  return code == Errc::overloaded || code == Errc::hooks_unavailable || code == Errc::disk_full;
}

Finding stored_already(const runbook::QueueDeclaration& queue) {
  return {.severity = Severity::error,
          .place = queue.place,
          .path = "queue." + queue.name + ".type",
          .message =
              "a stored queue of this name is there, perhaps with jobs; delete it first "
              "(reprise queue delete), or choose another name"};
}

std::string project_note(const std::string& ns) { return "project/" + ns; }

std::string encode_project(const std::string& root) {
  JsonWriter out;
  out.begin_object().key("root").value(root).end_object();
  return out.take();
}

}  // namespace

Error not_found(Errc code, std::string_view kind, std::string_view name, std::string_view ns,
                const std::vector<std::string>& known) {
  std::string text = fmt::format("no {} '{}' in project '{}'", kind, name, ns);
  if (const auto meant = did_you_mean(name, known))
    text += fmt::format("; did you mean '{}'?", *meant);
  return {code, std::move(text)};
}

Project* Service::find_project(const std::string& ns) {
  const auto found = projects_.find(ns);
  return found == projects_.end() ? nullptr : found->second.get();
}

// --- Loading
// --------------------------------------------------------------------------------------

void Service::add_project(std::string root, std::string ns, Done<ProjectView> done) {
  loop_->post([this, root = std::move(root), ns = std::move(ns), done = std::move(done)]() mutable {
    load_project(std::move(root), std::move(ns),
                 [this, done = std::move(done)](Result<Project*> project) mutable {
                   if (!project) return done(project.error());
                   done(view_of(**project));
                 });
  });
}

void Service::load_project(std::string root, std::string ns, ProjectDone done) {
  if (stopping_) return done(Error{Errc::shutting_down, "the server is stopping"});
  std::error_code failed;
  const std::filesystem::path path(root);
  const auto canonical = std::filesystem::canonical(path, failed);
  if (!path.is_absolute() || failed) {
    return done(
        Error{Errc::invalid_field,
              fmt::format("root: '{}' is not the absolute path of a directory here", root)});
  }
  root = canonical.string();
  if (const Status safe = runbook::check_ownership(root); !safe) return done(safe.error());
  const std::string fingerprint = runbook::runbook_fingerprint(root);
  runbook::LoadResult loaded = runbook::load_runbook(root, ns);
  if (!loaded.runbook) return done(Error{Errc::invalid_runbook, text_of(loaded.findings)});
  auto book = std::make_shared<const runbook::Runbook>(*std::move(loaded.runbook));
  Project* project = find_project(book->ns);
  if (project != nullptr && project->root != root) {
    return done(
        Error{Errc::project_conflict,
              fmt::format("the project name '{}' belongs to {}; give this one another in "
                          "[project] name of .reprise/config.toml, or forget the other with "
                          "`reprise project remove {}`",
                          book->ns, project->root, book->ns)});
  }
  // Two projects in one directory would do everything twice.
  for (const auto& [name, other] : projects_) {
    if (other->root != root || name == book->ns) continue;
    return done(Error{Errc::project_conflict,
                      fmt::format("{} is known as project '{}'; forget that with `reprise project "
                                  "remove {}` first",
                                  root, name, name)});
  }
  const bool is_new = project == nullptr;
  if (is_new) {
    auto added = std::make_unique<Project>();
    added->ns = book->ns;
    added->root = root;
    project = added.get();
    projects_.emplace(book->ns, std::move(added));
  }
  if (project->applying) {
    // Somebody else is at it; what they read may be older.
    project->waiting.push_back([this, root, ns, done = std::move(done)]() mutable {
      load_project(root, ns, std::move(done));
    });
    return;
  }
  project->fingerprint = fingerprint;
  project->findings = std::move(loaded.findings);
  project->broken = project->missing = false;
  put_in_force(*project, book,
               [this, ns = book->ns, is_new, done = std::move(done)](Status applied) mutable {
                 Project* known = find_project(ns);
                 if (!applied) {
                   if (is_new) forget_project(ns);
                   return done(applied.error());
                 }
                 if (!is_new) return done(known);
                 info(fmt::format("project {} in {}", ns, known->root));
                 change_notes({{project_note(ns), encode_project(known->root)}},
                              [this, ns, done = std::move(done)](const Status& stored) mutable {
                                if (!stored) {
                                  forget_project(ns);
                                  return done(stored.error());
                                }
                                Project* remembered = find_project(ns);
                                if (remembered == nullptr) {
                                  return done(Error{Errc::project_not_found,
                                                    fmt::format("project '{}' was removed", ns)});
                                }
                                done(remembered);
                              });
               });
}

void Service::with_project(const std::string& ns, const std::string& root, ProjectDone done) {
  Project* project = find_project(ns);
  if (project == nullptr && root.empty()) {
    return done(Error{Errc::project_not_found,
                      fmt::format("the server knows no project '{}'; add it with `reprise project "
                                  "add` in its directory",
                                  ns)});
  }
  std::error_code failed;
  if (project == nullptr || project->book == nullptr ||
      (!root.empty() && std::filesystem::canonical(root, failed).string() != project->root)) {
    return load_project(root.empty() ? project->root : root, ns, std::move(done));
  }
  refresh_project(ns, [this, ns, done = std::move(done)]() mutable {
    Project* known = find_project(ns);
    if (known == nullptr || known->book == nullptr) {
      return done(Error{Errc::project_not_found, fmt::format("project '{}' was removed", ns)});
    }
    done(known);
  });
}

// --- In force
// -------------------------------------------------------------------------------------

// Every declared queue first; then, if the broker took them all, the rest. A queue that it refuses
// leaves the version before in force.
void Service::put_in_force(Project& project, Book book, absl::AnyInvocable<void(Status)> done) {
  struct Progress {
    std::size_t left = 0;
    std::optional<Finding> refused;
    bool may_pass = false;  // another try may go well
    absl::AnyInvocable<void(Status)> done;
  };
  project.applying = true;
  auto progress = std::make_shared<Progress>();
  progress->done = std::move(done);
  const auto finish = [this, ns = project.ns, book, progress] {
    Project* known = find_project(ns);
    if (known == nullptr) {
      return progress->done(
          Error{Errc::project_not_found, fmt::format("project '{}' was removed", ns)});
    }
    // Until all of it is in force, whoever asks for another look waits.
    if (stopping_) {
      progress->refused = Finding{.message = "the server is stopping"};
    } else if (progress->refused) {
      // What had been changed already goes back.
      if (const Book before = known->book) {
        for (const auto& [name, queue] : before->queues) redeclare_queue(ns, name);
      }
      refuse(*known, {*progress->refused});
      if (progress->may_pass) known->fingerprint.clear();
    } else {
      adopt(*known, book);
    }
    known->applying = false;
    auto waiting = std::exchange(known->waiting, {});
    if (progress->refused) {
      progress->done(Error{Errc::invalid_runbook, to_text(*progress->refused)});
    } else {
      progress->done(ok());
    }
    for (Task& task : waiting) task();
  };
  progress->left = book->queues.size();
  if (book->queues.empty()) return finish();
  for (const auto& entry : book->queues) {
    const runbook::QueueDeclaration* queue = &entry.second;
    if (queue->external() != nullptr) {
      broker_.queue_stats({project.ns, queue->name},
                          [this, queue, book, progress, finish](const Result<QueueStats>& stored) {
                            std::optional<Finding> refused;
                            if (stored) refused = stored_already(*queue);
                            loop_->post([progress, finish, refused = std::move(refused)] {
                              if (refused && !progress->refused) progress->refused = refused;
                              if (--progress->left == 0) finish();
                            });
                          });
      continue;
    }
    broker_.put_queue({.queue = {project.ns, queue->name}, .config = *queue->persisted()},
                      [this, queue, book, progress, finish](const Result<PutQueueReply>& put) {
                        std::optional<Finding> refused;
                        if (!put) {
                          refused = Finding{.severity = Severity::error,
                                            .place = queue->place,
                                            .path = "queue." + queue->name,
                                            .message = put.error().detail};
                        }
                        const bool may_pass = !put && is_passing(put.error().code);
                        loop_->post([progress, finish, may_pass, refused = std::move(refused)] {
                          if (refused && !progress->refused) progress->refused = refused;
                          progress->may_pass = progress->may_pass || may_pass;
                          if (--progress->left == 0) finish();
                        });
                      });
  }
}

void Service::adopt(Project& project, Book book) {
  project.book = book;
  project.loaded_at = loop_->now();
  std::vector<std::shared_ptr<Worker>> gone;
  for (const auto& [name, worker] : project.workers) {
    if (!book->workers.contains(name)) gone.push_back(worker);
  }
  // Whether it ran is remembered: a file that comes back, as in the middle of a checkout, finds its
  // workers as they were.
  for (const auto& worker : gone) {
    info(fmt::format("worker {}/{} is no longer declared", project.ns, worker->name()));
    retire(project.ns, worker);
  }
  for (const auto& [name, declaration] : book->workers) {
    reconcile_worker(project, book, declaration);
  }
  update_external_names();
  items_->tell_left(book);
  update_metrics();
}

void Service::reconcile_worker(Project& project, const Book& book,
                               const runbook::WorkerDeclaration& declaration) {
  const bool external = book->queues.find(declaration.queue)->second.external() != nullptr;
  bool was_running = false;
  bool is_known = false;
  if (const auto known = project.workers.find(declaration.name); known != project.workers.end()) {
    const WorkerView view = known->second->view();
    if (view.queue == declaration.queue && view.external == external) {
      return known->second->declare(book, declaration);
    }
    is_known = true;
    was_running = view.status == WorkerStatus::running || view.status == WorkerStatus::restarting;
    retire(project.ns, known->second);
  }
  auto log = log_of(project.ns, declaration.name);
  auto worker = external ? make_external_worker(*this, book, declaration, std::move(log))
                         : make_queue_worker(*this, book, declaration, std::move(log));
  project.workers.insert_or_assign(declaration.name, worker);
  bool starts = is_known ? was_running : declaration.autostart;
  const auto memory = memories_.find(fmt::format("worker/{}/{}", project.ns, declaration.name));
  if (!is_known && memory != memories_.end()) {
    starts = memory->second.running;
    if (memory->second.concurrency > 0 && memory->second.declared == declaration.concurrency) {
      worker->resize(memory->second.concurrency);
    }
  }
  if (starts) worker->start();
}

// One that was retired and the one in its place write to the same.
std::shared_ptr<WorkerLog> Service::log_of(const std::string& ns, const std::string& worker) {
  const std::string directory = fmt::format("{}/logs/{}", options_.directory, ns);
  const std::string path = fmt::format("{}/{}.log", directory, worker);
  auto log = logs_[path].lock();
  if (log == nullptr) {
    std::error_code ignored;
    std::filesystem::create_directories(directory, ignored);
    log = std::make_shared<WorkerLog>(path);
    logs_[path] = log;
  }
  return log;
}

// It finishes what it has, and is gone then.
void Service::retire(const std::string& ns, std::shared_ptr<Worker> worker) {
  if (Project* project = find_project(ns)) {
    const auto known = project->workers.find(worker->name());
    if (known != project->workers.end() && known->second == worker) project->workers.erase(known);
  }
  worker->stop(false);
  if (!worker->idle()) retired_.push_back(std::move(worker));
}

void Service::redeclare_queue(const std::string& ns, const std::string& queue) {
  const Project* project = find_project(ns);
  if (project == nullptr || project->book == nullptr) return;
  const auto declared = project->book->queues.find(queue);
  if (declared == project->book->queues.end() || declared->second.persisted() == nullptr) return;
  broker_.put_queue({.queue = {ns, queue}, .config = *declared->second.persisted()},
                    [](const Result<PutQueueReply>&) {});
}

// --- Changes
// --------------------------------------------------------------------------------------

void Service::refresh_project(const std::string& ns, Task then) {
  Project* project = find_project(ns);
  if (project == nullptr || stopping_) return then();
  if (project->applying) return project->waiting.push_back(std::move(then));
  if (runbook::runbook_fingerprint(project->root) == project->fingerprint) return then();
  look_again(*project, std::move(then));
}

void Service::look_again(Project& project, Task then) {
  project.fingerprint = runbook::runbook_fingerprint(project.root);
  Finding problem{.severity = Severity::error, .place = {.file = runbook::kRunbookDirectory}};
  if (project.fingerprint.empty()) {
    project.missing = true;
    problem.message = fmt::format("{}/{} is gone", project.root, runbook::kRunbookDirectory);
    refuse(project, {problem});
    return then();
  }
  if (const Status safe = runbook::check_ownership(project.root); !safe) {
    problem.message = safe.error().detail;
    refuse(project, {problem});
    return then();
  }
  runbook::LoadResult loaded = runbook::load_runbook(project.root, project.ns);
  if (!loaded.runbook) {
    refuse(project, std::move(loaded.findings));
    return then();
  }
  if (project.book) info(fmt::format("project {}: the runbook has changed", project.ns));
  project.findings = std::move(loaded.findings);
  project.broken = project.missing = false;
  auto book = std::make_shared<const runbook::Runbook>(*std::move(loaded.runbook));
  put_in_force(project, std::move(book),
               [then = std::move(then)](const Status&) mutable { then(); });
}

void Service::refuse(Project& project, std::vector<Finding> findings) {
  const bool is_news = !project.broken || project.findings != findings;
  project.findings = std::move(findings);
  project.broken = has_errors(project.findings);
  if (!is_news) return;
  warn(fmt::format("project {}: the runbook is broken, {}:\n{}", project.ns,
                   project.book ? "the last good version goes on" : "nothing of it runs",
                   text_of(project.findings)));
}

void Service::remove_project(std::string ns, Done<ProjectView> done) {
  loop_->post([this, ns = std::move(ns), done = std::move(done)]() mutable {
    Project* project = find_project(ns);
    if (project == nullptr) {
      std::vector<std::string> known;
      for (const auto& [name, other] : projects_) known.push_back(name);
      std::string text = fmt::format("the server knows no project '{}'", ns);
      if (const auto meant = did_you_mean(ns, known)) {
        text += fmt::format("; did you mean '{}'?", *meant);
      }
      return done(Error{Errc::project_not_found, std::move(text)});
    }
    if (project->applying) {
      project->waiting.push_back([this, ns, done = std::move(done)]() mutable {
        remove_project(std::move(ns), std::move(done));
      });
      return;
    }
    ProjectView view = view_of(*project);
    std::vector<NoteChange> changes = {{project_note(ns), std::nullopt}};
    for (auto at = memories_.lower_bound("worker/" + ns + "/");
         at != memories_.end() && at->first.starts_with("worker/" + ns + "/");) {
      changes.push_back({at->first, std::nullopt});
      at = memories_.erase(at);
    }
    forget_project(ns);
    info(fmt::format("project {} is forgotten", ns));
    change_notes(std::move(changes),
                 [done = std::move(done), view = std::move(view)](const Status& stored) mutable {
                   if (!stored) return done(stored.error());
                   done(std::move(view));
                 });
  });
}

void Service::forget_project(const std::string& ns) {
  const auto found = projects_.find(ns);
  if (found == projects_.end()) return;
  const std::unique_ptr<Project> project = std::move(found->second);
  projects_.erase(found);
  for (const auto& [name, worker] : project->workers) {
    worker->stop(true);
    if (!worker->idle()) retired_.push_back(worker);
  }
  update_external_names();
  for (Task& task : project->waiting) task();
}

void Service::update_external_names() {
  std::set<QueueName> names;
  std::map<std::string, std::string> roots;
  for (const auto& [ns, project] : projects_) {
    roots.emplace(ns, project->root);
    if (project->book == nullptr) continue;
    for (const auto& [name, queue] : project->book->queues) {
      if (queue.external() != nullptr) names.insert({ns, name});
    }
  }
  const std::lock_guard lock(mutex_);
  external_names_ = std::move(names);
  roots_ = std::move(roots);
}

// --- Views
// ----------------------------------------------------------------------------------------

ProjectView Service::view_of(const Project& project) const {
  ProjectView view{.ns = project.ns,
                   .root = project.root,
                   .loaded_at = project.loaded_at,
                   .files = {},
                   .findings = project.findings,
                   .broken = project.broken,
                   .missing = project.missing};
  if (project.book) {
    view.files = project.book->files;
    view.queues = project.book->queues.size();
    view.pipelines = project.book->pipelines.size();
    view.workers = project.book->workers.size();
  }
  return view;
}

ExternalQueueView Service::view_of(const Project& project, const runbook::QueueDeclaration& queue) {
  const QueueName name{project.ns, queue.name};
  const ExternalQueueState& state = external_[name];
  ExternalQueueView view{.queue = name,
                         .workers = {},
                         .poll = queue.external()->poll,
                         .last_poll_at = state.last_poll_at,
                         .listed = state.listed,
                         .in_hand = items_->count(name),
                         .last_error = state.last_error};
  for (const auto& [worker_name, worker] : project.workers) {
    if (worker->queue() == name) view.workers.push_back(worker_name);
  }
  return view;
}

void Service::list_projects(Done<std::vector<ProjectView>> done) {
  loop_->post([this, done = std::move(done)]() mutable {
    when_refreshed("", [this, done = std::move(done)]() mutable {
      std::vector<ProjectView> views;
      for (const auto& [ns, project] : projects_) views.push_back(view_of(*project));
      done(std::move(views));
    });
  });
}

// All projects of a namespace (empty: of all) as they are on disk now.
void Service::when_refreshed(const std::string& ns, Task then) {
  std::vector<std::string> names;
  for (const auto& [name, project] : projects_) {
    if (ns.empty() || ns == name) names.push_back(name);
  }
  if (names.empty()) return then();
  auto left = std::make_shared<std::size_t>(names.size());
  auto shared = std::make_shared<Task>(std::move(then));
  for (const std::string& name : names) {
    refresh_project(name, [left, shared] {
      if (--*left == 0) (*shared)();
    });
  }
}

}  // namespace reprise::worker
