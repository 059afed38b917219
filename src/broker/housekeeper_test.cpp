#include "broker/housekeeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/clock.h"
#include "storage/memory/memory_storage.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;

// A whole broker over memory, with a real clock: operations are the work of four threads.
class OperationsTest : public testing::Test {
 protected:
  OperationsTest() { open(); }

  void open() {
    broker_.reset();
    auto opened = Broker::open(*storage_, clock_, random_, {});
    ASSERT_TRUE(opened) << opened.error().detail;
    broker_ = std::move(*opened);
  }
  template <class T, class Call>
  Result<T> call(Call call) {
    auto answer = std::make_shared<std::promise<Result<T>>>();
    call(Done<T>([answer](Result<T> result) { answer->set_value(std::move(result)); }));
    return answer->get_future().get();
  }
  void configure(const QueueConfig& config) {
    ASSERT_TRUE(call<PutQueueReply>([&](auto done) {
      broker_->put_queue({.queue = queue_, .config = config}, done_of(done));
    }));
  }
  // Pushes so many jobs and lets them die.
  void kill_jobs(std::size_t count, const std::string& error = "e") {
    for (std::size_t left = count; left > 0;) {
      const auto batch = static_cast<std::uint32_t>(std::min<std::size_t>(left, 500));
      PushCommand push{.queue = queue_, .create = true};
      for (std::uint32_t i = 0; i < batch; ++i) push.jobs.emplace_back(NewJob{.payload = "1"});
      ASSERT_TRUE(call<PushReply>([&](auto done) { broker_->push(push, done_of(done)); }));
      const auto claimed = call<ClaimReply>(
          [&](auto done) { broker_->claim({.queue = queue_, .max = batch}, done_of(done)); });
      ASSERT_TRUE(claimed);
      std::vector<FailItem> items;
      for (const ClaimedJob& job : claimed->jobs) {
        items.push_back({.token = job.token, .error = error, .final = true});
      }
      ASSERT_TRUE(
          call<ItemResults<Failed>>([&](auto done) { broker_->fail(items, done_of(done)); }));
      left -= batch;
    }
  }
  Operation start(StartOperationCommand command, Duration wait) {
    command.queue = queue_;
    const auto operation =
        call<Operation>([&](auto done) { broker_->start_operation(command, wait, done_of(done)); });
    EXPECT_TRUE(operation) << operation.error().detail;
    return operation ? *operation : Operation{};
  }
  Operation show(OperationId id) {
    return *call<Operation>([&](auto done) { broker_->show_operation(id, done_of(done)); });
  }
  QueueStats stats() {
    return *call<QueueStats>([&](auto done) { broker_->queue_stats(queue_, done_of(done)); });
  }
  std::uint64_t count(JobStatus status) {
    return stats().by_status[static_cast<std::size_t>(status)];
  }
  template <class Condition>
  bool eventually(Condition condition) {
    for (int i = 0; i < 1000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  // Lambdas above take their callback by reference; a Done can only be moved.
  template <class D>
  static D done_of(D& done) {
    return std::move(done);
  }

  const QueueName queue_{.name = "orders"};
  SteadyWallClock clock_{Timestamp{}};
  SystemRandom random_;
  std::unique_ptr<storage::Storage> storage_ = storage::make_memory_storage();
  std::unique_ptr<Broker> broker_;
};

TEST_F(OperationsTest, ARetryOfAllBringsEveryDeadJobBack) {
  kill_jobs(1700);
  const Operation done = start({.kind = OperationKind::retry}, 1min);
  EXPECT_EQ(done.state, OperationState::done);
  EXPECT_EQ(done.done, 1700U);
  EXPECT_EQ(done.total, 1700U);
  EXPECT_EQ(count(JobStatus::dead), 0U);
  EXPECT_EQ(count(JobStatus::pending), 1700U);
}

TEST_F(OperationsTest, ALimitIsKeptToTheJob) {
  kill_jobs(1200);
  const Operation done = start({.kind = OperationKind::purge, .limit = 777}, 1min);
  EXPECT_EQ(done.done, 777U);
  EXPECT_EQ(count(JobStatus::dead), 423U);
  EXPECT_EQ(stats().totals.purged, 777U);
}

TEST_F(OperationsTest, APacedOneAnswersAtOnceAndCanBeCancelled) {
  kill_jobs(100);
  const Operation begun =
      start({.kind = OperationKind::retry, .rate = Rate{.count = 1, .per = 1h}}, 0s);
  EXPECT_EQ(begun.state, OperationState::running);
  ASSERT_TRUE(eventually([&] { return show(begun.id).done == 1; }));
  const auto cancelled = call<Operation>(
      [&](auto done) { broker_->cancel_operation(begun.id, "ops", done_of(done)); });
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->state, OperationState::cancelled);
  EXPECT_EQ(count(JobStatus::dead), 99U);
  const auto again = call<Operation>(
      [&](auto done) { broker_->cancel_operation(begun.id, "ops", done_of(done)); });
  EXPECT_EQ(again.error().code, Errc::wrong_status);
}

TEST_F(OperationsTest, AWaitingCallerHearsOfACancel) {
  kill_jobs(10);
  std::promise<Operation> told;
  broker_->start_operation(
      {.kind = OperationKind::retry, .queue = queue_, .rate = Rate{.count = 1, .per = 1h}}, 1h,
      [&](Result<Operation> result) { told.set_value(*result); });
  ASSERT_TRUE(eventually([&] { return stats().totals.retried == 1; }));
  ASSERT_TRUE(call<Operation>([&](auto done) { broker_->cancel_operation(1, "", done_of(done)); }));
  EXPECT_EQ(told.get_future().get().state, OperationState::cancelled);
}

TEST_F(OperationsTest, GoesOnAfterARestart) {
  kill_jobs(60);
  const Operation begun =
      start({.kind = OperationKind::retry, .rate = Rate{.count = 100, .per = 1s}}, 0s);
  ASSERT_TRUE(eventually([&] { return stats().totals.retried > 5; }));
  open();
  ASSERT_TRUE(eventually([&] { return show(begun.id).state == OperationState::done; }));
  EXPECT_EQ(show(begun.id).done, 60U);
  EXPECT_EQ(stats().totals.retried, 60U);
}

// Who waits when the server stops is told how far it has come.
TEST_F(OperationsTest, AStopAnswersWhoWaits) {
  kill_jobs(10);
  std::promise<Operation> told;
  broker_->start_operation(
      {.kind = OperationKind::purge, .queue = queue_, .rate = Rate{.count = 1, .per = 1h}}, 1h,
      [&](Result<Operation> result) { told.set_value(*result); });
  ASSERT_TRUE(eventually([&] { return stats().totals.purged == 1; }));
  broker_->stop();
  EXPECT_EQ(told.get_future().get().state, OperationState::running);
}

TEST_F(OperationsTest, ADeletedQueueEndsItsOperations) {
  kill_jobs(10);
  const Operation begun =
      start({.kind = OperationKind::retry, .rate = Rate{.count = 1, .per = 1h}}, 0s);
  ASSERT_TRUE(
      call<QueueStats>([&](auto done) { broker_->delete_queue(queue_, "", done_of(done)); }));
  EXPECT_EQ(show(begun.id).state, OperationState::failed);
}

TEST_F(OperationsTest, OldDeadJobsLeaveByThemselves) {
  configure({.keep_dead = 1ms});
  kill_jobs(30);
  ASSERT_TRUE(eventually([&] { return count(JobStatus::dead) == 0; }));
  EXPECT_EQ(stats().totals.dead_expired, 30U);
}

TEST_F(OperationsTest, TheOldestBeyondTheMostLeave) {
  configure({.max_dead = 4});
  kill_jobs(20, "old");
  kill_jobs(4, "new");
  ASSERT_TRUE(eventually([&] { return count(JobStatus::dead) == 4; }));
  EXPECT_EQ(stats().totals.dead_evicted, 20U);
  const auto page = call<BrowsePage>([&](auto done) {
    broker_->browse({.queue = queue_, .filter = {.status = JobStatus::dead}}, done_of(done));
  });
  for (const JobView& job : page->jobs) EXPECT_EQ(job.state->last_error, "new");
}

}  // namespace
}  // namespace reprise
