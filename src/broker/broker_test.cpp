// The broker with its real threads, on a storage whose commits the test holds in its hand.
#include "broker/broker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>

#include "support/gated_storage.h"

namespace reprise {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const QueueName kQueue{.name = "orders"};

// Waits as long as it takes, within reason.
template <class Condition>
bool eventually(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

template <class T>
bool is_ready(const std::future<T>& future) {
  return future.wait_for(seconds(0)) == std::future_status::ready;
}

class BrokerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options.on_fatal = [this](const Error& error) {
      fatal_detail = error.detail;
      fatal = true;
    };
    open();
    ASSERT_TRUE(call<PutQueueReply>([&](auto done) {
                  broker->put_queue({.queue = kQueue}, std::move(done));
                }).has_value());
  }
  void TearDown() override { storage.let_go(); }

  void open() {
    broker.reset();
    broker = *Broker::open(storage, clock, random, options);
  }

  // A broker call as a future.
  template <class T, class Call>
  std::future<Result<T>> start(const Call& call) {
    auto promise = std::make_shared<std::promise<Result<T>>>();
    call(Done<T>([promise](Result<T> result) { promise->set_value(std::move(result)); }));
    return promise->get_future();
  }
  template <class T, class Call>
  Result<T> call(const Call& call) {
    return start<T>(call).get();
  }

  static PushCommand one_job(std::string payload = "1") {
    PushCommand command{.queue = kQueue};
    command.jobs.emplace_back(NewJob{.payload = std::move(payload)});
    return command;
  }
  std::future<Result<PushReply>> start_push(std::string payload = "1") {
    return start<PushReply>(
        [&](auto done) { broker->push(one_job(std::move(payload)), std::move(done)); });
  }
  std::future<Result<ClaimReply>> start_claim(Duration wait, ClaimId* id = nullptr) {
    return start<ClaimReply>([&](auto done) {
      const ClaimId given = broker->claim({.queue = kQueue, .wait = wait}, std::move(done));
      if (id != nullptr) *id = given;
    });
  }
  QueueStats stats() {
    return *call<QueueStats>([&](auto done) { broker->queue_stats(kQueue, std::move(done)); });
  }
  Result<Acked> ack(LeaseToken token) {
    return (*call<ItemResults<Acked>>(
        [&](auto done) { broker->ack({AckItem{token}}, std::move(done)); }))[0];
  }

  test::GatedStorage storage;
  SteadyWallClock clock;
  SeededRandom random{7};
  BrokerOptions options;
  std::atomic<bool> fatal{false};
  std::string fatal_detail;
  std::unique_ptr<Broker> broker;
};

TEST_F(BrokerTest, AReplyLeavesOnlyAfterItsCommit) {
  storage.hold();
  auto pushed = start_push();
  storage.wait_for_commit_at_gate();
  EXPECT_FALSE(is_ready(pushed));
  storage.let_go();
  EXPECT_TRUE(pushed.get()->results[0].has_value());
}

TEST_F(BrokerTest, WhatArrivesDuringACommitBecomesOneBatch) {
  const int before = storage.commits();
  storage.hold();
  auto first = start_push();
  storage.wait_for_commit_at_gate();
  std::vector<std::future<Result<PushReply>>> rest;
  for (int i = 0; i < 100; ++i) rest.push_back(start_push());
  storage.let_go();
  for (auto& pushed : rest) EXPECT_TRUE(pushed.get().has_value());
  EXPECT_EQ(storage.commits() - before, 2);
  EXPECT_EQ(stats().by_status[static_cast<std::size_t>(JobStatus::pending)], 101U);
}

TEST_F(BrokerTest, RepliesLeaveInTheOrderOfTheCommands) {
  std::vector<int> order;
  std::atomic<int> replies{0};
  storage.hold();
  for (int i = 0; i < 50; ++i) {
    broker->push(one_job(), [&order, &replies, i](const Result<PushReply>&) {
      order.push_back(i);
      ++replies;
    });
  }
  storage.let_go();
  ASSERT_TRUE(eventually([&] { return replies == 50; }));
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST_F(BrokerTest, AFailedCommitAnswersNobodyAndStopsTheBroker) {
  std::atomic<bool> answered{false};
  storage.hold();
  broker->push(one_job(), [&](const Result<PushReply>&) { answered = true; });
  storage.wait_for_commit_at_gate();
  storage.fail_commits();
  storage.let_go();
  ASSERT_TRUE(eventually([&] { return fatal.load(); }));
  EXPECT_EQ(fatal_detail, "planted failure");
  EXPECT_EQ(start_push().get().error().code, Errc::shutting_down);
  broker->stop();
  EXPECT_FALSE(answered);
  EXPECT_EQ(storage.syncs(), 0);
  broker.reset();
}

TEST_F(BrokerTest, AWaitingClaimIsServedByAPush) {
  auto claimed = start_claim(seconds(60));
  ASSERT_TRUE(eventually([&] { return stats().waiting_claims == 1; }));
  start_push("42").get().value();
  EXPECT_EQ(claimed.get()->jobs.at(0).record->payload, "42");
}

TEST_F(BrokerTest, AWaitingClaimTimesOutEmpty) {
  EXPECT_TRUE(start_claim(milliseconds(20)).get()->jobs.empty());
}

TEST_F(BrokerTest, ACancelledClaimEndsEmptyAndTakesNoJob) {
  ClaimId id = 0;
  auto claimed = start_claim(seconds(60), &id);
  broker->cancel_claim(id);
  EXPECT_TRUE(claimed.get()->jobs.empty());
  start_push().get().value();
  EXPECT_EQ(stats().by_status[static_cast<std::size_t>(JobStatus::pending)], 1U);
}

TEST_F(BrokerTest, ALeaseExpiresByItself) {
  start_push().get().value();
  const auto claimed = call<ClaimReply>([&](auto done) {
    broker->claim({.queue = kQueue, .lease = milliseconds(100)}, std::move(done));
  });
  ASSERT_TRUE(eventually([&] { return stats().totals.lease_expired == 1; }));
  EXPECT_EQ(ack(claimed->jobs.at(0).token).error().code, Errc::lease_lost);
}

TEST_F(BrokerTest, StopAnswersWaitingClaimsAndCommitsWhatWasAccepted) {
  auto claimed = start_claim(seconds(60));
  auto pushed = start_push();
  broker->stop();
  EXPECT_TRUE(pushed.get().has_value());
  EXPECT_TRUE(claimed.get().has_value());
  EXPECT_EQ(start_push().get().error().code, Errc::shutting_down);
}

TEST_F(BrokerTest, LeasesHoldAcrossARestart) {
  start_push().get().value();
  const LeaseToken token = start_claim({}).get()->jobs.at(0).token;
  open();
  EXPECT_TRUE(start_claim({}).get()->jobs.empty());
  EXPECT_TRUE(ack(token).has_value());
  EXPECT_EQ(ack(token).error().code, Errc::lease_lost);
}

TEST_F(BrokerTest, PushesAreRefusedWhileTheDiskIsLowAndResumeByThemselves) {
  std::atomic<std::uint64_t> free_bytes{1000};
  options.free_disk_bytes = [&] { return free_bytes.load(); };
  options.disk_reserve_bytes = 500;
  open();
  start_push().get().value();
  free_bytes = 499;
  const auto refused = [&] {
    const auto result = start_push().get()->results[0];
    return !result && result.error().code == Errc::disk_full;
  };
  ASSERT_TRUE(eventually(refused));
  EXPECT_TRUE(broker->disk_low());
  const auto claimed = start_claim({}).get();
  EXPECT_TRUE(ack(claimed->jobs.at(0).token).has_value());
  free_bytes = 1000;
  EXPECT_TRUE(eventually([&] { return !refused(); }));
}

TEST_F(BrokerTest, IntervalModeAnswersBeforeTheSyncAndSyncsByItself) {
  options.durability = DurabilityMode::interval;
  options.sync_interval = milliseconds(5);
  open();
  start_push().get().value();
  EXPECT_TRUE(eventually([&] { return storage.syncs() > 0; }));
}

TEST_F(BrokerTest, AFailedSyncIsFatalAndNeverRetried) {
  options.durability = DurabilityMode::interval;
  open();
  const int before = storage.syncs();
  storage.fail_syncs();
  start_push().get().value();
  EXPECT_TRUE(eventually([&] { return fatal.load(); }));
  broker->stop();
  EXPECT_EQ(storage.syncs(), before + 1);
  broker.reset();
}

TEST_F(BrokerTest, NoneModeSyncsAtTheEnd) {
  options.durability = DurabilityMode::none;
  open();
  const int before = storage.syncs();
  start_push().get().value();
  broker->stop();
  EXPECT_EQ(storage.syncs(), before + 1);
}

TEST_F(BrokerTest, CommandsBeyondTheLimitAreRefusedAtOnce) {
  options.max_queued_bytes = 10'000;
  open();
  const auto refused = start_push(std::string(20'000, 'x')).get();
  EXPECT_EQ(refused.error().code, Errc::overloaded);
}

TEST_F(BrokerTest, DroppingByPrefixAndBrowsing) {
  const Seq seq = start_push("7").get()->results[0]->seq;
  const std::string prefix = encode_job_id(seq).substr(0, 8);
  const auto shown =
      call<JobView>([&](auto done) { broker->show_job(kQueue, prefix, std::move(done)); });
  EXPECT_EQ(shown->record->payload, "7");
  const auto page =
      call<BrowsePage>([&](auto done) { broker->browse({.queue = kQueue}, std::move(done)); });
  EXPECT_EQ(page->jobs.size(), 1U);
  const auto dropped =
      call<DroppedJob>([&](auto done) { broker->drop_job(kQueue, prefix, "", std::move(done)); });
  EXPECT_EQ(dropped->status, JobStatus::pending);
  const auto again =
      call<DroppedJob>([&](auto done) { broker->drop_job(kQueue, prefix, "", std::move(done)); });
  EXPECT_EQ(again.error().code, Errc::job_not_found);
}

TEST_F(BrokerTest, DeletingAQueueReclaimsItsSpace) {
  start_push().get().value();
  const auto deleted =
      call<QueueStats>([&](auto done) { broker->delete_queue(kQueue, "", std::move(done)); });
  EXPECT_EQ(deleted->by_status[static_cast<std::size_t>(JobStatus::pending)], 1U);
  EXPECT_TRUE(
      eventually([&] { return storage.reclaims() == std::ssize(storage::kQueueKeyspaces); }));
}

TEST_F(BrokerTest, OneBackupAtATimeAndEachIsTold) {
  std::vector<std::pair<std::string, bool>> told;
  options.on_backup = [&](const BackupCommand& command, const Result<BackupReply>& reply) {
    told.emplace_back(command.directory, reply.has_value());
  };
  open();
  storage.hold_backups();
  auto first = start<BackupReply>([&](auto done) { broker->backup({"/a"}, std::move(done)); });
  const auto second =
      call<BackupReply>([&](auto done) { broker->backup({"/b"}, std::move(done)); });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::backup_running);
  EXPECT_FALSE(is_ready(first));
  storage.let_backups_go();
  const auto reply = first.get();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->directory, "/a");
  EXPECT_EQ(reply->bytes, 42U);
  EXPECT_TRUE(call<BackupReply>([&](auto done) { broker->backup({"/b"}, std::move(done)); }));
  EXPECT_EQ(told, (std::vector<std::pair<std::string, bool>>{{"/a", true}, {"/b", true}}));
  broker->stop();
  const auto late = call<BackupReply>([&](auto done) { broker->backup({"/c"}, std::move(done)); });
  EXPECT_EQ(late.error().code, Errc::shutting_down);
}

TEST_F(BrokerTest, EventsArePublishedAfterTheCommit) {
  const auto subscription = broker->events().subscribe([] {});
  storage.hold();
  auto pushed = start_push();
  storage.wait_for_commit_at_gate();
  EXPECT_TRUE(subscription->take().events.empty());
  storage.let_go();
  pushed.get().value();
  EXPECT_TRUE(eventually([&] { return subscription->take().events.size() == 1; }));
}

TEST_F(BrokerTest, ManyThreadsPushAndFinishEveryJobOnce) {
  constexpr int kThreads = 4;
  constexpr int kJobs = 200;
  std::vector<std::thread> threads;
  std::atomic<int> acked{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kJobs; ++i) {
        start_push().get().value();
        const auto claimed = start_claim(seconds(20)).get();
        for (const ClaimedJob& job : claimed->jobs) {
          if (ack(job.token)) ++acked;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(acked, kThreads * kJobs);
  EXPECT_EQ(stats().totals.completed, static_cast<std::uint64_t>(kThreads * kJobs));
}

}  // namespace
}  // namespace reprise
