#include "worker/poll_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace reprise::worker {
namespace {

using std::chrono::seconds;

TEST(PollPlan, ListsAtOnceWhenAsked) {
  PollPlan plan;
  EXPECT_FALSE(plan.running());
  EXPECT_TRUE(plan.request(PollReason::asked));
  EXPECT_TRUE(plan.running());
  EXPECT_FALSE(plan.finished());
  EXPECT_FALSE(plan.running());
}

TEST(PollPlan, NeverRunsTwoListsAndOneFollowsForAllThatAskedMeanwhile) {
  PollPlan plan;
  ASSERT_TRUE(plan.request(PollReason::due));
  EXPECT_FALSE(plan.request(PollReason::asked));
  EXPECT_FALSE(plan.request(PollReason::due));
  EXPECT_FALSE(plan.request(PollReason::freed));
  EXPECT_TRUE(plan.finished());  // begins the one that follows
  EXPECT_TRUE(plan.running());
  EXPECT_FALSE(plan.request(PollReason::freed));
  EXPECT_TRUE(plan.finished());
  EXPECT_FALSE(plan.finished());
  EXPECT_TRUE(plan.request(PollReason::freed));
}

TEST(PollPlan, TheBestReasonThatCameMeanwhileCounts) {
  PollPlan plan;
  ASSERT_TRUE(plan.request(PollReason::due));
  plan.leave_alone("7");
  EXPECT_FALSE(plan.request(PollReason::freed));
  EXPECT_FALSE(plan.request(PollReason::due));
  EXPECT_FALSE(plan.request(PollReason::freed));
  ASSERT_TRUE(plan.finished());
  EXPECT_EQ(plan.reason(), PollReason::due);
  EXPECT_FALSE(plan.is_left_alone("7"));
}

TEST(PollPlan, RoomAloneIsNoReasonToTakeAnItemAgain) {
  PollPlan plan;
  ASSERT_TRUE(plan.request(PollReason::due));
  plan.leave_alone("7");
  EXPECT_TRUE(plan.is_left_alone("7"));
  EXPECT_FALSE(plan.is_left_alone("8"));
  ASSERT_FALSE(plan.finished());
  ASSERT_TRUE(plan.request(PollReason::freed));
  EXPECT_TRUE(plan.is_left_alone("7"));
  ASSERT_FALSE(plan.finished());
  ASSERT_TRUE(plan.request(PollReason::asked));
  EXPECT_FALSE(plan.is_left_alone("7"));
}

TEST(PollPlan, BacksOffFrom1To10TimesTheInterval) {
  PollPlan plan;
  std::vector<Duration> waits;
  for (int i = 0; i < 7; ++i) waits.push_back(*plan.listed(false, seconds(30)));
  EXPECT_THAT(waits, testing::ElementsAre(seconds(30), seconds(60), seconds(120), seconds(240),
                                          seconds(300), seconds(300), seconds(300)));
  EXPECT_EQ(plan.wait(seconds(30)), seconds(300));
}

TEST(PollPlan, OneThatGoesWellEndsTheBackOff) {
  PollPlan plan;
  for (int i = 0; i < 4; ++i) (void)plan.listed(false, seconds(1));
  EXPECT_EQ(plan.listed(true, seconds(1)), seconds(1));
  EXPECT_EQ(plan.wait(seconds(1)), seconds(1));
  EXPECT_EQ(plan.listed(false, seconds(1)), seconds(1));
  EXPECT_EQ(plan.listed(false, seconds(1)), seconds(2));
}

TEST(PollPlan, ANewIntervalCountsAtOnceInTheBackOffToo) {
  PollPlan plan;
  EXPECT_EQ(plan.wait(seconds(3)), seconds(3));
  for (int i = 0; i < 3; ++i) (void)plan.listed(false, seconds(30));
  EXPECT_EQ(plan.wait(seconds(1)), seconds(4));
}

TEST(PollPlan, WithoutAnIntervalNobodyWaits) {
  PollPlan plan;
  EXPECT_EQ(plan.wait(std::nullopt), std::nullopt);
  EXPECT_EQ(plan.listed(true, std::nullopt), std::nullopt);
  EXPECT_EQ(plan.listed(false, std::nullopt), std::nullopt);
  EXPECT_EQ(plan.listed(false, seconds(1)), seconds(2));  // they were counted
}

TEST(PollPlan, TheLongestIntervalDoesNotOverflow) {
  PollPlan plan;
  std::optional<Duration> wait;
  for (int i = 0; i < 6; ++i) wait = plan.listed(false, std::chrono::hours(24 * 30));
  EXPECT_EQ(wait, std::chrono::hours(24 * 300));
}

TEST(PollPlan, StopForgetsWhatWasToFollowAndTheBackOff) {
  PollPlan plan;
  ASSERT_TRUE(plan.request(PollReason::due));
  (void)plan.listed(false, seconds(1));
  (void)plan.listed(false, seconds(1));
  (void)plan.request(PollReason::asked);
  plan.leave_alone("7");
  plan.stop();
  EXPECT_TRUE(plan.running());  // what runs has to end first
  EXPECT_FALSE(plan.is_left_alone("7"));
  EXPECT_FALSE(plan.finished());
  EXPECT_EQ(plan.wait(seconds(1)), seconds(1));
}

}  // namespace
}  // namespace reprise::worker
