// Workers: shown, started, stopped, resized; external queues and their timers.
#include <fmt/format.h>

#include <utility>

#include "worker/service.h"

namespace reprise::worker {
namespace {

constexpr std::string_view kPollTimers = "queue-poll:";

}  // namespace

void Service::list_workers(std::string ns, Done<WorkerList> done) {
  loop_->post([this, ns = std::move(ns), done = std::move(done)]() mutable {
    when_refreshed(ns, [this, ns, done = std::move(done)]() mutable {
      WorkerList list;
      for (const auto& [name, project] : projects_) {
        if (!ns.empty() && name != ns) continue;
        list.projects.push_back(view_of(*project));
        for (const auto& [worker_name, worker] : project->workers) {
          list.workers.push_back(worker->view());
        }
      }
      done(std::move(list));
    });
  });
}

void Service::change_workers(WorkerCommand command, Done<WorkerReply> done) {
  loop_->post([this, command = std::move(command), done = std::move(done)]() mutable {
    if (stopping_) return done(Error{Errc::shutting_down, "the server is stopping"});
    const std::string ns = command.ns;
    const std::string root = command.root;
    with_project(ns, root,
                 [this, command = std::move(command),
                  done = std::move(done)](Result<Project*> project) mutable {
                   if (!project) return done(project.error());
                   std::vector<std::string> names = command.names;
                   if (command.all) {
                     names.clear();
                     for (const auto& [name, worker] : (*project)->workers) names.push_back(name);
                   }
                   WorkerReply reply;
                   for (const std::string& name : names) {
                     reply.items.push_back(change_worker(**project, command, name));
                   }
                   update_metrics();
                   done(std::move(reply));
                 });
  });
}

WorkerReply::Item Service::change_worker(Project& project, const WorkerCommand& command,
                                         const std::string& name) {
  const auto found = project.workers.find(name);
  if (found == project.workers.end()) {
    std::vector<std::string> known;
    for (const auto& [other, worker] : project.workers) known.push_back(other);
    return {name, not_found(Errc::worker_not_found, "worker", name, project.ns, known)};
  }
  const std::shared_ptr<Worker> worker = found->second;
  const bool was_running = worker->status() == WorkerStatus::running;
  switch (command.verb) {
    case WorkerVerb::start:
      worker->start();
      break;
    case WorkerVerb::stop:
      worker->stop(command.now);
      break;
    case WorkerVerb::restart:
      worker->restart(command.now);
      break;
    case WorkerVerb::resize:
      worker->resize(command.concurrency);
      break;
  }
  return {name, worker->view(), was_running};
}

void Service::list_external(std::string ns, Done<std::vector<ExternalQueueView>> done) {
  loop_->post([this, ns = std::move(ns), done = std::move(done)]() mutable {
    std::vector<ExternalQueueView> views;
    for (const auto& [name, project] : projects_) {
      if ((!ns.empty() && name != ns) || project->book == nullptr) continue;
      for (const auto& [queue_name, queue] : project->book->queues) {
        if (queue.external() != nullptr) views.push_back(view_of(*project, queue));
      }
    }
    done(std::move(views));
  });
}

void Service::refresh(QueueName queue, Done<ExternalQueueView> done) {
  loop_->post([this, queue = std::move(queue), done = std::move(done)]() mutable {
    when_refreshed(queue.ns, [this, queue, done = std::move(done)]() mutable {
      Project* project = find_project(queue.ns);
      const runbook::QueueDeclaration* declared = nullptr;
      if (project != nullptr && project->book != nullptr) {
        const auto found = project->book->queues.find(queue.name);
        if (found != project->book->queues.end()) declared = &found->second;
      }
      if (declared == nullptr || declared->external() == nullptr) {
        return refuse_to_refresh(queue, std::move(done));
      }
      const ExternalQueueView view = view_of(*project, *declared);
      const auto workers = project->workers;  // a look at the runbook may change them
      for (const auto& [name, worker] : workers) {
        if (worker->queue() == queue && worker->status() == WorkerStatus::running) worker->wake();
      }
      done(view);
    });
  });
}

// Stored, or not there at all: the broker knows.
void Service::refuse_to_refresh(const QueueName& queue, Done<ExternalQueueView> done) {
  broker_.queue_stats(queue, [queue, done = std::move(done)](Result<QueueStats> stats) mutable {
    if (!stats) return done(stats.error());
    done(Error{Errc::queue_not_external,
               fmt::format("queue '{}' is stored here, so there is nothing to list: a push wakes "
                           "its workers",
                           queue.name)});
  });
}

void Service::list_timers(std::string ns, Done<std::vector<TimerView>> done) {
  loop_->post([this, ns = std::move(ns), done = std::move(done)]() mutable {
    const std::string prefix =
        ns.empty() ? std::string(kPollTimers) : fmt::format("{}{}/", kPollTimers, ns);
    std::vector<TimerView> views;
    for (auto& timer : loop_->timers(prefix)) views.push_back({std::move(timer.name), timer.due});
    done(std::move(views));
  });
}

}  // namespace reprise::worker
