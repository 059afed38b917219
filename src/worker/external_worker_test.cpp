// What a worker of an external queue takes, what becomes of it, and how the worker stops.
#include <filesystem>

#include "support/external_worker_fixture.h"

namespace reprise::worker {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ExternalWorkerTest : public ExternalWorkerFixture {};

// --- What it takes
// ---------------------------------------------------------------------------------

TEST_F(ExternalWorkerTest, ItTakesAsManyAsItHasSlotsInTheOrderOfTheListOneAfterTheOther) {
  start();
  listed({"3", "1", "2"});
  EXPECT_THAT(jobs_of("take"), ElementsAre("3"));
  taken("3");
  EXPECT_THAT(jobs_of("take"), ElementsAre("1"));
  EXPECT_THAT(jobs_of("work"), ElementsAre("3"));
  taken("1");
  EXPECT_THAT(jobs_of("take"), IsEmpty());
  EXPECT_THAT(jobs_of("work"), ElementsAre("3", "1"));
  EXPECT_EQ(worker_->view().active, 2U);
  EXPECT_EQ(host_.states[kQueue].listed, 3U);
  EXPECT_EQ(host_.items().count(kQueue), 2U);
  EXPECT_EQ(host_.count_of(EventType::worker_run_started), 2U);
}

TEST_F(ExternalWorkerTest, ATakeKnowsItsItem) {
  start();
  listed({"7"});
  const StepId id = steps_.running("take")[0];
  EXPECT_EQ(steps_.variable(id, "REPRISE_ITEM_id"), "7");
  EXPECT_EQ(steps_.variable(id, "REPRISE_JOB_ID"), "7");
  EXPECT_EQ(steps_.spec(id).input,
            R"({"id":"7","namespace":"shop","queue":"bugs","payload":{"id":7}})");
  taken("7");
  EXPECT_EQ(steps_.spec(steps_.running("work")[0]).input, steps_.spec(id).input);
}

TEST_F(ExternalWorkerTest, WhatIsInHandIsNotTakenAgain) {
  start();
  run_items({"1"});
  loop_.advance(seconds(30));
  listed({"1", "2"});
  EXPECT_THAT(jobs_of("take"), ElementsAre("2"));
  EXPECT_EQ(steps_.started("take"), 2U);
}

TEST_F(ExternalWorkerTest, AskingAgainAndAgainNeverTakesAnItemTwice) {
  start();
  worker_->wake();
  listed({"1"});
  worker_->wake();
  loop_.advance(seconds(15));
  worker_->wake();
  taken("1");
  for (int i = 0; i < 4; ++i) {
    if (lists()) listed({"1"});
    worker_->wake();
    loop_.run();
  }
  EXPECT_EQ(steps_.started("take"), 1U);
  EXPECT_EQ(steps_.started("work"), 1U);
}

TEST_F(ExternalWorkerTest, TwoWorkersOfOneQueueShareWhatIsInHand) {
  const auto helper = make_worker("helper");
  start();
  helper->start();
  loop_.run();
  const auto lists_now = steps_.running("list");
  ASSERT_EQ(lists_now.size(), 2U);
  for (const StepId id : lists_now) {
    steps_.exit(id, 0, items({"1", "2", "3"}));
    loop_.run();
  }
  EXPECT_THAT(jobs_of("take"), ElementsAre("1", "2"));
  taken("1");
  taken("2");
  EXPECT_THAT(jobs_of("take"), ElementsAre("3"));
  taken("3");
  EXPECT_THAT(jobs_of("work"), testing::UnorderedElementsAre("1", "2", "3"));
  EXPECT_EQ(steps_.started("take"), 3U);
}

TEST_F(ExternalWorkerTest, WhatAnotherWorkerFinishedWhileItWasListedIsNotTakenFromThatList) {
  const auto helper = make_worker("helper");
  start();
  run_items({"1"});
  helper->start();
  loop_.run();
  const StepId stale = steps_.running("list")[0];  // it has read the queue; 1 is still in it
  worked("1");
  end("done", "1", 0);
  steps_.exit(stale, 0, items({"1", "2"}));
  loop_.run();
  EXPECT_THAT(jobs_of("take"), ElementsAre("2"));
}

TEST_F(ExternalWorkerTest, ATakeThatFailsIsSkippedUntilTheNextPoll) {
  make("30s", 1);
  start();
  listed({"1", "2"});
  taken("1", 1);  // somebody else's
  EXPECT_THAT(jobs_of("take"), ElementsAre("2"));
  EXPECT_FALSE(host_.items().has(kQueue, "1"));
  EXPECT_THAT(log(), HasSubstr("item 1 not taken: exit code 1"));
  taken("2");
  worked("2");
  end("done", "2", 0);
  listed({"1"});  // because there is room
  EXPECT_THAT(jobs_of("take"), IsEmpty());
  loop_.advance(seconds(30));
  listed({"1"});
  EXPECT_THAT(jobs_of("take"), ElementsAre("1"));
}

TEST_F(ExternalWorkerTest, WhatHasEndedIsTakenAgainAtTheNextPollOnly) {
  make("30s", 1);
  start();
  run_items({"1"});
  worked("1", 1);
  end("failed", "1", 0);
  listed({"1"});
  EXPECT_THAT(jobs_of("take"), IsEmpty());
  EXPECT_FALSE(lists());
  loop_.advance(seconds(30));
  listed({"1"});
  EXPECT_THAT(jobs_of("take"), ElementsAre("1"));
}

TEST_F(ExternalWorkerTest, ShortRunsDoNotPutOffThePoll) {
  make("30s", 1);
  start();
  listed({"1", "2"});
  taken("1", 1);  // somebody else's, for now
  taken("2");
  for (int i = 3; i < 9; ++i) {
    const std::string now = std::to_string(i - 1);
    const std::string next = std::to_string(i);
    loop_.advance(seconds(10));
    if (lists()) {
      listed({"1", now});  // its time had come; there was no room
      EXPECT_GE(i, 5);
    }
    worked(now);
    end("done", now, 0);
    if (steps_.running("list").empty()) break;
    listed({"1", next});
    if (!jobs_of("take").empty() && jobs_of("take")[0] == "1") return;  // it had its turn
    taken(next);
  }
  FAIL() << "item 1 was never tried again";
}

TEST_F(ExternalWorkerTest, AnItemWithoutTheFieldThatTakeNeedsIsSkipped) {
  start();
  end("list", "", 0, R"([{"number":1},{"id":2}])");
  EXPECT_THAT(jobs_of("take"), ElementsAre("2"));
  EXPECT_THAT(log(), HasSubstr("item 1 not taken: "));
}

TEST_F(ExternalWorkerTest, ATakeThatTakesTooLongIsNotTaken) {
  start();
  listed({"1"});
  loop_.advance(seconds(20));
  EXPECT_THAT(log(), HasSubstr("item 1 not taken: timed out"));
  EXPECT_FALSE(host_.items().has(kQueue, "1"));
}

// --- Records
// ---------------------------------------------------------------------------------------

TEST_F(ExternalWorkerTest, AnItemIsRecordedBeforeItIsTakenAndErasedAfterItWasTold) {
  host_.hold_notes = true;
  start();
  listed({"1"});
  EXPECT_EQ(steps_.started("take"), 0U);
  EXPECT_THAT(host_.notes, IsEmpty());
  host_.let_notes_go();
  loop_.run();
  EXPECT_THAT(jobs_of("take"), ElementsAre("1"));
  ASSERT_EQ(host_.records().size(), 1U);
  EXPECT_EQ(host_.records()[0].phase, ItemPhase::taking);
  taken("1");
  EXPECT_EQ(host_.records()[0].phase, ItemPhase::running);
  EXPECT_EQ(host_.records()[0].run, host_.runs.begin()->first);
  worked("1");
  EXPECT_EQ(host_.records()[0].phase, ItemPhase::succeeded);
  EXPECT_EQ(steps_.running("done").size(), 1U);
  end("done", "1", 0);
  EXPECT_THAT(host_.notes, IsEmpty());
  EXPECT_EQ(host_.items().count(kQueue), 0U);
}

TEST_F(ExternalWorkerTest, TheRecordOfAFailureIsThereBeforeItIsTold) {
  start();
  run_items({"1"});
  host_.hold_notes = true;
  worked("1", 3);
  EXPECT_EQ(steps_.started("failed"), 0U);
  host_.let_notes_go();
  loop_.run();
  EXPECT_EQ(host_.records()[0].phase, ItemPhase::failed);
  EXPECT_EQ(steps_.variable(steps_.running("failed")[0], "REPRISE_ERROR"),
            "step work: exit code 3: it broke");
}

TEST_F(ExternalWorkerTest, WhatCannotBeRecordedIsNotTaken) {
  host_.refuse_notes = Error{Errc::io, "disk full"};
  start();
  listed({"1", "2"});
  EXPECT_EQ(steps_.started("take"), 0U);
  EXPECT_THAT(worker_->view().last_error, HasSubstr("disk full"));
  EXPECT_EQ(worker_->view().active, 0U);
  host_.refuse_notes.reset();
  loop_.advance(seconds(30));
  listed({"1", "2"});
  EXPECT_THAT(jobs_of("take"), ElementsAre("1"));
}

TEST_F(ExternalWorkerTest, AnItemThatIsTooLargeToBeRecordedDoesNotKeepOthersWaiting) {
  host_.refuse_notes = Error{Errc::value_too_large, "too large"};
  start();
  host_.hold_notes = true;
  listed({"1", "2"});
  host_.let_notes_go();
  host_.hold_notes = true;
  loop_.run();
  host_.refuse_notes.reset();
  host_.let_notes_go();
  loop_.run();
  EXPECT_THAT(jobs_of("take"), ElementsAre("2"));
}

TEST_F(ExternalWorkerTest, WhatAFormerServerLeftIsToldAndNotTaken) {
  const auto left = [&](const std::string& key, ItemPhase phase) {
    const ItemRecord record{.ns = "shop",
                            .queue = "bugs",
                            .worker = "fixer",
                            .item = {.key = key, .json = item(key)},
                            .phase = phase,
                            .run = "R",
                            .error = {}};
    host_.notes[item_note_key("shop", "bugs", key)] = encode_item(record);
    host_.items().restore(record);
  };
  left("1", ItemPhase::running);
  left("2", ItemPhase::succeeded);
  start();
  host_.items().tell_left(book_);
  listed({"1", "2", "3"});
  EXPECT_THAT(jobs_of("take"), ElementsAre("3"));
  EXPECT_THAT(jobs_of("failed"), ElementsAre("1"));
  EXPECT_THAT(jobs_of("done"), ElementsAre("2"));
}

// --- How it ends
// -----------------------------------------------------------------------------------

TEST_F(ExternalWorkerTest, DoneIsToldAfterASuccess) {
  start();
  run_items({"1"});
  worked("1");
  EXPECT_THAT(jobs_of("done"), ElementsAre("1"));
  EXPECT_EQ(worker_->view().active, 1U);  // until it was told
  end("done", "1", 0);
  EXPECT_EQ(steps_.started("failed"), 0U);
  EXPECT_EQ(worker_->view().active, 0U);
  EXPECT_EQ(worker_->view().succeeded, 1U);
  EXPECT_EQ(host_.counts().runs_succeeded, 1U);
  EXPECT_THAT(host_.runs, IsEmpty());
  EXPECT_EQ(host_.count_of(EventType::worker_run_ended), 1U);
}

TEST_F(ExternalWorkerTest, FailedIsToldAfterAFailure) {
  start();
  run_items({"1"});
  worked("1", 3);
  EXPECT_THAT(jobs_of("failed"), ElementsAre("1"));
  EXPECT_EQ(steps_.variable(steps_.running("failed")[0], "REPRISE_ERROR"),
            "step work: exit code 3: it broke");
  EXPECT_EQ(worker_->view().failed, 1U);
  EXPECT_EQ(worker_->view().last_error, "step work: exit code 3: it broke");
  end("failed", "1", 0);
  EXPECT_EQ(steps_.started("done"), 0U);
}

TEST_F(ExternalWorkerTest, AResultThatCannotBeToldIsTriedThreeTimesMore) {
  start();
  run_items({"1"});
  worked("1");
  for (const int wait : {1, 2, 4}) {
    end("done", "1", 1);
    loop_.advance(seconds(wait));
    ASSERT_THAT(jobs_of("done"), ElementsAre("1")) << wait;
    EXPECT_EQ(host_.records().size(), 1U);
  }
  end("done", "1", 1);
  EXPECT_THAT(host_.warnings.back(), HasSubstr("given up"));
  EXPECT_THAT(host_.notes, IsEmpty());
  EXPECT_EQ(worker_->view().active, 0U);
}

TEST_F(ExternalWorkerTest, ACancelledRunIsToldAsFailed) {
  start();
  run_items({"1"});
  host_.runs.begin()->second->cancel();
  loop_.run();
  end("sweep", "1", 0);
  EXPECT_THAT(jobs_of("failed"), ElementsAre("1"));
  EXPECT_EQ(steps_.variable(steps_.running("failed")[0], "REPRISE_ERROR"), "cancelled");
  EXPECT_EQ(host_.counts().runs_cancelled, 1U);
}

TEST_F(ExternalWorkerTest, ARunThatCannotBeRecordedIsToldAsFailed) {
  start();
  listed({"1"});
  std::filesystem::remove_all(host_.directory / "runs");
  taken("1");
  EXPECT_EQ(steps_.started("work"), 0U);
  EXPECT_THAT(jobs_of("failed"), ElementsAre("1"));
  end("failed", "1", 0);
  EXPECT_EQ(worker_->view().active, 0U);
  EXPECT_THAT(host_.notes, IsEmpty());
}

// --- Stops
// -----------------------------------------------------------------------------------------

TEST_F(ExternalWorkerTest, AStopFinishesWhatRuns) {
  start();
  run_items({"1", "2"});
  worker_->stop(false);
  loop_.run();
  EXPECT_EQ(worker_->status(), WorkerStatus::stopping);
  worked("1");
  end("done", "1", 0);
  EXPECT_EQ(worker_->status(), WorkerStatus::stopping);
  worked("2", 1);
  end("failed", "2", 0);
  EXPECT_EQ(worker_->status(), WorkerStatus::stopped);
  EXPECT_TRUE(worker_->idle());
  EXPECT_FALSE(lists());
  EXPECT_EQ(until_poll(), std::nullopt);
}

TEST_F(ExternalWorkerTest, AStopWhileItTakesFinishesThatItem) {
  start();
  listed({"1", "2"});
  worker_->stop(false);
  loop_.run();
  EXPECT_EQ(worker_->status(), WorkerStatus::stopping);
  taken("1");
  EXPECT_THAT(jobs_of("work"), ElementsAre("1"));
  EXPECT_THAT(jobs_of("take"), IsEmpty());
  worked("1");
  end("done", "1", 0);
  EXPECT_EQ(worker_->status(), WorkerStatus::stopped);
}

TEST_F(ExternalWorkerTest, AStopWhileItTakesInVainIsAStop) {
  start();
  listed({"1", "2"});
  worker_->stop(false);
  loop_.run();
  taken("1", 1);
  EXPECT_EQ(worker_->status(), WorkerStatus::stopped);
  EXPECT_EQ(steps_.started("take"), 1U);
  EXPECT_THAT(host_.notes, IsEmpty());
}

TEST_F(ExternalWorkerTest, AStopNowEndsWhatRunsAndTellsThatItFailed) {
  start();
  run_items({"1", "2"});
  worker_->stop(true);
  loop_.run();
  EXPECT_THAT(jobs_of("work"), IsEmpty());
  EXPECT_THAT(jobs_of("failed"), testing::UnorderedElementsAre("1", "2"));
  EXPECT_EQ(steps_.variable(steps_.running("failed")[0], "REPRISE_ERROR"), "stopped by hand");
  EXPECT_EQ(worker_->status(), WorkerStatus::stopping);
  EXPECT_EQ(host_.counts().runs_lost, 2U);
  end("failed", "1", 0);
  end("failed", "2", 0);
  EXPECT_EQ(worker_->status(), WorkerStatus::stopped);
  EXPECT_THAT(host_.notes, IsEmpty());
}

TEST_F(ExternalWorkerTest, AStopNowWhileItTakesGivesThatItemBack) {
  start();
  listed({"1"});
  worker_->stop(true);
  loop_.run();
  EXPECT_EQ(worker_->status(), WorkerStatus::stopping);
  EXPECT_THAT(jobs_of("take"), IsEmpty());  // killed: nobody knows whether it had taken it
  EXPECT_EQ(steps_.started("work"), 0U);
  EXPECT_THAT(jobs_of("failed"), ElementsAre("1"));
  end("failed", "1", 0);
  EXPECT_EQ(worker_->status(), WorkerStatus::stopped);
  start();
  listed({"1"});
  taken("1");
  EXPECT_THAT(jobs_of("work"), ElementsAre("1"));
}

TEST_F(ExternalWorkerTest, ARestartStartsWhenNothingRunsAnyMore) {
  start();
  run_items({"1"});
  worker_->resize(5);
  loop_.run();
  if (lists()) listed({});
  worker_->restart(false);
  loop_.run();
  EXPECT_EQ(worker_->status(), WorkerStatus::restarting);
  EXPECT_EQ(until_poll(), std::nullopt);
  worked("1");
  end("done", "1", 0);
  EXPECT_EQ(worker_->status(), WorkerStatus::running);
  EXPECT_EQ(worker_->concurrency(), 2U);
  EXPECT_EQ(until_poll(), seconds(30));
  EXPECT_TRUE(lists());
  EXPECT_EQ(host_.count_of(EventType::worker_stopped), 0U);
}

TEST_F(ExternalWorkerTest, ARestartOfAStoppedOneIsAStart) {
  worker_->restart(false);
  loop_.run();
  EXPECT_EQ(worker_->status(), WorkerStatus::running);
  EXPECT_TRUE(lists());
}

TEST_F(ExternalWorkerTest, ASecondStopIsNoTrouble) {
  worker_->stop(false);
  EXPECT_EQ(worker_->status(), WorkerStatus::stopped);
  start();
  run_items({"1"});
  worker_->stop(false);
  worker_->stop(false);
  worker_->stop(true);
  loop_.run();
  end("failed", "1", 0);
  EXPECT_EQ(worker_->status(), WorkerStatus::stopped);
}

TEST_F(ExternalWorkerTest, AServerThatStopsTellsNothingAndKeepsTheRecords) {
  start();
  listed({"1", "2"});
  taken("1");
  worker_->shut_down();
  loop_.run();
  EXPECT_THAT(jobs_of("work"), IsEmpty());
  EXPECT_EQ(steps_.started("failed"), 0U);
  EXPECT_THAT(jobs_of("take"), IsEmpty());  // killed with the server
  EXPECT_EQ(host_.records().size(), 2U);
  EXPECT_EQ(until_poll(), std::nullopt);
  EXPECT_THAT(host_.runs, IsEmpty());
  start();
  EXPECT_FALSE(lists());
}

TEST_F(ExternalWorkerTest, AServerThatStopsBetweenTakeAndRunLeavesNoRunOpen) {
  start();
  listed({"1"});
  host_.hold_notes = true;
  taken("1");
  ASSERT_EQ(host_.runs.size(), 1U);
  const auto run = host_.runs.begin()->second;
  worker_->shut_down();
  run->abandon("the server stopped");
  host_.let_notes_go();
  loop_.run();
  EXPECT_THAT(host_.runs, IsEmpty());
  EXPECT_EQ(steps_.started("work"), 0U);
  EXPECT_EQ(host_.records().size(), 1U);
}

}  // namespace
}  // namespace reprise::worker
