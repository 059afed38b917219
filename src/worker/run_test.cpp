// One run on a loop and with steps that the test holds in its hand.
#include "worker/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "support/fake_clock.h"
#include "support/fake_step_runner.h"
#include "support/fake_worker_host.h"
#include "support/manual_loop.h"
#include "support/runbook_text.h"

namespace reprise::worker {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Names = std::vector<std::string>;

constexpr char kShip[] = R"(
[pipeline.ship]
timeout = "10m"
on_cancel = "sweep"
[[pipeline.ship.step]]
name = "pick"
run = "pick ${item.id}"
timeout = "2m"
on_fail = "undo"
[[pipeline.ship.step]]
name = "pack"
run = "pack"
[[pipeline.ship.step]]
name = "undo"
run = "undo"
[[pipeline.ship.step]]
name = "sweep"
run = "sweep"
)";

class RunTest : public testing::Test {
 protected:
  void make(const std::string& toml = kShip, const std::string& item = R"({"id":7})") {
    book_ = test::runbook_from(toml, "/project");
    RunOrder order;
    order.book = book_;
    order.pipeline = &book_->pipelines.at("ship");
    order.view.ns = "shop";
    order.view.pipeline = "ship";
    order.view.worker = "shipper";
    order.view.queue = "orders";
    order.view.job = "JOB1";
    order.item = item;
    order.input = "{\"payload\":1}";
    order.attempts = 3;
    order.failures = 2;
    order.headers = {{"trace", "t1"}};
    order.worker_log = worker_log_;
    run_ = *worker::Run::make(host_.tools(), std::move(order), [this](const RunEnd& end) {
      EXPECT_FALSE(end_.has_value()) << "ended twice";
      end_ = end;
      // As owners do, when the result was taken.
      EXPECT_EQ(host_.store().view(run_->id()).status, RunStatus::running);
      host_.run_ends(run_->id(), end);
    });
  }
  void begin() {
    make();
    run_->begin();
    loop_.run();
  }

  // The step that runs; the test fails when it is not the one.
  StepId step(const std::string& script) {
    const auto running = steps_.running();
    EXPECT_EQ(running.size(), 1U);
    if (running.empty()) return 0;
    EXPECT_THAT(steps_.spec(running[0]).script, testing::StartsWith(script));
    return running[0];
  }
  void exit(const std::string& script, int code = 0, const std::string& err = "") {
    const StepId id = step(script);
    if (id == 0) return;
    steps_.exit(id, code, "", err);
    loop_.run();
  }
  std::string ended() const {
    if (!end_) return "runs";
    return std::string(run_status_name(end_->status)) + "|" + end_->error_type + "|" + end_->error;
  }
  Names steps_in_words() {
    Names words;
    for (const StepView& step : host_.store().view(run_->id()).steps) {
      words.push_back(step.name + " " + std::string(run_status_name(step.status)));
    }
    return words;
  }
  std::string log() { return host_.store().read_log(run_->id(), {}).text; }

  test::FakeClock clock_;
  test::ManualLoop loop_{clock_};
  test::FakeStepRunner steps_;
  test::FakeWorkerHost host_{loop_, steps_};
  std::shared_ptr<WorkerLog> worker_log_ = host_.log("shipper");
  std::shared_ptr<const runbook::Runbook> book_;
  std::shared_ptr<worker::Run> run_;
  std::optional<RunEnd> end_;
};

TEST_F(RunTest, RunsItsStepsAndSucceeds) {
  begin();
  EXPECT_EQ(ended(), "runs");
  EXPECT_THAT(steps_in_words(), ElementsAre("pick running"));
  exit("pick");
  exit("pack");
  EXPECT_EQ(ended(), "succeeded||");
  EXPECT_THAT(steps_in_words(), ElementsAre("pick succeeded", "pack succeeded"));
  const RunView view = host_.store().view(run_->id());
  EXPECT_EQ(view.status, RunStatus::succeeded);
  EXPECT_EQ(view.steps[0].exit_code, 0);
  EXPECT_EQ(view.ended_at, clock_.now());
  EXPECT_TRUE(run_->ended());
  EXPECT_TRUE(loop_.timers("run:").empty());
}

TEST_F(RunTest, AStepIsToldWhatItIsRunFor) {
  begin();
  const StepId id = step("pick");
  const StepSpec spec = steps_.spec(id);
  EXPECT_EQ(spec.script, "pick \"${REPRISE_ITEM_id}\"");
  EXPECT_EQ(spec.directory, "/project");
  EXPECT_EQ(spec.input, "{\"payload\":1}");
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"PATH", "/usr/bin:/bin"},
      {"REPRISE_NAMESPACE", "shop"},
      {"REPRISE_PROJECT", "shop"},
      {"REPRISE_PROJECT_ROOT", "/project"},
      {"REPRISE_QUEUE", "orders"},
      {"REPRISE_WORKER", "shipper"},
      {"REPRISE_PIPELINE", "ship"},
      {"REPRISE_STEP", "pick"},
      {"REPRISE_RUN_ID", run_->id()},
      {"REPRISE_JOB_ID", "JOB1"},
      {"REPRISE_ATTEMPTS", "3"},
      {"REPRISE_FAILURES", "2"},
      {"REPRISE_URL", "http://127.0.0.1:1"},
      {"REPRISE_ITEM_id", "7"}};
  for (const auto& [name, value] : expected) EXPECT_EQ(steps_.variable(id, name), value) << name;
  EXPECT_EQ(steps_.variable(id, "REPRISE_ERROR"), std::nullopt);
}

TEST_F(RunTest, AFailureSaysTheStepItsExitCodeAndTheEndOfItsErrors) {
  make(R"([pipeline.ship]
[[pipeline.ship.step]]
name = "pick"
run = "pick"
)");
  run_->begin();
  steps_.say(step("pick"), "to standard output\n");
  exit("pick", 3, "no such shelf\n");
  EXPECT_EQ(ended(), "failed|exit_3|step pick: exit code 3: no such shelf");
  const RunView view = host_.store().view(run_->id());
  EXPECT_EQ(view.status, RunStatus::failed);
  EXPECT_EQ(view.error_type, "exit_3");
  EXPECT_EQ(view.steps[0].exit_code, 3);
  EXPECT_EQ(view.steps[0].error, "exit code 3: no such shelf");
}

TEST_F(RunTest, AHandlerIsToldTheErrorAndTheRunStaysAFailure) {
  begin();
  exit("pick", 3, "no such shelf\n");
  EXPECT_EQ(steps_.variable(step("undo"), "REPRISE_ERROR"),
            "step pick: exit code 3: no such shelf");
  exit("undo");
  EXPECT_EQ(ended(), "failed|exit_3|step pick: exit code 3: no such shelf");
  EXPECT_THAT(steps_in_words(), ElementsAre("pick failed", "undo succeeded"));
}

TEST_F(RunTest, ASignalIsNamed) {
  begin();
  steps_.end(step("pick"), {.kind = StepEnd::Kind::signalled, .code = 9, .detail = {}});
  loop_.run();
  exit("undo");
  EXPECT_EQ(ended(), "failed|signal_9|step pick: killed by signal 9 (Killed)");
  EXPECT_EQ(host_.store().view(run_->id()).steps[0].exit_code, std::nullopt);
}

TEST_F(RunTest, AStepThatTheServerCannotStartIsNoFailureOfTheJob) {
  begin();
  steps_.end(step("pick"),
             {.kind = StepEnd::Kind::not_started, .code = ENOENT, .detail = "no such directory"});
  loop_.run();
  EXPECT_EQ(ended(), "lost|start|step pick: cannot be started: no such directory");
}

TEST_F(RunTest, AStepThatIsTooLargeToBeStartedIs) {
  begin();
  steps_.end(step("pick"),
             {.kind = StepEnd::Kind::not_started, .code = E2BIG, .detail = "too long"});
  loop_.run();
  exit("undo");
  EXPECT_EQ(ended(), "failed|start|step pick: cannot be started: too long");
}

TEST_F(RunTest, AStepWhoseHostWasKilledIsNone) {
  begin();
  steps_.end(step("pick"),
             {.kind = StepEnd::Kind::lost, .code = 0, .detail = "its step host was killed"});
  loop_.run();
  EXPECT_EQ(ended(), "lost|start|step pick: its step host was killed");
}

TEST_F(RunTest, AStepThatKillsItsSupervisorHasFailed) {
  begin();
  steps_.end(step("pick"), {.kind = StepEnd::Kind::lost, .code = SIGKILL, .detail = "killed"});
  loop_.run();
  exit("undo");
  EXPECT_EQ(ended(), "failed|start|step pick: killed");
}

TEST_F(RunTest, AMissingFieldIsAFailureThatStartsNothing) {
  make(kShip, R"({"number":7})");
  run_->begin();
  loop_.run();
  EXPECT_EQ(steps_.started("pick"), 0U);
  exit("undo");  // what cleans up runs all the same
  EXPECT_THAT(ended(), testing::StartsWith("failed|missing_field|step pick: "));
  EXPECT_THAT(ended(), HasSubstr("item.id"));
  EXPECT_THAT(steps_in_words(), ElementsAre("pick failed", "undo succeeded"));
}

TEST_F(RunTest, AStepThatTakesTooLongIsStopped) {
  begin();
  loop_.advance(minutes(2) - seconds(1));
  EXPECT_TRUE(steps_.stops().empty());
  loop_.advance(seconds(1));
  ASSERT_EQ(steps_.stops().size(), 1U);
  EXPECT_EQ(steps_.stops()[0].manner, StopManner::gently);
  exit("undo");
  EXPECT_EQ(ended(), "failed|timeout|step pick: timed out after 2m");
}

TEST_F(RunTest, ATimeoutCountsWhateverTheStepSaysThen) {
  steps_.obeys = false;
  begin();
  const StepId pick = step("pick");
  loop_.advance(minutes(2));
  steps_.exit(pick, 0, "", "caught the signal\n");
  loop_.run();
  exit("undo");
  EXPECT_EQ(ended(), "failed|timeout|step pick: timed out after 2m: caught the signal");
}

TEST_F(RunTest, ThePipelinesTimeoutIsForAllSteps) {
  begin();
  loop_.advance(minutes(1));
  exit("pick");
  loop_.advance(minutes(9) - seconds(1));
  step("pack");
  loop_.advance(seconds(1));
  EXPECT_EQ(ended(), "failed|timeout|step pack: the pipeline timed out after 10m");
}

TEST_F(RunTest, WhatCleansUpAfterThePipelinesTimeoutHasTimeOfItsOwn) {
  make(R"([pipeline.ship]
timeout = "10s"
on_fail = "undo"
[[pipeline.ship.step]]
name = "pick"
run = "pick"
[[pipeline.ship.step]]
name = "undo"
run = "undo"
)");
  run_->begin();
  loop_.advance(seconds(10));
  step("undo");
  loop_.advance(seconds(9));
  step("undo");
  loop_.advance(seconds(1));
  EXPECT_EQ(ended(), "failed|timeout|step pick: the pipeline timed out after 10s");
  EXPECT_THAT(steps_in_words(), ElementsAre("pick failed", "undo failed"));
}

TEST_F(RunTest, AStepTooManyIsAFailure) {
  make(R"([pipeline.ship]
[[pipeline.ship.step]]
name = "test"
run = "test"
on_fail = "fix"
[[pipeline.ship.step]]
name = "fix"
run = "fix"
on_done = "test"
)");
  run_->begin();
  for (int i = 0; i < 5; ++i) {
    exit("test", 1);
    exit("fix");
  }
  EXPECT_THAT(ended(), testing::StartsWith("failed|visits|step test has run 5 times"));
  EXPECT_THAT(log(), HasSubstr("==> step test (visit 5)\n"));
}

TEST_F(RunTest, ACancelEndsTheStepAndCleansUp) {
  begin();
  run_->cancel();
  loop_.run();
  ASSERT_EQ(steps_.stops().size(), 1U);
  EXPECT_EQ(steps_.stops()[0].manner, StopManner::gently);
  EXPECT_EQ(ended(), "runs");
  EXPECT_EQ(steps_.variable(step("sweep"), "REPRISE_ERROR"), "cancelled");
  exit("sweep");
  EXPECT_EQ(ended(), "cancelled|cancelled|cancelled");
  EXPECT_THAT(steps_in_words(), ElementsAre("pick cancelled", "sweep succeeded"));
}

TEST_F(RunTest, ASecondCancelEndsTheCleaningUp) {
  begin();
  run_->cancel();
  loop_.run();
  step("sweep");
  run_->cancel();
  loop_.run();
  EXPECT_EQ(ended(), "cancelled|cancelled|cancelled");
  EXPECT_TRUE(steps_.running().empty());
}

TEST_F(RunTest, CancellingTwiceWhileTheStepEndsIsOneCancel) {
  steps_.obeys = false;
  begin();
  run_->cancel();
  run_->cancel();
  steps_.exit(step("pick"), 0);
  loop_.run();
  step("sweep");
}

TEST_F(RunTest, ACancelBeforeItBeginsStartsNothingButTheCleaningUp) {
  make();
  run_->cancel();
  run_->begin();
  loop_.run();
  EXPECT_EQ(steps_.started("pick"), 0U);
  exit("sweep");
  EXPECT_EQ(ended(), "cancelled|cancelled|cancelled");
}

TEST_F(RunTest, AnAbandonedRunEndsAtOnceAndNothingFollows) {
  begin();
  run_->abandon("the lease was lost");
  loop_.run();
  ASSERT_EQ(steps_.stops().size(), 1U);
  EXPECT_EQ(steps_.stops()[0].manner, StopManner::at_once);
  EXPECT_EQ(ended(), "lost|lost|the lease was lost");
  EXPECT_EQ(steps_.started(), 1U);
  EXPECT_THAT(steps_in_words(), ElementsAre("pick lost"));
  run_->abandon("again");
  run_->cancel();
  loop_.run();
}

TEST_F(RunTest, ARunThatIsAbandonedBeforeItBeginsNeverDoes) {
  make();
  run_->abandon("stopped");
  EXPECT_EQ(ended(), "lost|lost|stopped");
  run_->begin();
  loop_.run();
  EXPECT_EQ(steps_.started(), 0U);
}

TEST_F(RunTest, AnAbandonWhileItCancelsWins) {
  steps_.obeys = false;
  begin();
  run_->cancel();
  run_->abandon("the server stopped");
  steps_.end(step("pick"), {.kind = StepEnd::Kind::signalled, .code = 9, .detail = {}});
  loop_.run();
  EXPECT_EQ(ended(), "lost|lost|the server stopped");
}

TEST_F(RunTest, TheLogHasWhatHappenedAndAllOutput) {
  begin();
  steps_.exit(step("pick"), 2, "looking\n", "not there\n");
  loop_.run();
  exit("undo");
  EXPECT_EQ(log(),
            "==> step pick\n"
            "looking\n"
            "not there\n"
            "==> exit code 2: not there\n"
            "==> step undo\n"
            "==> failed: step pick: exit code 2: not there\n");
}

TEST_F(RunTest, TheWorkersLogHasItInWholeLinesWithTheRun) {
  begin();
  const StepId pick = step("pick");
  const std::string prefix = run_->id().substr(0, 8) + " pick | ";
  steps_.say(pick, "one\ntw");
  steps_.say(pick, "o\n\nrest");
  exit("pick");
  exit("pack");
  const std::string text = worker_log_->read({}).text;
  EXPECT_THAT(text,
              HasSubstr(prefix + "one\n" + prefix + "two\n" + prefix + "\n" + prefix + "rest\n"));
  EXPECT_THAT(text, HasSubstr(" " + run_->id().substr(0, 8) + " step pack\n"));
  EXPECT_THAT(text, HasSubstr(" succeeded\n"));
}

TEST_F(RunTest, ALineWithoutAnEndIsCutInTheWorkersLogAndKeptInItsOwn) {
  begin();
  const StepId pick = step("pick");
  for (int i = 0; i < 5; ++i) steps_.say(pick, std::string(5000, 'x'));
  exit("pick");
  EXPECT_THAT(log(), HasSubstr(std::string(25'000, 'x')));
  EXPECT_THAT(worker_log_->read({}).text, Not(HasSubstr(std::string(25'000, 'x'))));
}

TEST_F(RunTest, AnErrorIsTextAndNotTooLong) {
  begin();
  exit("pick", 1, std::string(100'000, 'x') + "\xff\xfe end");
  exit("undo");
  EXPECT_LT(end_->error.size(), 10'000U);
  EXPECT_TRUE(is_valid_utf8(end_->error));
  EXPECT_THAT(end_->error, testing::EndsWith(" end"));
}

}  // namespace
}  // namespace reprise::worker
