// Runs: trials, lists, logs, and those who wait for one to end or a log to grow.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_writer.h"
#include "worker/service.h"

namespace reprise::worker {
namespace {

constexpr std::uint32_t kMostTrials = 16;
constexpr Duration kWaiterTick = std::chrono::milliseconds(50);
constexpr char kWaiterTimer[] = "waiters";

std::string trial_input(const std::string& ns, const std::string& item) {
  JsonWriter out;
  out.begin_object();
  out.key("namespace").value(ns);
  out.key("payload").raw(item);
  out.end_object();
  return out.take();
}

}  // namespace

void Service::run_begins(std::shared_ptr<Run> run) {
  const std::string id = run->id();
  runs_.emplace(id, std::move(run));
}

void Service::run_ends(const std::string& id, const RunEnd& end) {
  store_->end(id, end.status, end.error, end.error_type, loop_->now());
  runs_.erase(id);
  ask_waiters();
  check_idle();
}

void Service::start_run(StartRunCommand command, Done<RunView> done) {
  loop_->post([this, command = std::move(command), done = std::move(done)]() mutable {
    if (stopping_) return done(Error{Errc::shutting_down, "the server is stopping"});
    const std::string ns = command.ns;
    const std::string root = command.root;
    with_project(
        ns, root,
        [this, command = std::move(command),
         done = std::move(done)](Result<Project*> project) mutable {
          if (!project) return done(project.error());
          const Book book = (*project)->book;
          const auto pipeline = book->pipelines.find(command.pipeline);
          if (pipeline == book->pipelines.end()) {
            std::vector<std::string> known;
            for (const auto& [name, other] : book->pipelines) known.push_back(name);
            return done(
                not_found(Errc::pipeline_not_found, "pipeline", command.pipeline, book->ns, known));
          }
          if (trials_ >= kMostTrials) {
            return done(Error{Errc::too_many_runs,
                              fmt::format("{} trials run already; wait for one to end, or cancel "
                                          "it",
                                          trials_)});
          }
          RunOrder order;
          order.book = book;
          order.pipeline = &pipeline->second;
          order.view.ns = book->ns;
          order.view.pipeline = command.pipeline;
          order.item = command.item.empty() ? "{}" : command.item;
          order.input = trial_input(book->ns, order.item);
          auto id = std::make_shared<std::string>();
          auto run = Run::make(tools(), std::move(order), [this, id](const RunEnd& end) {
            --trials_;
            run_ends(*id, end);
          });
          if (!run) return done(run.error());
          ++trials_;
          *id = (*run)->id();
          run_begins(*run);
          (*run)->begin();
          done(store_->view(*id));
        });
  });
}

void Service::list_runs(RunQuery query, Done<std::vector<RunView>> done) {
  loop_->post([this, query = std::move(query), done = std::move(done)]() mutable {
    done(store_->list(query));
  });
}

void Service::show_run(std::string id, Duration wait_for, Done<RunView> done) {
  loop_->post([this, id = std::move(id), wait_for, done = std::move(done)]() mutable {
    auto whole = store_->resolve(id);
    if (!whole) return done(whole.error());
    wait(wait_for, [this, run = *whole, done = std::move(done)](bool last) mutable {
      RunView view = store_->view(run);
      if (view.id.empty()) {
        done(Error{Errc::run_not_found, fmt::format("run {} is no longer kept", run)});
        return true;
      }
      // One that has ended is told when its result was taken, so that what follows sees it.
      if (runs_.contains(run) && !last) return false;
      done(std::move(view));
      return true;
    });
  });
}

void Service::cancel_run(std::string id, Done<RunView> done) {
  loop_->post([this, id = std::move(id), done = std::move(done)]() mutable {
    const auto whole = store_->resolve(id);
    if (!whole) return done(whole.error());
    const auto run = runs_.find(*whole);
    if (run == runs_.end() || run->second->ended()) {
      return done(
          Error{Errc::wrong_status, fmt::format("run {} is {}, so it cannot be cancelled", *whole,
                                                run_status_name(store_->view(*whole).status))});
    }
    const std::shared_ptr<Run> running = run->second;
    running->cancel();
    done(store_->view(*whole));
  });
}

void Service::read_run_log(std::string id, LogQuery query, Done<LogPart> done) {
  loop_->post([this, id = std::move(id), query, done = std::move(done)]() mutable {
    auto whole = store_->resolve(id);
    if (!whole) return done(whole.error());
    wait(query.wait, [this, run = *whole, query, done = std::move(done)](bool last) mutable {
      LogPart part = store_->read_log(run, query);
      if (part.text.empty() && !part.ended && !last) return false;
      done(std::move(part));
      return true;
    });
  });
}

void Service::read_worker_log(std::string ns, std::string worker, LogQuery query,
                              Done<LogPart> done) {
  loop_->post([this, ns = std::move(ns), worker = std::move(worker), query,
               done = std::move(done)]() mutable {
    Project* project = find_project(ns);
    if (project == nullptr) {
      return done(
          Error{Errc::project_not_found, fmt::format("the server knows no project '{}'", ns)});
    }
    const auto found = project->workers.find(worker);
    if (found == project->workers.end()) {
      std::vector<std::string> known;
      for (const auto& [name, other] : project->workers) known.push_back(name);
      return done(not_found(Errc::worker_not_found, "worker", worker, ns, known));
    }
    wait(query.wait,
         [log = found->second->shared_log(), query, done = std::move(done)](bool last) mutable {
           LogPart part = log->read(query);
           if (part.text.empty() && !last) return false;
           done(std::move(part));
           return true;
         });
  });
}

// --- Waiting
// --------------------------------------------------------------------------------------

void Service::wait(Duration wait_for, absl::AnyInvocable<bool(bool last)> answer) {
  if (answer(wait_for <= Duration::zero() || no_waiting_)) return;
  waiters_.push_back({add_saturating(loop_->now(), wait_for), std::move(answer)});
  if (waiters_.size() == 1) {
    loop_->after(kWaiterTimer, kWaiterTick, [this] { ask_waiters(); });
  }
}

void Service::ask_waiters() {
  const Timestamp now = loop_->now();
  std::vector<Waiter> asked = std::exchange(waiters_, {});
  std::erase_if(
      asked, [&](Waiter& waiter) { return waiter.answer(no_waiting_ || waiter.deadline <= now); });
  // Answers may have brought new ones.
  waiters_.insert(waiters_.end(), std::make_move_iterator(asked.begin()),
                  std::make_move_iterator(asked.end()));
  if (!waiters_.empty()) loop_->after(kWaiterTimer, kWaiterTick, [this] { ask_waiters(); });
}

void Service::stop_waiting() {
  loop_->post([this] {
    no_waiting_ = true;
    ask_waiters();
  });
}

}  // namespace reprise::worker
