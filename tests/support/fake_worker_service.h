// FakeWorkerService: answers as it was told and remembers what it was asked, for tests of the
// server. Callbacks come on a thread of its own, as the real one's do. A call with a wait stays
// open until answer_waiting() or stop_waiting().
#pragma once

#include <absl/functional/any_invocable.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "worker/worker_service.h"

namespace reprise::test {

class FakeWorkerService final : public worker::WorkerService {
 public:
  FakeWorkerService() : thread_([this] { run(); }) {}
  ~FakeWorkerService() override { stop(); }

  // What comes next is answered so. Set them before the server runs, or under with_lock().
  Result<worker::ProjectView> project = worker::ProjectView{};
  Result<std::vector<worker::ProjectView>> projects = std::vector<worker::ProjectView>{};
  Result<worker::WorkerList> workers = worker::WorkerList{};
  Result<worker::WorkerReply> changed_workers = worker::WorkerReply{};
  std::set<QueueName> external;
  Result<std::vector<worker::ExternalQueueView>> external_views =
      std::vector<worker::ExternalQueueView>{};
  Result<worker::ExternalQueueView> refreshed = worker::ExternalQueueView{};
  Result<worker::RunView> one_run = worker::RunView{};
  Result<std::vector<worker::RunView>> runs = std::vector<worker::RunView>{};
  // Of all logs; without an answer it waits.
  std::function<Result<worker::LogPart>(const worker::LogQuery&)> on_log =
      [](const worker::LogQuery&) { return Result<worker::LogPart>(worker::LogPart{}); };
  Result<std::vector<worker::TimerView>> timers = std::vector<worker::TimerView>{};
  worker::WorkerMetrics metrics_now;

  // What was asked; read under with_lock() or after wait_for().
  struct Asked {
    std::vector<std::pair<std::string, std::string>> added;  // root and name
    std::vector<std::string> removed;
    std::vector<std::string> namespaces;  // of list_workers, list_external and list_timers
    std::vector<worker::WorkerCommand> changes;
    std::vector<QueueName> refreshes;
    std::vector<worker::StartRunCommand> started;
    std::vector<worker::RunQuery> run_queries;
    std::vector<std::pair<std::string, Duration>> shown;
    std::vector<std::string> cancelled;
    std::vector<std::pair<std::string, worker::LogQuery>> logs;  // "ID" or "NAMESPACE/WORKER"
    int stop_waitings = 0;
  };
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
  bool wait_for_waiting(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10),
                             [&] { return waiting_.size() == count; });
  }
  // All that wait are answered as if they had not waited.
  void answer_waiting() {
    const std::lock_guard lock(mutex_);
    move_waiting();
  }

  void begin() override {}
  void want_project(std::string root, std::string ns, Done<worker::ProjectView> done) override {
    add_project(std::move(root), std::move(ns), std::move(done));
  }
  Status check_root(const std::string& ns, const std::string& root) const override {
    if (ns != "taken" || root == "/taken") return ok();
    return Error{Errc::project_conflict, "it is another's"};
  }
  void add_project(std::string root, std::string ns, Done<worker::ProjectView> done) override {
    const std::lock_guard lock(mutex_);
    note(asked_.added, {std::move(root), std::move(ns)});
    finish(std::move(done), project);
  }
  void remove_project(std::string ns, Done<worker::ProjectView> done) override {
    answer(asked_.removed, std::move(ns), std::move(done), project);
  }
  void list_projects(Done<std::vector<worker::ProjectView>> done) override {
    const std::lock_guard lock(mutex_);
    finish(std::move(done), projects);
  }
  void list_workers(std::string ns, Done<worker::WorkerList> done) override {
    answer(asked_.namespaces, std::move(ns), std::move(done), workers);
  }
  void change_workers(worker::WorkerCommand command, Done<worker::WorkerReply> done) override {
    answer(asked_.changes, std::move(command), std::move(done), changed_workers);
  }
  bool is_external(const QueueName& queue) const override { return external.contains(queue); }
  void list_external(std::string ns, Done<std::vector<worker::ExternalQueueView>> done) override {
    answer(asked_.namespaces, std::move(ns), std::move(done), external_views);
  }
  void refresh(QueueName queue, Done<worker::ExternalQueueView> done) override {
    answer(asked_.refreshes, std::move(queue), std::move(done), refreshed);
  }
  void start_run(worker::StartRunCommand command, Done<worker::RunView> done) override {
    answer(asked_.started, std::move(command), std::move(done), one_run);
  }
  void list_runs(worker::RunQuery query, Done<std::vector<worker::RunView>> done) override {
    answer(asked_.run_queries, std::move(query), std::move(done), runs);
  }
  void show_run(std::string id, Duration wait, Done<worker::RunView> done) override {
    const std::lock_guard lock(mutex_);
    note(asked_.shown, {std::move(id), wait});
    maybe_wait(wait,
               [this, done = std::move(done)]() mutable { finish(std::move(done), one_run); });
  }
  void cancel_run(std::string id, Done<worker::RunView> done) override {
    answer(asked_.cancelled, std::move(id), std::move(done), one_run);
  }
  void read_run_log(std::string id, worker::LogQuery query, Done<worker::LogPart> done) override {
    read(std::move(id), std::move(query), std::move(done));
  }
  void read_worker_log(std::string ns, std::string worker, worker::LogQuery query,
                       Done<worker::LogPart> done) override {
    read(ns + "/" + worker, std::move(query), std::move(done));
  }
  void list_timers(std::string ns, Done<std::vector<worker::TimerView>> done) override {
    answer(asked_.namespaces, std::move(ns), std::move(done), timers);
  }
  worker::WorkerMetrics metrics() const override { return metrics_now; }

  void stop_waiting() override {
    const std::lock_guard lock(mutex_);
    ++asked_.stop_waitings;
    waits_no_more_ = true;
    move_waiting();
  }
  void stop() override {
    stop_waiting();
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
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
  void maybe_wait(Duration wait, Callback then) {
    if (wait > Duration::zero() && !waits_no_more_) {
      waiting_.push_back(std::move(then));
      changed_.notify_all();
    } else {
      then();
    }
  }
  void move_waiting() {
    std::deque<Callback> waiting = std::move(waiting_);
    waiting_.clear();
    for (Callback& then : waiting) then();
    changed_.notify_all();
  }
  // Waits while there is nothing to read.
  void read(std::string log, worker::LogQuery query, Done<worker::LogPart> done) {
    const std::lock_guard lock(mutex_);
    const auto part = on_log(query);
    const bool has_answer = !part || !part->text.empty() || part->ended;
    const Duration wait = has_answer ? Duration::zero() : query.wait;
    note(asked_.logs, {std::move(log), query});
    maybe_wait(wait, [this, query, done = std::move(done)]() mutable {
      finish(std::move(done), on_log(query));
    });
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || !callbacks_.empty(); });
      if (callbacks_.empty()) return;
      Callback callback = std::move(callbacks_.front());
      callbacks_.pop_front();
      lock.unlock();
      callback();
      callback = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  // Protected by mutex_.
  Asked asked_;
  std::deque<Callback> callbacks_;
  std::deque<Callback> waiting_;
  bool waits_no_more_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace reprise::test
