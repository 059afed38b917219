#include "worker/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace reprise::worker {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

class ThreadLoopTest : public testing::Test {
 protected:
  // Runs it on the loop, and waits for that.
  template <class Call>
  auto on_loop(Call call) {
    std::promise<decltype(call())> promise;
    auto future = promise.get_future();
    loop_.post([&] { promise.set_value(call()); });
    return future.get();
  }

  SteadyWallClock clock_;
  ThreadLoop loop_{clock_};
};

TEST_F(ThreadLoopTest, RunsWhatIsPostedInOrderOnOneThreadOfItsOwn) {
  std::vector<int> order;
  std::set<std::thread::id> threads;
  for (int i = 0; i < 1000; ++i) {
    loop_.post([&, i] {
      order.push_back(i);
      threads.insert(std::this_thread::get_id());
    });
  }
  on_loop([] { return 0; });
  EXPECT_EQ(order.size(), 1000U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_EQ(threads.size(), 1U);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST_F(ThreadLoopTest, WhatATaskPostsComesAfterWhatWasThere) {
  std::vector<int> order;
  std::promise<void> done;
  // From a task, so that the loop cannot run one of the two before the other is there.
  loop_.post([&] {
    loop_.post([&] {
      loop_.post([&] {
        order.push_back(3);
        done.set_value();
      });
      order.push_back(1);
    });
    loop_.post([&] { order.push_back(2); });
  });
  done.get_future().get();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST_F(ThreadLoopTest, FiresTimersInTheOrderOfTimesAndNotTooEarly) {
  std::vector<std::string> order;
  std::promise<void> done;
  Timestamp begun{};
  Timestamp fired{};
  loop_.post([&] {
    begun = loop_.now();
    loop_.after("b", milliseconds(20), [&] {
      order.emplace_back("b");
      fired = loop_.now();
      done.set_value();
    });
    loop_.after("a", milliseconds(10), [&] { order.emplace_back("a"); });
  });
  done.get_future().get();
  EXPECT_THAT(order, ElementsAre("a", "b"));
  EXPECT_GE(fired - begun, milliseconds(20));
}

TEST_F(ThreadLoopTest, APostWakesALoopThatWaitsForATimer) {
  on_loop([&] {
    loop_.after("far", hours(1), [] {});
    return 0;
  });
  EXPECT_EQ(on_loop([] { return 7; }), 7);
}

TEST_F(ThreadLoopTest, ATimerFarInTheFutureIsNoTrouble) {
  on_loop([&] {
    loop_.set_timer("never", kNever, [] { ADD_FAILURE(); });
    loop_.after("long", Duration::max(), [] { ADD_FAILURE(); });
    return 0;
  });
  EXPECT_EQ(on_loop([&] { return loop_.timers("").size(); }), 2U);
}

TEST_F(ThreadLoopTest, AMovedTimerFiresOnceAndACancelledOneNever) {
  std::vector<std::string> order;
  std::promise<void> done;
  loop_.post([&] {
    loop_.after("moved", Duration::zero(), [&] { order.emplace_back("old"); });
    loop_.after("cancelled", Duration::zero(), [&] { order.emplace_back("cancelled"); });
    loop_.after("moved", milliseconds(5), [&] {
      order.emplace_back("new");
      done.set_value();
    });
    loop_.cancel_timer("cancelled");
    loop_.cancel_timer("not there");
  });
  done.get_future().get();
  EXPECT_THAT(order, ElementsAre("new"));
}

TEST_F(ThreadLoopTest, ListsItsTimers) {
  const auto timers = on_loop([&] {
    loop_.set_timer("queue-poll:b", kNever, [] {});
    loop_.set_timer("queue-poll:a", kNever, [] {});
    loop_.set_timer("other", kNever, [] {});
    return loop_.timers("queue-poll:");
  });
  EXPECT_EQ(timers,
            (std::vector<TimerTable::Entry>{{"queue-poll:a", kNever}, {"queue-poll:b", kNever}}));
}

TEST_F(ThreadLoopTest, ATimerThatIsAlwaysDueStarvesNoPost) {
  std::atomic<bool> stop = false;
  std::function<void()> again = [&] {
    if (!stop) loop_.after("busy", Duration::zero(), again);
  };
  loop_.post([&] { again(); });
  EXPECT_EQ(on_loop([] { return 1; }), 1);
  stop = true;
  loop_.stop();  // before what the timer calls is gone
}

TEST_F(ThreadLoopTest, StopRunsWhatWasPostedBeforeAndForgetsTheTimers) {
  std::promise<void> gate;
  std::atomic<int> ran = 0;
  auto kept = std::make_shared<int>(1);
  loop_.post([&, opened = gate.get_future().share()] { opened.wait(); });
  loop_.post([this, kept] { loop_.after("far", hours(1), [kept] { ADD_FAILURE(); }); });
  for (int i = 0; i < 10; ++i) loop_.post([&] { ++ran; });
  std::thread stopper([&] { loop_.stop(); });
  gate.set_value();
  stopper.join();
  EXPECT_EQ(ran, 10);
  EXPECT_EQ(kept.use_count(), 1);  // nobody holds on to what timers held
}

TEST_F(ThreadLoopTest, PostsAfterStopAreDropped) {
  loop_.stop();
  auto kept = std::make_shared<int>(1);
  loop_.post([kept] { ADD_FAILURE(); });
  loop_.stop();
  EXPECT_EQ(kept.use_count(), 1);
}

TEST_F(ThreadLoopTest, StopDoesNotWaitForATimer) {
  const auto begun = std::chrono::steady_clock::now();
  on_loop([&] {
    loop_.after("far", hours(1), [] { ADD_FAILURE(); });
    return 0;
  });
  loop_.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(60));
}

}  // namespace
}  // namespace reprise::worker
