#include "worker/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/duration.h"
#include "base/utf8.h"
#include "worker/output_tail.h"
#include "worker/step_environment.h"

namespace reprise::worker {
namespace {

using runbook::StepIndex;

constexpr std::size_t kStepsKept = 100;
constexpr std::size_t kMostErrorBytes = 8 * 1024;

// What kept the step from running, or ended it, lies with the server and its machine.
bool is_our_trouble(const StepEnd& end) {
  return (end.kind == StepEnd::Kind::lost && end.code != SIGKILL) ||
         (end.kind == StepEnd::Kind::not_started && end.code != E2BIG);
}

std::string with_tail(std::string text, const std::string& tail) {
  if (!tail.empty()) text += ": " + tail;
  return text;
}

}  // namespace

// The output of one step, on its way to the logs. Whole lines go to the worker's, with the run
// before each.
class Run::Output final : public StepObserver {
 public:
  Output(std::shared_ptr<Run> run, std::string prefix)
      : run_(std::move(run)), prefix_(std::move(prefix)) {}

  void on_output(StepStream stream, std::string_view bytes) override {
    if (stream == StepStream::err) errors_.append(bytes);
    if (!run_->log_->append(bytes)) return;
    if (run_->order_.worker_log) tell_worker_log(bytes);
  }

  void on_end(const StepEnd& end) override {
    if (!line_.empty()) tell_line("");
    Loop& loop = run_->tools_.loop;
    loop.post([run = std::move(run_), end, tail = valid_utf8(errors_.text())] {
      run->step_ended(end, tail);
    });
  }

 private:
  static constexpr std::size_t kLongestLine = 8 * 1024;

  void tell_worker_log(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      const std::string_view piece = bytes.substr(0, end);
      if (end == std::string_view::npos && line_.size() + piece.size() < kLongestLine) {
        line_ += piece;
        return;
      }
      tell_line(piece);
      bytes.remove_prefix(std::min(bytes.size(), piece.size() + (end == piece.size() ? 1 : 0)));
    }
  }
  void tell_line(std::string_view rest) {
    run_->order_.worker_log->append(fmt::format("{}{}{}\n", prefix_, line_, rest));
    line_.clear();
  }

  std::shared_ptr<Run> run_;
  const std::string prefix_;
  OutputTail errors_;
  std::string line_;  // the beginning of one whose end has not come
};

Result<std::shared_ptr<Run>> Run::make(RunTools tools, RunOrder order, Ended ended) {
  RunView record = order.view;
  record.status = RunStatus::running;
  record.started_at = tools.loop.now();
  auto id = tools.store.begin(std::move(record));
  if (!id) return id.error();
  std::shared_ptr<Run> run(new Run(std::move(tools), std::move(order), std::move(ended)));
  run->id_ = *std::move(id);
  run->log_ = run->tools_.store.log(run->id_);
  return run;
}

Run::Run(RunTools tools, RunOrder order, Ended ended)
    : tools_(std::move(tools)),
      order_(std::move(order)),
      ended_(std::move(ended)),
      course_(*order_.pipeline) {}

void Run::begin() {
  if (ended()) return;
  deadline_ = add_saturating(tools_.loop.now(), order_.pipeline->timeout);
  step_ = course_.begin();
  // Cancelled before it began: as if in its first step, but that is not started.
  if (cancelling_) return go_on(std::nullopt, std::nullopt);
  start_step(step_);
}

void Run::note(const std::string& line) {
  log_->append(fmt::format("==> {}\n", line));
  if (order_.worker_log) {
    order_.worker_log->append(fmt::format("{} {} {}\n", format_timestamp(tools_.loop.now()),
                                          std::string_view(id_).substr(0, 8), line));
  }
}

void Run::start_step(StepIndex index) {
  step_ = index;
  timed_out_.clear();
  const runbook::Step& step = order_.pipeline->steps[index];
  const std::uint32_t visit = course_.visits(index);
  if (RunView* view = tools_.store.find(id_)) {
    if (view->steps.size() == kStepsKept) view->steps.erase(view->steps.begin());
    view->steps.push_back({.name = step.name, .visit = visit, .started_at = tools_.loop.now()});
  }
  note(visit == 1 ? fmt::format("step {}", step.name)
                  : fmt::format("step {} (visit {})", step.name, visit));
  auto spec = spec_of(step);
  if (!spec) return go_on(StepError{spec.error().detail, "missing_field"}, std::nullopt);
  arm_timeout(step);
  const std::string prefix = fmt::format("{} {} | ", std::string_view(id_).substr(0, 8), step.name);
  running_ =
      tools_.steps.start(*std::move(spec), std::make_shared<Output>(shared_from_this(), prefix));
}

Result<StepSpec> Run::spec_of(const runbook::Step& step) const {
  const RunView& run = order_.view;
  CommandSubject subject{.ns = run.ns,
                         .root = order_.book->root,
                         .server_url = tools_.server_url ? tools_.server_url() : "",
                         .pipeline = order_.pipeline->name,
                         .step = step.name,
                         .run_id = id_,
                         .worker = run.worker,
                         .queue = run.queue,
                         .job_id = run.job,
                         .item = order_.item,
                         .attempts = order_.attempts,
                         .failures = order_.failures,
                         .headers = order_.headers,
                         .error = {}};
  if (const auto error = course_.error()) subject.error = error->text;
  auto spec = make_spec(step.run, subject, tools_.environment);
  if (spec) spec->input = order_.input;
  return spec;
}

void Run::arm_timeout(const runbook::Step& step) {
  const Timestamp now = tools_.loop.now();
  Timestamp due = deadline_;
  std::string why =
      fmt::format("the pipeline timed out after {}", format_duration(order_.pipeline->timeout));
  if (step.timeout && add_saturating(now, *step.timeout) < due) {
    due = add_saturating(now, *step.timeout);
    why = fmt::format("timed out after {}", format_duration(*step.timeout));
  }
  tools_.loop.set_timer(timer_name(), due, [run = shared_from_this(), why = std::move(why)] {
    if (run->running_ == 0) return;
    run->timed_out_ = why;
    run->tools_.steps.stop(run->running_, StopManner::gently);
  });
}

void Run::cancel() {
  if (ended() || abandoned_) return;
  cancelling_ = true;
  if (running_ != 0) tools_.steps.stop(running_, StopManner::gently);
}

void Run::abandon(std::string why) {
  if (ended() || abandoned_) return;
  abandoned_ = StepError{std::move(why), "lost"};
  if (running_ != 0) {
    tools_.steps.stop(running_, StopManner::at_once);
  } else {
    finish({RunStatus::lost, abandoned_->text, abandoned_->type});
  }
}

std::optional<StepError> Run::error_of(const StepEnd& end, const std::string& tail) const {
  if (!timed_out_.empty()) return StepError{with_tail(timed_out_, tail), "timeout"};
  switch (end.kind) {
    case StepEnd::Kind::exited:
      if (end.code == 0) return std::nullopt;
      return StepError{with_tail(fmt::format("exit code {}", end.code), tail),
                       fmt::format("exit_{}", end.code)};
    case StepEnd::Kind::signalled:
      return StepError{
          with_tail(fmt::format("killed by signal {} ({})", end.code, strsignal(end.code)), tail),
          fmt::format("signal_{}", end.code)};
    case StepEnd::Kind::not_started:
      return StepError{fmt::format("cannot be started: {}", end.detail), "start"};
    case StepEnd::Kind::lost:
      return StepError{end.detail, "start"};
  }
  return std::nullopt;
}

void Run::step_ended(const StepEnd& end, const std::string& tail) {
  running_ = 0;
  tools_.loop.cancel_timer(timer_name());
  std::optional<int> exit_code;
  if (end.kind == StepEnd::Kind::exited) exit_code = end.code;
  if (is_our_trouble(end) && !abandoned_ && !cancelling_) {
    // Another try may go well, and nothing is said about the job.
    abandoned_ = StepError{
        fmt::format("step {}: {}", order_.pipeline->steps[step_].name, error_of(end, tail)->text),
        "start"};
  }
  auto error = error_of(end, tail);
  if (error && error->text.size() > kMostErrorBytes) error->text.resize(kMostErrorBytes);
  if (error) error->text = valid_utf8(error->text);
  go_on(std::move(error), exit_code);
}

void Run::step_is_over(const std::optional<StepError>& error, std::optional<int> exit_code) {
  RunView* view = tools_.store.find(id_);
  if (view == nullptr || view->steps.empty()) return;
  StepView& step = view->steps.back();
  step.ended_at = tools_.loop.now();
  step.exit_code = exit_code;
  step.status = abandoned_    ? RunStatus::lost
                : cancelling_ ? RunStatus::cancelled
                : error       ? RunStatus::failed
                              : RunStatus::succeeded;
  if (error) step.error = error->text;
}

void Run::go_on(std::optional<StepError> error, std::optional<int> exit_code) {
  step_is_over(error, exit_code);
  if (error) note(error->text);
  if (abandoned_) return finish({RunStatus::lost, abandoned_->text, abandoned_->type});
  PipelineCourse::Next next;
  if (std::exchange(cancelling_, false)) {
    next = course_.cancelled(step_);
    deadline_ = add_saturating(tools_.loop.now(), order_.pipeline->timeout);
  } else if (error) {
    next = course_.failed(step_, *std::move(error));
    // What cleans up after a run that took too long has as much time again.
    if (deadline_ <= tools_.loop.now()) {
      deadline_ = add_saturating(tools_.loop.now(), order_.pipeline->timeout);
    }
  } else {
    next = course_.succeeded(step_);
  }
  if (next) return start_step(*next);
  const auto left = course_.error().value_or(StepError{});
  switch (course_.outcome()) {
    case PipelineCourse::Outcome::succeeded:
      return finish({RunStatus::succeeded, "", ""});
    case PipelineCourse::Outcome::cancelled:
      return finish({RunStatus::cancelled, left.text, left.type});
    case PipelineCourse::Outcome::failed:
      return finish({RunStatus::failed, left.text, left.type});
  }
}

void Run::finish(RunEnd end) {
  tools_.loop.cancel_timer(timer_name());
  note(end.error.empty() ? std::string(run_status_name(end.status))
                         : fmt::format("{}: {}", run_status_name(end.status), end.error));
  if (Ended ended = std::exchange(ended_, nullptr)) ended(end);
}

}  // namespace reprise::worker
