// When a worker of an external queue lists it, and how edits change that.
#include "support/external_worker_fixture.h"

namespace reprise::worker {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ExternalWorkerPollTest : public ExternalWorkerFixture {};

// --- When it lists
// ---------------------------------------------------------------------------------

TEST_F(ExternalWorkerPollTest, AStartListsAtOnceAndSetsTheTimer) {
  EXPECT_EQ(until_poll(), std::nullopt);
  start();
  EXPECT_EQ(worker_->status(), WorkerStatus::running);
  EXPECT_TRUE(lists());
  EXPECT_EQ(loop_.timers("queue-poll:").size(), 1U);
  EXPECT_EQ(loop_.timers("queue-poll:")[0].name, kPollTimer);
  EXPECT_EQ(until_poll(), seconds(30));
  EXPECT_EQ(host_.count_of(EventType::worker_started), 1U);
  EXPECT_EQ(worker_->view().next_poll_at, clock_.now() + seconds(30));
}

TEST_F(ExternalWorkerPollTest, TheListKnowsWhoAsks) {
  start();
  const StepId id = steps_.running("list")[0];
  EXPECT_EQ(steps_.variable(id, "REPRISE_QUEUE"), "bugs");
  EXPECT_EQ(steps_.variable(id, "REPRISE_WORKER"), "fixer");
  EXPECT_EQ(steps_.variable(id, "REPRISE_JOB_ID"), std::nullopt);
  EXPECT_EQ(steps_.spec(id).directory, "/project");
}

TEST_F(ExternalWorkerPollTest, ItIsListedEveryPoll) {
  start();
  listed({});
  EXPECT_FALSE(lists());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(until_poll(), seconds(30));
    loop_.advance(seconds(30) - milliseconds(1));
    EXPECT_FALSE(lists());
    loop_.advance(milliseconds(1));
    EXPECT_TRUE(lists());
    EXPECT_EQ(until_poll(), seconds(30));  // armed before anything comes of it
    listed({});
  }
  EXPECT_EQ(host_.counts().polls_succeeded, 4U);
}

TEST_F(ExternalWorkerPollTest, WithoutAPollItIsListedWhenThereIsAReason) {
  make("");
  start();
  listed({});
  EXPECT_EQ(until_poll(), std::nullopt);
  loop_.advance(hours(10));
  EXPECT_EQ(steps_.started("list"), 1U);
  worker_->wake();
  loop_.run();
  EXPECT_TRUE(lists());
}

TEST_F(ExternalWorkerPollTest, ATimerThatFiresWhileAListRunsHasOneMoreFollow) {
  start();
  loop_.advance(seconds(19));  // within the command's timeout
  worker_->wake();
  worker_->wake();
  loop_.run();
  EXPECT_EQ(steps_.started("list"), 1U);
  listed({});
  EXPECT_EQ(steps_.started("list"), 2U);
  listed({});
  EXPECT_EQ(steps_.started("list"), 2U);
}

TEST_F(ExternalWorkerPollTest, AnotherStartWakesItAndReadsTheRunbookAgain) {
  start();
  listed({});
  const int before = host_.refreshes;
  start();
  EXPECT_TRUE(lists());
  EXPECT_EQ(host_.refreshes, before + 1);
}

TEST_F(ExternalWorkerPollTest, AnEndedRunListsAgain) {
  make("30s", 1);
  start();
  run_items({"1"});
  EXPECT_FALSE(lists());
  worked("1");
  EXPECT_FALSE(lists());
  end("done", "1", 0);
  EXPECT_TRUE(lists());
}

TEST_F(ExternalWorkerPollTest, AMissingTimerIsNoError) {
  start();
  loop_.cancel_timer(kPollTimer);
  EXPECT_EQ(worker_->view().next_poll_at, std::nullopt);
  worker_->stop(false);
  loop_.run();
  EXPECT_EQ(worker_->status(), WorkerStatus::stopped);
}

TEST_F(ExternalWorkerPollTest, AStopCancelsTheTimer) {
  start();
  worker_->stop(false);
  loop_.run();
  EXPECT_EQ(until_poll(), std::nullopt);
  EXPECT_EQ(worker_->status(), WorkerStatus::stopped);
  EXPECT_FALSE(lists());  // the list that ran has ended, too
  EXPECT_EQ(steps_.started("take"), 0U);
  EXPECT_EQ(host_.count_of(EventType::worker_stopped), 1U);
  loop_.advance(hours(1));
  EXPECT_EQ(steps_.started("list"), 1U);
}

TEST_F(ExternalWorkerPollTest, AStopEndsTheListAndAStartListsAnew) {
  start();
  worker_->stop(false);
  loop_.run();
  EXPECT_FALSE(lists());
  EXPECT_EQ(worker_->status(), WorkerStatus::stopped);
  start();
  EXPECT_EQ(steps_.running("list").size(), 1U);
  EXPECT_EQ(until_poll(), seconds(30));
  listed({});
  EXPECT_FALSE(lists());
}

// --- Lists that fail
// -------------------------------------------------------------------------------

TEST_F(ExternalWorkerPollTest, AListThatFailsIsTriedAgainLaterAndLater) {
  start();
  for (const int factor : {1, 2, 4, 8, 10, 10}) {
    list_fails();
    EXPECT_EQ(until_poll(), seconds(30) * factor);
    EXPECT_EQ(worker_->status(), WorkerStatus::running);
    loop_.advance(seconds(30) * factor);
    ASSERT_TRUE(lists()) << factor;
  }
  EXPECT_EQ(host_.counts().polls_failed, 6U);
  EXPECT_THAT(worker_->view().last_error, HasSubstr("list: exit code 1: it broke"));
  EXPECT_EQ(host_.states[kQueue].last_error, worker_->view().last_error);
  listed({});
  EXPECT_EQ(until_poll(), seconds(30));
  EXPECT_EQ(worker_->view().last_error, "");
  EXPECT_EQ(host_.states[kQueue].last_error, "");
  loop_.advance(seconds(30));
  list_fails();
  EXPECT_EQ(until_poll(), seconds(30));
}

TEST_F(ExternalWorkerPollTest, OneErrorIsOneWarningAndOneEventHoweverOftenItComes) {
  start();
  for (int i = 0; i < 5; ++i) {
    list_fails();
    loop_.advance(*until_poll());
  }
  EXPECT_EQ(host_.warnings.size(), 1U);
  EXPECT_EQ(host_.count_of(EventType::worker_error), 1U);
}

TEST_F(ExternalWorkerPollTest, NonsenseIsAListThatFailed) {
  start();
  for (const char* output : {"", "no json", "{}", "[{}", "null"}) {
    end("list", "", 0, output);
    EXPECT_NE(until_poll(), std::nullopt) << output;
    EXPECT_THAT(worker_->view().last_error, testing::StartsWith("list: ")) << output;
    loop_.advance(*until_poll());
    ASSERT_TRUE(lists()) << output;
  }
  EXPECT_EQ(host_.counts().polls_failed, 5U);
}

TEST_F(ExternalWorkerPollTest, AListThatCannotBeStartedHasFailed) {
  start();
  steps_.end(steps_.running("list")[0],
             {.kind = StepEnd::Kind::not_started, .code = 0, .detail = "no such directory"});
  loop_.run();
  EXPECT_THAT(worker_->view().last_error, HasSubstr("no such directory"));
  EXPECT_EQ(until_poll(), seconds(30));
}

TEST_F(ExternalWorkerPollTest, AListThatTakesTooLongHasFailed) {
  start();
  loop_.advance(seconds(20));
  EXPECT_FALSE(lists());
  EXPECT_THAT(worker_->view().last_error, HasSubstr("timed out after 20s"));
  EXPECT_EQ(until_poll(), seconds(30));
}

TEST_F(ExternalWorkerPollTest, AListThatPrintsTooMuchHasFailed) {
  start();
  const StepId id = steps_.running("list")[0];
  const std::string mebibyte(1 << 20, ' ');
  for (int i = 0; i < 16; ++i) steps_.say(id, mebibyte);
  loop_.run();
  EXPECT_TRUE(lists());
  steps_.say(id, " ");
  loop_.run();
  EXPECT_FALSE(lists());
  EXPECT_THAT(worker_->view().last_error, HasSubstr("more than 16 MiB"));
}

TEST_F(ExternalWorkerPollTest, AFailingListLeavesRunningItemsAlone) {
  start();
  run_items({"1"});
  loop_.advance(seconds(30));
  list_fails();
  worked("1");
  end("done", "1", 0);
  EXPECT_EQ(worker_->view().succeeded, 1U);
}

// --- Edits
// -----------------------------------------------------------------------------------------

TEST_F(ExternalWorkerPollTest, ANewPollCountsAtOnce) {
  start();
  listed({});
  loop_.advance(seconds(10));
  declare("5s", 2);
  EXPECT_EQ(until_poll(), seconds(5));
  if (lists()) listed({});
  declare("1h", 2);
  EXPECT_EQ(until_poll(), hours(1));
  if (lists()) listed({});
  declare("", 2);
  EXPECT_EQ(until_poll(), std::nullopt);
}

TEST_F(ExternalWorkerPollTest, AnEditThatLeavesThePollAloneDoesNotMoveIt) {
  start();
  listed({});
  loop_.advance(seconds(10));
  declare("30s", 3);
  if (lists()) listed({});
  EXPECT_EQ(until_poll(), seconds(20));
}

TEST_F(ExternalWorkerPollTest, AnEditThatIsReadAtAPollCountsForThatPoll) {
  start();
  listed({});
  host_.on_refresh = [&] {
    host_.on_refresh = nullptr;
    book_ = test::runbook_from(runbook_with("5s", 1), "/project");
    worker_->declare(book_, book_->workers.at("fixer"));
  };
  loop_.advance(seconds(30));
  EXPECT_EQ(until_poll(), seconds(5));
  listed({"1", "2"});
  taken("1");
  EXPECT_THAT(jobs_of("take"), IsEmpty());
  EXPECT_EQ(worker_->concurrency(), 1U);
}

TEST_F(ExternalWorkerPollTest, MoreConcurrencyTakesMoreAtOnce) {
  make("30s", 1);
  start();
  listed({"1", "2", "3"});
  taken("1");
  EXPECT_THAT(jobs_of("take"), IsEmpty());
  declare("30s", 2);
  ASSERT_TRUE(lists());
  listed({"1", "2", "3"});
  taken("2");
  EXPECT_THAT(jobs_of("work"), ElementsAre("1", "2"));
  EXPECT_THAT(jobs_of("take"), IsEmpty());
}

TEST_F(ExternalWorkerPollTest, AResizeCountsUntilTheRunbooksOwnChanges) {
  start();
  run_items({"1", "2"});
  worker_->resize(3);
  loop_.run();
  listed({"1", "2", "3", "4"});
  taken("3");
  EXPECT_EQ(worker_->view().active, 3U);
  EXPECT_THAT(jobs_of("take"), IsEmpty());
  declare("30s", 2);  // the same as before
  EXPECT_EQ(worker_->concurrency(), 3U);
  if (lists()) listed({"4"});
  worker_->resize(1);
  loop_.run();
  if (lists()) listed({"4"});
  EXPECT_EQ(worker_->view().active, 3U);  // they finish
  worked("1");
  end("done", "1", 0);
  listed({"4"});
  EXPECT_THAT(jobs_of("take"), IsEmpty());
  declare("30s", 4);
  EXPECT_EQ(worker_->concurrency(), 4U);
}

TEST_F(ExternalWorkerPollTest, ARunFinishesWithTheStepsItBeganWith) {
  start();
  run_items({"1"});
  std::string edited = runbook_with("30s", 2);
  edited.replace(edited.find("\"work ${item.id}\""), 17, "\"other\"");
  book_ = test::runbook_from(edited, "/project");
  worker_->declare(book_, book_->workers.at("fixer"));
  loop_.run();
  worked("1");
  EXPECT_THAT(jobs_of("done"), ElementsAre("1"));
  listed({"2"});
  taken("2");
  EXPECT_THAT(jobs_of("other"), ElementsAre("2"));
}

}  // namespace
}  // namespace reprise::worker
