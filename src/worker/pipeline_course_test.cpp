// The rules of docs/runbooks.md, "[pipeline.NAME]", from the text of a runbook to the end of a run.
#include "worker/pipeline_course.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "support/runbook_text.h"
#include "support/seeds.h"

namespace reprise::worker {
namespace {

using runbook::Pipeline;
using runbook::StepIndex;
using testing::ElementsAre;
using Outcome = PipelineCourse::Outcome;
using Names = std::vector<std::string>;

enum class Fate : std::uint8_t { well, badly, cancelled };

class PipelineCourseTest : public testing::Test {
 protected:
  // Each line one step: "name" or "name on_fail=undo on_done=x".
  void pipeline(const Names& steps, const std::string& of_all = "") {
    std::string toml = "[pipeline.p]\n" + of_all + "\n";
    for (const std::string& step : steps) {
      std::istringstream words(step);
      std::string word;
      words >> word;
      toml += "[[pipeline.p.step]]\nrun = \"true\"\nname = \"" + word + "\"\n";
      while (words >> word) {
        const auto sign = word.find('=');
        toml += word.substr(0, sign) + " = \"" + word.substr(sign + 1) + "\"\n";
      }
    }
    book_ = test::runbook_from(toml);
    course_ = std::make_unique<PipelineCourse>(pipeline_now());
  }
  const Pipeline& pipeline_now() const { return book_->pipelines.at("p"); }

  // What happens at the visits of a step; after the last of them, all is well.
  void at(const std::string& step, std::vector<Fate> fates) { fates_[step] = std::move(fates); }

  // The steps in the order they ran.
  Names run() {
    Names ran;
    PipelineCourse::Next next = course_->begin();
    while (next) {
      const StepIndex step = *next;
      const std::string& name = pipeline_now().steps[step].name;
      ran.push_back(name);
      const std::uint32_t visit = course_->visits(step);
      const auto& fates = fates_[name];
      switch (visit <= fates.size() ? fates[visit - 1] : Fate::well) {
        case Fate::well:
          next = course_->succeeded(step);
          break;
        case Fate::badly:
          next = course_->failed(
              step, {"exit code " + std::to_string(visit), "exit_" + std::to_string(visit)});
          break;
        case Fate::cancelled:
          next = course_->cancelled(step);
          break;
      }
    }
    return ran;
  }
  std::string error() const {
    const auto error = course_->error();
    return error ? error->type + "|" + error->text : "";
  }

  std::shared_ptr<const runbook::Runbook> book_;
  std::unique_ptr<PipelineCourse> course_;
  std::map<std::string, std::vector<Fate>> fates_;
};

TEST_F(PipelineCourseTest, StepsRunInOrder) {
  pipeline({"a", "b", "c"});
  EXPECT_THAT(run(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(course_->outcome(), Outcome::succeeded);
  EXPECT_EQ(error(), "");
}

TEST_F(PipelineCourseTest, AFailureEndsTheRun) {
  pipeline({"a", "b", "c"});
  at("b", {Fate::badly});
  EXPECT_THAT(run(), ElementsAre("a", "b"));
  EXPECT_EQ(course_->outcome(), Outcome::failed);
  EXPECT_EQ(error(), "exit_1|step b: exit code 1");
}

TEST_F(PipelineCourseTest, TheOrderPassesOverHandlers) {
  pipeline({"a on_fail=undo", "undo", "b on_cancel=sweep", "sweep", "c"});
  EXPECT_THAT(run(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(course_->outcome(), Outcome::succeeded);
}

TEST_F(PipelineCourseTest, AfterAHandlerTheRunEndsWithTheFirstError) {
  pipeline({"a on_fail=undo", "undo", "b"});
  at("a", {Fate::badly});
  EXPECT_THAT(run(), ElementsAre("a", "undo"));
  EXPECT_EQ(course_->outcome(), Outcome::failed);
  EXPECT_EQ(error(), "exit_1|step a: exit code 1");
}

TEST_F(PipelineCourseTest, AHandlerThatFailsTooLeavesTheFirstError) {
  pipeline({"a on_fail=undo", "undo", "b"});
  at("a", {Fate::badly});
  at("undo", {Fate::badly});
  EXPECT_THAT(run(), ElementsAre("a", "undo"));
  EXPECT_EQ(error(), "exit_1|step a: exit code 1");
}

TEST_F(PipelineCourseTest, AHandlerGoesOnWithItsOwnOnDone) {
  pipeline({"a on_fail=undo", "undo on_done=tell", "b", "tell"});
  at("a", {Fate::badly});
  EXPECT_THAT(run(), ElementsAre("a", "undo", "tell"));
  EXPECT_EQ(course_->outcome(), Outcome::failed);
}

TEST_F(PipelineCourseTest, AStepBeforeThatIsNamedInOnFailIsNoHandler) {
  pipeline({"make", "test on_fail=make"});
  at("test", {Fate::badly});
  EXPECT_THAT(run(), ElementsAre("make", "test", "make", "test"));
  EXPECT_EQ(course_->outcome(), Outcome::succeeded);
}

TEST_F(PipelineCourseTest, OnDoneJumps) {
  pipeline({"a on_done=c", "b on_done=d", "c on_done=b", "d"});
  EXPECT_THAT(run(), ElementsAre("a", "c", "b", "d"));
}

TEST_F(PipelineCourseTest, ThePipelinesOwnHandlersServeStepsThatHaveNone) {
  pipeline({"a", "b on_fail=own", "sweep", "own"}, "on_fail = \"sweep\"");
  at("a", {Fate::badly});
  EXPECT_THAT(run(), ElementsAre("a", "sweep"));
  pipeline({"a", "b on_fail=own", "sweep", "own"}, "on_fail = \"sweep\"");
  fates_.clear();
  at("b", {Fate::badly});
  EXPECT_THAT(run(), ElementsAre("a", "b", "own"));
}

TEST_F(PipelineCourseTest, TestFixTestIsASuccess) {
  pipeline({"test on_fail=fix", "fix on_done=test", "ship"});
  at("test", {Fate::badly, Fate::badly});
  EXPECT_THAT(run(), ElementsAre("test", "fix", "test", "fix", "test", "ship"));
  EXPECT_EQ(course_->outcome(), Outcome::succeeded);
  EXPECT_EQ(error(), "");
}

TEST_F(PipelineCourseTest, AStepThatFailedAndWasNotTriedAgainIsAFailure) {
  pipeline({"test on_fail=fix", "fix on_done=ship", "ship"});
  at("test", {Fate::badly});
  EXPECT_THAT(run(), ElementsAre("test", "fix", "ship"));
  EXPECT_EQ(course_->outcome(), Outcome::failed);
  EXPECT_EQ(error(), "exit_1|step test: exit code 1");
}

TEST_F(PipelineCourseTest, OfStepsThatFailedTheFirstThatWasNotMendedCounts) {
  pipeline({"a on_fail=fix", "fix on_done=a", "b on_fail=last", "last"});
  at("a", {Fate::badly});
  at("b", {Fate::badly});
  EXPECT_THAT(run(), ElementsAre("a", "fix", "a", "b", "last"));
  EXPECT_EQ(error(), "exit_1|step b: exit code 1");
}

TEST_F(PipelineCourseTest, AStepRunsAtMostFiveTimes) {
  pipeline({"test on_fail=fix", "fix on_done=test"});
  at("test", std::vector<Fate>(10, Fate::badly));
  EXPECT_THAT(run(), ElementsAre("test", "fix", "test", "fix", "test", "fix", "test", "fix", "test",
                                 "fix"));
  EXPECT_EQ(course_->outcome(), Outcome::failed);
  EXPECT_EQ(course_->error()->type, "visits");
  EXPECT_THAT(course_->error()->text, testing::HasSubstr("step test has run 5 times"));
  EXPECT_THAT(course_->error()->text, testing::HasSubstr("step test: exit code 5"));
}

TEST_F(PipelineCourseTest, TheFifthVisitMayStillSucceed) {
  pipeline({"test on_fail=fix", "fix on_done=test"});
  at("test", std::vector<Fate>(4, Fate::badly));
  EXPECT_EQ(run().size(), 9U);
  EXPECT_EQ(course_->outcome(), Outcome::succeeded);
}

TEST_F(PipelineCourseTest, ACircleOfSuccessesIsAFailureInTheEnd) {
  pipeline({"a", "b on_done=a"});
  EXPECT_EQ(run().size(), 10U);
  EXPECT_EQ(course_->outcome(), Outcome::failed);
  EXPECT_EQ(course_->error()->type, "visits");
}

TEST_F(PipelineCourseTest, ACancelEndsTheRun) {
  pipeline({"a on_fail=undo", "b", "undo"});
  at("a", {Fate::cancelled});
  EXPECT_THAT(run(), ElementsAre("a"));
  EXPECT_EQ(course_->outcome(), Outcome::cancelled);
  EXPECT_EQ(error(), "cancelled|cancelled");
}

TEST_F(PipelineCourseTest, ACancelRunsItsHandlerAndStaysACancel) {
  pipeline({"a on_cancel=sweep", "b", "sweep on_done=tell", "tell"});
  at("a", {Fate::cancelled});
  EXPECT_THAT(run(), ElementsAre("a", "sweep", "tell"));
  EXPECT_EQ(course_->outcome(), Outcome::cancelled);
  EXPECT_EQ(error(), "cancelled|cancelled");
}

TEST_F(PipelineCourseTest, ThePipelinesOnCancelServesAllSteps) {
  pipeline({"a", "b", "sweep"}, "on_cancel = \"sweep\"");
  at("b", {Fate::cancelled});
  EXPECT_THAT(run(), ElementsAre("a", "b", "sweep"));
}

TEST_F(PipelineCourseTest, ACancelHandlerThatFailsChangesNothing) {
  pipeline({"a on_cancel=sweep", "sweep"});
  at("a", {Fate::cancelled});
  at("sweep", {Fate::badly});
  EXPECT_THAT(run(), ElementsAre("a", "sweep"));
  EXPECT_EQ(course_->outcome(), Outcome::cancelled);
  EXPECT_EQ(error(), "cancelled|cancelled");
}

TEST_F(PipelineCourseTest, ACancelWhileItCleansUpAfterACancelEndsItAll) {
  pipeline({"a", "sweep"}, "on_cancel = \"sweep\"");
  at("a", {Fate::cancelled});
  at("sweep", {Fate::cancelled});
  EXPECT_THAT(run(), ElementsAre("a", "sweep"));
  EXPECT_EQ(course_->outcome(), Outcome::cancelled);
}

TEST_F(PipelineCourseTest, ACancelWhileItCleansUpAfterAFailureCleansUpForTheCancel) {
  pipeline({"a on_fail=undo", "undo on_cancel=sweep", "sweep"});
  at("a", {Fate::badly});
  at("undo", {Fate::cancelled});
  EXPECT_THAT(run(), ElementsAre("a", "undo", "sweep"));
  EXPECT_EQ(course_->outcome(), Outcome::cancelled);
}

// --- Any pipeline --------------------------------------------------------------------------------

Pipeline any_pipeline(SeededRandom& random) {
  Pipeline pipeline;
  pipeline.steps.resize(1 + random.below(8));
  const std::size_t count = pipeline.steps.size();
  const auto somewhere = [&]() -> std::optional<StepIndex> {
    if (random.below(3) == 0) return std::nullopt;
    return random.below(count);
  };
  for (std::size_t i = 0; i < count; ++i) {
    pipeline.steps[i].name = std::to_string(i);
    pipeline.steps[i].on_done = somewhere();
    pipeline.steps[i].on_fail = somewhere();
    pipeline.steps[i].on_cancel = somewhere();
  }
  return pipeline;
}

TEST(PipelineCourseProperty, AnyRunEndsAndNoStepRunsMoreThanFiveTimes) {
  SeededRandom random(7);
  for (std::uint64_t i = 0; i < test::seed_count(5000); ++i) {
    const Pipeline pipeline = any_pipeline(random);
    PipelineCourse course(pipeline);
    std::map<StepIndex, std::uint32_t> ran;
    std::set<StepIndex> unmended;
    bool cancelled = false;
    PipelineCourse::Next next = course.begin();
    while (next) {
      const StepIndex step = *next;
      ASSERT_LT(step, pipeline.steps.size());
      ASSERT_LE(++ran[step], Pipeline::kMostVisits);
      ASSERT_EQ(course.visits(step), ran[step]);
      switch (random.below(8)) {
        case 0:
          next = course.cancelled(step);
          cancelled = true;
          break;
        case 1:
        case 2:
        case 3:
          next = course.failed(step, {"e", "exit_1"});
          unmended.insert(step);
          break;
        default:
          next = course.succeeded(step);
          unmended.erase(step);
      }
    }
    if (cancelled) {
      ASSERT_EQ(course.outcome(), Outcome::cancelled);
    } else if (!unmended.empty()) {
      ASSERT_EQ(course.outcome(), Outcome::failed);
    } else if (course.outcome() == Outcome::failed) {
      ASSERT_EQ(course.error()->type, "visits");
    }
    ASSERT_EQ(course.error().has_value(), course.outcome() != Outcome::succeeded);
  }
}

}  // namespace
}  // namespace reprise::worker
