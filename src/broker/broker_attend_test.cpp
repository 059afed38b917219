// Threads that attend to the broker: they do what is in line themselves when the engine rests.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "broker/broker.h"
#include "support/gated_storage.h"

namespace reprise {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Takes the replies of one session and remembers on which threads they came.
class Replies final : public session::Sink {
 public:
  void deliver(std::vector<session::Reply> replies) override {
    const std::lock_guard lock(mutex_);
    last_thread_ = std::this_thread::get_id();
    for (session::Reply& reply : replies) {
      count_ += std::holds_alternative<session::PutDone>(reply)
                    ? std::get<session::PutDone>(reply).results.size()
                    : 1;
      last_ = std::move(reply);
    }
    changed_.notify_all();
  }
  bool wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, seconds(20), [&] { return count_ >= count; });
  }
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  std::thread::id last_thread() const {
    const std::lock_guard lock(mutex_);
    return last_thread_;
  }
  session::Reply last() const {
    const std::lock_guard lock(mutex_);
    return last_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t count_ = 0;
  std::thread::id last_thread_;
  session::Reply last_;
};

class BrokerAttendTest : public ::testing::TestWithParam<DurabilityMode> {
 protected:
  struct Client {
    SessionId session{};
    std::shared_ptr<Replies> replies;
  };

  void SetUp() override {
    options.durability = GetParam();
    options.sync_interval = milliseconds(20);
    options.on_fatal = [this](const Error&) { fatal = true; };
    broker = *Broker::open(storage, clock, random, options);
    first = client();
    submit(first, session::UseQueue{"orders"});
    broker->attend();
    ASSERT_TRUE(first.replies->wait_for(1));
  }
  void TearDown() override { storage.let_go(); }

  Client client() {
    Client made{.replies = std::make_shared<Replies>()};
    made.session = broker->open_session({.worker = "tester", .sink = made.replies});
    return made;
  }
  void submit(const Client& by, session::Command command) {
    std::vector<session::Command> commands;
    commands.push_back(std::move(command));
    ASSERT_TRUE(broker->submit(by.session, commands).has_value());
  }
  static session::Put put(std::size_t jobs = 1) {
    session::Put command{.queue = "orders"};
    for (std::size_t i = 0; i < jobs; ++i) command.jobs.emplace_back(NewJob{.payload = "1"});
    return command;
  }
  // The engine's thread may be awake for something of its own, and the committer's may be syncing:
  // then they do what is in line.
  static bool happens_in_time(const std::function<bool()>& attempt) {
    for (int i = 0; i < 1000; ++i) {
      if (attempt()) return true;
    }
    return false;
  }

  test::GatedStorage storage;
  SteadyWallClock clock;
  SeededRandom random{7};
  BrokerOptions options;
  std::atomic<bool> fatal{false};
  std::unique_ptr<Broker> broker;
  Client first;
};

std::string mode_name(const ::testing::TestParamInfo<DurabilityMode>& mode) {
  return std::string(durability_mode_name(mode.param));
}
INSTANTIATE_TEST_SUITE_P(Modes, BrokerAttendTest,
                         ::testing::Values(DurabilityMode::sync, DurabilityMode::interval,
                                           DurabilityMode::none),
                         mode_name);

// The only mode in which somebody syncs later.
class SyncLaterTest : public BrokerAttendTest {};
INSTANTIATE_TEST_SUITE_P(Modes, SyncLaterTest, ::testing::Values(DurabilityMode::interval),
                         mode_name);

TEST_P(BrokerAttendTest, WhoIsAloneIsAnsweredBeforeItReturns) {
  EXPECT_TRUE(happens_in_time([&] {
    const int commits = storage.commits();
    const std::size_t before = first.replies->count();
    submit(first, put());
    broker->attend();
    EXPECT_TRUE(first.replies->wait_for(before + 1));
    EXPECT_EQ(storage.commits(), commits + 1);
    return first.replies->last_thread() == std::this_thread::get_id();
  }));
}

TEST_P(BrokerAttendTest, AClaimThatWaitsDoesNotDelayWhatFollows) {
  const Client second = client();
  EXPECT_TRUE(happens_in_time([&] {
    const std::size_t taken = second.replies->count();
    submit(second, session::Reserve{.queues = std::make_shared<const std::vector<std::string>>(
                                        std::vector<std::string>{"orders"})});
    broker->attend();
    const std::size_t before = first.replies->count();
    submit(first, put());
    broker->attend();
    EXPECT_TRUE(first.replies->wait_for(before + 1));
    EXPECT_TRUE(second.replies->wait_for(taken + 1)) << "the push answers the claim";
    return first.replies->last_thread() == std::this_thread::get_id() &&
           second.replies->last_thread() == std::this_thread::get_id();
  }));
}

TEST_P(BrokerAttendTest, MuchIsLeftToTheBrokersOwnThreads) {
  const std::size_t before = first.replies->count();
  for (int i = 0; i < 100; ++i) submit(first, put());
  broker->attend();
  ASSERT_TRUE(first.replies->wait_for(before + 100));
  EXPECT_NE(first.replies->last_thread(), std::this_thread::get_id());
}

// The engine's thread sleeps as if nothing had an end; what is attended to may have one.
TEST_P(BrokerAttendTest, ATimeThatWasSetHereIsKept) {
  const std::size_t before = first.replies->count();
  submit(first, session::Reserve{.queues = std::make_shared<const std::vector<std::string>>(
                                     std::vector<std::string>{"orders"}),
                                 .wait = milliseconds(30)});
  broker->attend();
  ASSERT_TRUE(first.replies->wait_for(before + 1));
  const session::Reply last = first.replies->last();
  const auto* missed = std::get_if<session::NotReserved>(&last);
  ASSERT_NE(missed, nullptr);
  EXPECT_EQ(missed->why, session::Why::timed_out);
}

TEST_P(SyncLaterTest, WhatWasWrittenHereIsSyncedInTime) {
  const int syncs = storage.syncs();
  submit(first, put());
  broker->attend();
  const auto deadline = std::chrono::steady_clock::now() + seconds(20);
  while (storage.syncs() == syncs && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_GT(storage.syncs(), syncs);
}

TEST_P(BrokerAttendTest, AFailedCommitAnswersNobodyAndStopsTheBroker) {
  const std::size_t before = first.replies->count();
  storage.fail_commits();
  submit(first, put());
  broker->attend();
  const auto deadline = std::chrono::steady_clock::now() + seconds(20);
  while (!fatal && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_TRUE(fatal);
  EXPECT_EQ(first.replies->count(), before);
  std::vector<session::Command> commands;
  commands.emplace_back(put());
  const Status refused = broker->submit(first.session, commands);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::shutting_down);
  broker->attend();
  broker->stop();
}

TEST_P(BrokerAttendTest, StoppingWaitsForWhoeverIsAtIt) {
  storage.hold();
  const std::size_t before = first.replies->count();
  std::thread attending([&] {
    submit(first, put());
    broker->attend();
  });
  storage.wait_for_commit_at_gate();
  std::thread stopping([&] { broker->stop(); });
  storage.let_go();
  attending.join();
  stopping.join();
  EXPECT_EQ(first.replies->count(), before + 1);
}

TEST_P(BrokerAttendTest, ManyThreadsAtOnceLoseNothing) {
  constexpr int kThreads = 4;
  constexpr std::size_t kPuts = 300;
  std::vector<Client> clients;
  for (int i = 0; i < kThreads; ++i) clients.push_back(client());
  std::vector<std::thread> threads;
  for (const Client& by : clients) {
    threads.emplace_back([this, &by] {
      for (std::size_t i = 1; i <= kPuts; ++i) {
        submit(by, put());
        broker->attend();
        ASSERT_TRUE(by.replies->wait_for(i));
      }
    });
  }
  // And one that knows nothing of attending.
  std::atomic<int> pushed{0};
  for (std::size_t i = 0; i < kPuts; ++i) {
    PushCommand command{.queue = {.name = "orders"}};
    command.jobs.emplace_back(NewJob{.payload = "2"});
    std::promise<void> done;
    broker->push(std::move(command), [&](const Result<PushReply>& reply) {
      if (reply) ++pushed;
      done.set_value();
    });
    done.get_future().wait();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pushed, static_cast<int>(kPuts));
  std::promise<QueueStats> stats;
  broker->queue_stats({.name = "orders"},
                      [&](Result<QueueStats> found) { stats.set_value(std::move(*found)); });
  EXPECT_EQ(stats.get_future().get().totals.pushed, (kThreads + 1) * kPuts);
}

}  // namespace
}  // namespace reprise
