#include "hooks/call_watch.h"

#include <gtest/gtest.h>

namespace reprise::hooks {
namespace {

using namespace std::chrono_literals;

constexpr Steady kStart{1000s};
RunningCall call(std::uint32_t place, Steady started) {
  return {.batch = 1, .place = place, .started = started};
}

class CallWatchTest : public testing::Test {
 protected:
  CallWatchTest() { watch.begin(kStart, 5ms); }
  CallWatch watch{10ms};
};

TEST_F(CallWatchTest, LooksAgainWhenTheCallWouldBeOverdue) {
  const auto verdict = watch.look(call(0, kStart + 3ms), kStart + 10ms, 12ms);
  EXPECT_FALSE(verdict.overdue);
  EXPECT_EQ(verdict.look_again, kStart + 13ms);
}

TEST_F(CallWatchTest, WithoutACallNoneCanBeOverdueBeforeATimeout) {
  const auto verdict = watch.look(std::nullopt, kStart + 10ms, 5ms);
  EXPECT_FALSE(verdict.overdue);
  EXPECT_EQ(verdict.look_again, kStart + 20ms);
}

TEST_F(CallWatchTest, ABusyCallIsOverdueAtItsTimeout) {
  watch.look(call(0, kStart), kStart + 2ms, 7ms);
  EXPECT_TRUE(watch.look(call(0, kStart), kStart + 10ms, 14ms).overdue);
}

TEST_F(CallWatchTest, AStarvedCallGetsTwiceItsTime) {
  const auto verdict = watch.look(call(0, kStart), kStart + 10ms, 9ms);
  EXPECT_FALSE(verdict.overdue);
  EXPECT_EQ(verdict.look_again, kStart + 20ms);
  EXPECT_TRUE(watch.look(call(0, kStart), kStart + 20ms, 9ms).overdue);
}

TEST_F(CallWatchTest, ACallFirstSeenLateIsJudgedByAllItUsed) {
  // Others ran for 8 ms before it; it is seen when it is nearly over.
  watch.look(call(3, kStart + 8ms), kStart + 17ms, 22ms);
  EXPECT_TRUE(watch.look(call(3, kStart + 8ms), kStart + 18ms, 23ms).overdue);
}

TEST_F(CallWatchTest, WhatRanBeforeDoesNotCountAgainstACall) {
  // 8 ms of processor time before it, 2 ms in it.
  EXPECT_FALSE(watch.look(call(3, kStart + 8ms), kStart + 18ms, 15ms).overdue);
}

TEST_F(CallWatchTest, EachCallHasItsOwnTime) {
  watch.look(call(0, kStart), kStart + 9ms, 14ms);
  const auto verdict = watch.look(call(1, kStart + 9ms), kStart + 10ms, 15ms);
  EXPECT_FALSE(verdict.overdue);
  EXPECT_EQ(verdict.look_again, kStart + 19ms);
}

TEST_F(CallWatchTest, ACallFromTheFutureBeganJustNow) {
  const auto verdict = watch.look(call(0, kStart + 1h), kStart + 5ms, 9ms);
  EXPECT_FALSE(verdict.overdue);
  EXPECT_EQ(verdict.look_again, kStart + 15ms);
}

}  // namespace
}  // namespace reprise::hooks
