// Run: one pipeline on its way, from its first step to its end. It starts steps, follows the course
// they take, minds the timeouts, and writes what happens into the run's record and log. What the
// end means for a job is its owner's business, and so is closing the record: as long as it is open
// on disk, the next server would find that the run was lost.
// Threads: the loop's, but for the output of steps, which goes to the logs as it comes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runbook/runbook.h"
#include "worker/loop.h"
#include "worker/pipeline_course.h"
#include "worker/run_store.h"
#include "worker/step_runner.h"

namespace reprise::worker {

// What runs have in common; outlives them.
struct RunTools {
  Loop& loop;
  StepRunner& steps;
  RunStore& store;
  // "NAME=value": the server's own environment, without what is its own business.
  const std::vector<std::string>& environment;
  std::function<std::string()> server_url;
};

struct RunOrder {
  std::shared_ptr<const runbook::Runbook> book;  // keeps the pipeline alive
  const runbook::Pipeline* pipeline = nullptr;
  RunView view;       // without id and status
  std::string item;   // JSON; empty: there is none
  std::string input;  // for standard input
  std::optional<std::uint32_t> attempts;
  std::optional<std::uint32_t> failures;
  std::vector<std::pair<std::string, std::string>> headers;
  std::shared_ptr<WorkerLog> worker_log;  // null: a trial
};

// Of a lost run `error_type` is "start" when the server's own trouble ended it, else "lost".
struct RunEnd {
  RunStatus status{};
  std::string error;
  std::string error_type;
};

class Run final : public std::enable_shared_from_this<Run> {
 public:
  using Ended = absl::AnyInvocable<void(const RunEnd&)>;

  // Nothing runs yet. Errc::io: no record can be made.
  static Result<std::shared_ptr<Run>> make(RunTools tools, RunOrder order, Ended ended);

  const std::string& id() const { return id_; }
  void begin();  // does nothing for one that has ended before
  // The step ends, and what cleans up follows. Again: the cleaning up ends, too.
  void cancel();
  // Everything ends at once and nothing follows.
  void abandon(std::string why);
  bool ended() const { return ended_ == nullptr; }

 private:
  class Output;

  Run(RunTools tools, RunOrder order, Ended ended);
  void start_step(runbook::StepIndex step);
  Result<StepSpec> spec_of(const runbook::Step& step) const;
  void arm_timeout(const runbook::Step& step);
  void step_ended(const StepEnd& end, const std::string& tail);
  std::optional<StepError> error_of(const StepEnd& end, const std::string& tail) const;
  void go_on(std::optional<StepError> error, std::optional<int> exit_code);
  void step_is_over(const std::optional<StepError>& error, std::optional<int> exit_code);
  void finish(RunEnd end);
  void note(const std::string& line);
  std::string timer_name() const { return "run:" + id_; }

  const RunTools tools_;
  const RunOrder order_;
  Ended ended_;
  PipelineCourse course_;
  std::string id_;
  std::shared_ptr<RunLog> log_;

  runbook::StepIndex step_ = 0;
  StepId running_ = 0;                  // 0: none
  Timestamp deadline_{};                // of the run, then of its cleaning up
  std::string timed_out_;               // why the step that runs was stopped; empty: it was not
  bool cancelling_ = false;             // the step that runs was stopped because of it
  std::optional<StepError> abandoned_;  // why
};

}  // namespace reprise::worker
