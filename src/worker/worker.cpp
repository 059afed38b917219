#include "worker/worker.h"

#include <fmt/format.h>

#include <utility>

namespace reprise::worker {

Worker::Worker(WorkerHost& host, Book book, const runbook::WorkerDeclaration& declaration,
               std::shared_ptr<WorkerLog> log)
    : host_(host),
      book_(std::move(book)),
      name_(declaration.name),
      queue_{book_->ns, declaration.queue},
      log_(std::move(log)),
      declaration_(declaration),
      declared_(declaration.concurrency),
      concurrency_(declaration.concurrency) {}

void Worker::set_status(WorkerStatus status) {
  if (status_ == status) return;
  const bool ran = status_ != WorkerStatus::stopped;
  status_ = status;
  if (status == WorkerStatus::running && !ran) {
    say("started");
    host_.publish(EventType::worker_started, queue_, {.worker = name_}, {});
  } else if (status == WorkerStatus::stopped) {
    say("stopped");
    host_.publish(EventType::worker_stopped, queue_, {.worker = name_}, {});
  }
  host_.worker_changed(book_->ns, name_);
}

void Worker::start() {
  if (shutting_down_) return;
  if (runs()) return wake();
  set_status(WorkerStatus::running);
  begin_work();
}

void Worker::stop(bool now) {
  if (status_ == WorkerStatus::stopped) return;
  if (runs()) end_asking();
  set_status(WorkerStatus::stopping);
  if (now) give_back("stopped by hand");
  settle();
}

void Worker::restart(bool now) {
  if (status_ == WorkerStatus::stopped) return start();
  if (runs()) end_asking();
  concurrency_ = declared_;
  set_status(WorkerStatus::restarting);
  if (now) give_back("restarted by hand");
  settle();
}

void Worker::settle() {
  if (active() > 0 || shutting_down_) return;
  if (status_ == WorkerStatus::stopping) {
    set_status(WorkerStatus::stopped);
  } else if (status_ == WorkerStatus::restarting) {
    set_status(WorkerStatus::running);
    begin_work();
  }
}

void Worker::resize(std::uint32_t concurrency) {
  concurrency_ = concurrency;
  say(fmt::format("resized to {}", concurrency));
  host_.worker_changed(book_->ns, name_);
  redeclared();
}

void Worker::declare(Book book, const runbook::WorkerDeclaration& declaration) {
  book_ = std::move(book);
  declaration_ = declaration;
  if (declaration.concurrency != declared_) {
    declared_ = declaration.concurrency;
    concurrency_ = declared_;
    host_.worker_changed(book_->ns, name_);
  }
  redeclared();
}

void Worker::shut_down() {
  if (std::exchange(shutting_down_, true)) return;
  if (runs()) end_asking();
  give_back("the server stopped");
}

std::uint32_t Worker::free_slots() const {
  const std::uint32_t used = active();
  return used < concurrency_ ? concurrency_ - used : 0;
}

RunOrder Worker::order_for(const std::string& job, bool external) const {
  RunOrder order;
  order.book = book_;
  order.pipeline = &book_->pipelines.find(declaration_.pipeline)->second;
  order.view.ns = book_->ns;
  order.view.pipeline = order.pipeline->name;
  order.view.worker = name_;
  order.view.queue = queue_.name;
  order.view.job = job;
  order.view.external = external;
  order.worker_log = log_;
  return order;
}

Result<std::shared_ptr<Run>> Worker::begin_run(RunOrder order, Run::Ended ended) {
  const std::string job = order.view.job;
  auto run = Run::make(host_.tools(), std::move(order), std::move(ended));
  if (!run) {
    failed_with(fmt::format("job {}: no run can be begun: {}", job, run.error().detail));
    return run;
  }
  host_.run_begins(*run);
  host_.publish(EventType::worker_run_started, queue_,
                {.worker = name_, .run = (*run)->id(), .job = job}, {});
  return run;
}

void Worker::run_has_ended(const std::string& run, const std::string& job, const RunEnd& end) {
  WorkerCounts& counts = host_.counts();
  switch (end.status) {
    case RunStatus::succeeded:
      ++succeeded_;
      ++counts.runs_succeeded;
      went_well();
      break;
    case RunStatus::failed:
      ++failed_;
      ++counts.runs_failed;
      break;
    case RunStatus::cancelled:
      ++counts.runs_cancelled;
      break;
    case RunStatus::lost:
      ++counts.runs_lost;
      break;
    case RunStatus::running:
      break;
  }
  host_.publish(
      EventType::worker_run_ended, queue_,
      {.worker = name_, .run = run, .job = job, .status = std::string(run_status_name(end.status))},
      end.error);
  if (end.status == RunStatus::failed) {
    last_error_ = end.error;
    last_error_at_ = host_.tools().loop.now();
  }
}

void Worker::say(std::string_view text) {
  log_->append(fmt::format("{} {}\n", format_timestamp(host_.tools().loop.now()), text));
}

void Worker::failed_with(std::string error) {
  if (error != last_error_) {
    host_.warn(fmt::format("worker {}/{}: {}", book_->ns, name_, error));
    host_.publish(EventType::worker_error, queue_, {.worker = name_}, error);
  }
  say(error);
  last_error_ = std::move(error);
  last_error_at_ = host_.tools().loop.now();
}

WorkerView Worker::view() const {
  WorkerView view{.ns = book_->ns,
                  .name = name_,
                  .queue = queue_.name,
                  .pipeline = declaration_.pipeline,
                  .status = status_,
                  .active = active(),
                  .concurrency = concurrency_,
                  .autostart = declaration_.autostart,
                  .last_poll_at = {},
                  .next_poll_at = {},
                  .succeeded = succeeded_,
                  .failed = failed_,
                  .last_error = last_error_,
                  .last_error_at = {}};
  if (!last_error_.empty()) view.last_error_at = last_error_at_;
  fill_view(view);
  return view;
}

}  // namespace reprise::worker
