// A worker of a stored queue with the broker as it is, on memory.
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "base/json_view.h"
#include "storage/memory/memory_storage.h"
#include "support/queue_worker_fixture.h"

namespace reprise::worker {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class QueueWorkerTest : public QueueWorkerFixture {
 protected:
  void SetUp() override {
    broker_ = *Broker::open(*storage_, clock_, random_, {});
    set_up("30s", 2);
  }
  Broker& broker() override { return *broker_; }

  void set_up(const std::string& lease, int concurrency) {
    make(lease, concurrency);
    put_queue();
  }
  void put_queue() {
    ASSERT_TRUE(call<PutQueueReply>([&](auto done) {
                  broker_->put_queue(
                      {.queue = kOrders, .config = *book_->queues.at("orders").persisted()},
                      std::move(done));
                }).has_value());
  }
  template <class T, class Call>
  Result<T> call(const Call& call) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    call(Done<T>([promise](Result<T> result) { promise->set_value(std::move(result)); }));
    return promise->get_future().get();
  }
  std::string push(std::string payload = "{\"id\":1}", PayloadKind kind = PayloadKind::json) {
    PushCommand command{.queue = kOrders};
    command.jobs.emplace_back(
        NewJob{.payload = std::move(payload), .payload_kind = kind, .headers = {{"trace", "t1"}}});
    const auto reply =
        call<PushReply>([&](auto done) { broker_->push(std::move(command), std::move(done)); });
    return encode_job_id(reply->results[0]->seq);
  }
  Result<JobView> job(const std::string& id) {
    return call<JobView>([&](auto done) { broker_->show_job(kOrders, id, std::move(done)); });
  }
  bool job_becomes(const std::string& id, JobStatus status) {
    return eventually([&] {
      const auto view = job(id);
      return view && view->status == status;
    });
  }
  bool job_is_gone(const std::string& id) {
    return eventually([&] { return !job(id).has_value(); });
  }

  const std::unique_ptr<storage::Storage> storage_ = storage::make_memory_storage();
  SeededRandom random_{7};
  std::unique_ptr<Broker> broker_;
};

TEST_F(QueueWorkerTest, APushWakesItAndASuccessIsAnAck) {
  start();
  const std::string id = push();
  steps_.exit(step(id));
  EXPECT_TRUE(job_is_gone(id));
  EXPECT_TRUE(eventually([&] { return view().active == 0; }));
  EXPECT_EQ(view().succeeded, 1U);
  EXPECT_EQ(read([&] { return host_->counts().runs_succeeded; }), 1U);
  EXPECT_TRUE(read([&] { return host_->runs.empty(); }));
}

TEST_F(QueueWorkerTest, ItTakesAsManyAsItHasSlots) {
  for (int i = 0; i < 5; ++i) push();
  start();
  ASSERT_TRUE(runs(2));
  EXPECT_EQ(view().active, 2U);
  const auto stats =
      call<QueueStats>([&](auto done) { broker_->queue_stats(kOrders, std::move(done)); });
  EXPECT_EQ(stats->by_status[static_cast<std::size_t>(JobStatus::active)], 2U);
  for (int i = 0; i < 5; ++i) {
    steps_.exit(step());
    ASSERT_TRUE(eventually([&] { return view().succeeded == std::uint64_t(i) + 1; }));
    EXPECT_LE(steps_.running().size(), 2U);
  }
  EXPECT_EQ(steps_.started(), 5U);
}

TEST_F(QueueWorkerTest, AStepGetsTheJob) {
  start();
  const std::string id = push(R"({"id": 1.0})");
  const std::string text = steps_.spec(step(id)).input;
  const JsonView json(text);
  EXPECT_EQ(json["id"].string_or(""), id);
  EXPECT_EQ(json["namespace"].string_or(""), "shop");
  EXPECT_EQ(json["queue"].string_or(""), "orders");
  EXPECT_EQ(json["attempts"].raw(), "1");
  EXPECT_EQ(json["failures"].raw(), "0");
  EXPECT_EQ(json["headers"]["trace"].string_or(""), "t1");
  EXPECT_EQ(json["payload"].raw(), R"({"id": 1.0})");
  EXPECT_THAT(json["pushed_at"].string_or(""), testing::EndsWith("Z"));
  EXPECT_EQ(steps_.variable(step(id), "REPRISE_ATTEMPTS"), "1");
  EXPECT_EQ(steps_.variable(step(id), "REPRISE_FAILURES"), "0");
}

TEST_F(QueueWorkerTest, BytesAreOnStandardInputAsBase64) {
  start();
  const std::string id = push(std::string("\x00\xff", 2), PayloadKind::bytes);
  const std::string text = steps_.spec(step(id)).input;
  EXPECT_EQ(JsonView(text)["payload_base64"].string_or(""), "AP8=");
  EXPECT_FALSE(JsonView(text)["payload"].present());
}

TEST_F(QueueWorkerTest, AFailureIsToldWithItsErrorAndType) {
  start();
  const std::string id = push();
  steps_.exit(step(id), 3, "", "no such shelf\n");
  ASSERT_TRUE(job_becomes(id, JobStatus::failed));
  const auto state = job(id)->state;
  EXPECT_EQ(state->last_error, "step pick: exit code 3: no such shelf");
  EXPECT_EQ(state->last_error_type, "exit_3");
  EXPECT_EQ(state->failures, 1U);
  EXPECT_EQ(state->history.back().worker, "shipper");
  EXPECT_EQ(state->history.back().outcome, AttemptOutcome::failed);
  EXPECT_EQ(view().last_error, "step pick: exit code 3: no such shelf");
}

TEST_F(QueueWorkerTest, TheRunbookIsReadAgainBeforeAFailureCounts) {
  start();
  const std::string id = push();
  const StepId running = step(id);
  const int before = read([&] { return host_->refreshes; });
  steps_.exit(running, 1);
  ASSERT_TRUE(job_becomes(id, JobStatus::failed));
  EXPECT_EQ(read([&] { return host_->refreshes; }), before + 1);
}

TEST_F(QueueWorkerTest, ACancelledRunIsADeadJob) {
  start();
  const std::string id = push();
  step(id);
  on_loop([&] { host_->runs.begin()->second->cancel(); });
  ASSERT_TRUE(job_becomes(id, JobStatus::dead));
  const auto state = job(id)->state;
  EXPECT_EQ(state->death_reason, DeathReason::final);
  EXPECT_EQ(state->last_error, "cancelled");
  EXPECT_EQ(state->last_error_type, "cancelled");
  EXPECT_EQ(read([&] { return host_->counts().runs_cancelled; }), 1U);
}

TEST_F(QueueWorkerTest, TheLeaseIsExtendedForAsLongAsTheRunTakes) {
  set_up("1s", 1);
  start();
  const std::string id = push();
  step(id);
  const Timestamp first = job(id)->state->lease_deadline;
  // Three leases later it is still the first attempt.
  ASSERT_TRUE(eventually([&] { return job(id)->state->lease_deadline > first + seconds(1); }));
  EXPECT_EQ(job(id)->state->attempts, 1U);
  EXPECT_EQ(steps_.started(), 1U);
  steps_.exit(step(id));
  EXPECT_TRUE(job_is_gone(id));
}

TEST_F(QueueWorkerTest, ALostLeaseEndsTheRunAndReportsNothing) {
  set_up("300ms", 1);
  start();
  const std::string id = push();
  step(id);
  const std::string run = read([&] { return host_->runs.begin()->first; });
  ASSERT_TRUE(call<DroppedJob>([&](auto done) {
                broker_->drop_job(kOrders, id, "", std::move(done));
              }).has_value());
  ASSERT_TRUE(runs(0));
  EXPECT_EQ(steps_.stops().at(0).manner, StopManner::at_once);
  ASSERT_TRUE(eventually([&] { return view().active == 0; }));
  const RunView ended = read([&] { return host_->store().view(run); });
  EXPECT_EQ(ended.status, RunStatus::lost);
  EXPECT_THAT(ended.error, HasSubstr("the lease was lost"));
  EXPECT_EQ(view().failed, 0U);
  EXPECT_EQ(view().last_error, "");
  const std::string next = push();
  step(next);  // the slot is free
}

TEST_F(QueueWorkerTest, AStopFinishesWhatRunsAndTakesNoMore) {
  start();
  const std::string first = push();
  step(first);
  on_loop([&] { worker_->stop(false); });
  EXPECT_EQ(view().status, WorkerStatus::stopping);
  const std::string second = push();
  steps_.exit(step(first));
  ASSERT_TRUE(becomes(WorkerStatus::stopped));
  EXPECT_TRUE(job_is_gone(first));
  EXPECT_EQ(job(second)->status, JobStatus::pending);
  EXPECT_EQ(steps_.started(), 1U);
  start();
  step(second);
}

TEST_F(QueueWorkerTest, AStopNowGivesTheJobsBackUnharmed) {
  start();
  const std::string id = push();
  step(id);
  on_loop([&] { worker_->stop(true); });
  ASSERT_TRUE(becomes(WorkerStatus::stopped));
  ASSERT_TRUE(job_becomes(id, JobStatus::pending));
  EXPECT_EQ(job(id)->state->failures, 0U);
  EXPECT_EQ(read([&] { return host_->counts().runs_lost; }), 1U);
  start();
  steps_.exit(step(id));
  EXPECT_TRUE(job_is_gone(id));
}

TEST_F(QueueWorkerTest, AStopOfAnIdleWorkerIsAtOnceAndItsClaimTakesNothing) {
  start();
  on_loop([&] { worker_->stop(false); });
  EXPECT_EQ(view().status, WorkerStatus::stopped);
  const std::string id = push();
  on_loop([&] { worker_->resize(5); });
  EXPECT_TRUE(job_becomes(id, JobStatus::pending));
  EXPECT_EQ(steps_.started(), 0U);
}

TEST_F(QueueWorkerTest, StartsAndStopsInARowLoseNoJob) {
  for (int i = 0; i < 50; ++i) {
    start();
    on_loop([&] { worker_->stop(false); });
  }
  std::vector<std::string> ids;
  for (int i = 0; i < 10; ++i) ids.push_back(push());
  for (int i = 0; i < 20; ++i) {
    start();
    on_loop([&] { worker_->stop(true); });
  }
  start();
  for (int i = 0; i < 10; ++i) {
    steps_.exit(step());
    ASSERT_TRUE(eventually([&] { return view().succeeded == std::uint64_t(i) + 1; }));
  }
  for (const std::string& id : ids) EXPECT_TRUE(job_is_gone(id));
}

TEST_F(QueueWorkerTest, ARestartWaitsForWhatRuns) {
  start();
  const std::string id = push();
  step(id);
  on_loop([&] {
    worker_->resize(7);
    worker_->restart(false);
  });
  EXPECT_EQ(view().status, WorkerStatus::restarting);
  steps_.exit(step(id));
  ASSERT_TRUE(becomes(WorkerStatus::running));
  EXPECT_EQ(view().concurrency, 2U);
  step(push());
}

TEST_F(QueueWorkerTest, AResizeCountsAtOnce) {
  for (int i = 0; i < 6; ++i) push();
  start();
  ASSERT_TRUE(runs(2));
  on_loop([&] { worker_->resize(4); });
  ASSERT_TRUE(runs(4));
  on_loop([&] { worker_->resize(1); });
  steps_.exit(step());
  ASSERT_TRUE(eventually([&] { return view().active == 3; }));
  EXPECT_EQ(steps_.started(), 4U);
}

TEST_F(QueueWorkerTest, AQueueThatIsGoneIsDeclaredAgain) {
  ASSERT_TRUE(call<QueueStats>([&](auto done) {
                broker_->delete_queue(kOrders, "", std::move(done));
              }).has_value());
  start();
  ASSERT_TRUE(eventually([&] { return read([&] { return !host_->redeclared.empty(); }); }));
  EXPECT_THAT(view().last_error, HasSubstr("cannot claim"));
  put_queue();
  const std::string id = push();
  steps_.exit(step(id));
  EXPECT_TRUE(job_is_gone(id));
}

TEST_F(QueueWorkerTest, AJobWhoseRunCannotBeRecordedWaitsALittle) {
  std::filesystem::remove_all(host_->directory / "runs");
  start();
  const std::string id = push();
  // Not claimed again and again.
  ASSERT_TRUE(job_becomes(id, JobStatus::scheduled));
  EXPECT_EQ(job(id)->state->failures, 0U);
  EXPECT_THAT(view().last_error, HasSubstr("no run can be begun"));
  std::filesystem::create_directory(host_->directory / "runs");
  steps_.exit(step(id));
  EXPECT_TRUE(job_is_gone(id));
}

TEST_F(QueueWorkerTest, AServerThatStopsGivesTheJobsBack) {
  start();
  const std::string id = push();
  step(id);
  on_loop([&] { worker_->shut_down(); });
  ASSERT_TRUE(job_becomes(id, JobStatus::pending));
  EXPECT_EQ(job(id)->state->failures, 0U);
  EXPECT_TRUE(eventually([&] { return read([&] { return host_->runs.empty(); }); }));
}

}  // namespace
}  // namespace reprise::worker
