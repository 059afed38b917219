#include "engine/hook_breaker.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

using namespace std::chrono_literals;

constexpr Timestamp kNow{1000s};
constexpr Timestamp kOver = kNow + HookBreaker::kOpenFor;

HookBreaker opened() {
  HookBreaker breaker;
  for (int i = 0; i < 3; ++i) breaker.failed(kNow);
  return breaker;
}

TEST(HookBreaker, IsClosedAtFirst) {
  HookBreaker breaker;
  EXPECT_TRUE(breaker.admit(kNow));
  EXPECT_EQ(breaker.state(kNow), BreakerState::closed);
  EXPECT_EQ(breaker.failures_in_a_row(), 0U);
  EXPECT_EQ(breaker.open_until(), Timestamp{});
}

TEST(HookBreaker, OpensAtTheThirdFailureInARow) {
  HookBreaker breaker;
  EXPECT_FALSE(breaker.failed(kNow));
  EXPECT_FALSE(breaker.failed(kNow));
  EXPECT_TRUE(breaker.admit(kNow));
  EXPECT_TRUE(breaker.failed(kNow));
  EXPECT_EQ(breaker.state(kNow), BreakerState::open);
  EXPECT_EQ(breaker.open_until(), kNow + 10s);
  EXPECT_EQ(breaker.failures_in_a_row(), 3U);
  EXPECT_FALSE(breaker.admit(kNow));
}

TEST(HookBreaker, AnAnswerBetweenFailuresStartsTheCountAnew) {
  HookBreaker breaker;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(breaker.failed(kNow));
    EXPECT_FALSE(breaker.failed(kNow));
    EXPECT_FALSE(breaker.succeeded()) << "it was not open";
  }
  EXPECT_EQ(breaker.state(kNow), BreakerState::closed);
}

TEST(HookBreaker, StaysOpenForTenSecondsToTheMicrosecond) {
  HookBreaker breaker = opened();
  EXPECT_FALSE(breaker.admit(kOver - 1us));
  EXPECT_EQ(breaker.state(kOver - 1us), BreakerState::open);
  EXPECT_EQ(breaker.state(kOver), BreakerState::trial);
  EXPECT_TRUE(breaker.admit(kOver));
}

TEST(HookBreaker, TriesOneCallAndNoSecond) {
  HookBreaker breaker = opened();
  EXPECT_TRUE(breaker.admit(kOver));
  EXPECT_FALSE(breaker.admit(kOver));
  EXPECT_FALSE(breaker.admit(kOver + 1h));
  EXPECT_EQ(breaker.state(kOver + 1h), BreakerState::trial);
}

TEST(HookBreaker, AGoodTrialClosesIt) {
  HookBreaker breaker = opened();
  breaker.admit(kOver);
  EXPECT_TRUE(breaker.succeeded());
  EXPECT_EQ(breaker.state(kOver), BreakerState::closed);
  EXPECT_EQ(breaker.failures_in_a_row(), 0U);
  EXPECT_TRUE(breaker.admit(kOver));
  EXPECT_FALSE(breaker.failed(kOver));
}

TEST(HookBreaker, ABadTrialOpensItAgain) {
  HookBreaker breaker = opened();
  breaker.admit(kOver);
  EXPECT_TRUE(breaker.failed(kOver + 1s));
  EXPECT_EQ(breaker.state(kOver + 1s), BreakerState::open);
  EXPECT_EQ(breaker.open_until(), kOver + 11s);
  EXPECT_EQ(breaker.failures_in_a_row(), 4U);
}

// They were asked before it opened.
TEST(HookBreaker, AnswersWhileItIsOpenChangeNothing) {
  HookBreaker breaker = opened();
  EXPECT_FALSE(breaker.succeeded());
  EXPECT_FALSE(breaker.failed(kNow + 5s));
  EXPECT_EQ(breaker.state(kNow), BreakerState::open);
  EXPECT_EQ(breaker.open_until(), kOver);
  EXPECT_EQ(breaker.failures_in_a_row(), 3U);
}

TEST(HookBreaker, ATrialThatIsNotMadeMakesRoomForAnother) {
  HookBreaker breaker = opened();
  breaker.admit(kOver);
  breaker.withdraw();
  EXPECT_EQ(breaker.state(kOver), BreakerState::trial);
  EXPECT_TRUE(breaker.admit(kOver));
  EXPECT_FALSE(breaker.admit(kOver));
}

TEST(HookBreaker, WithdrawingAnyOtherCallChangesNothing) {
  HookBreaker closed;
  closed.failed(kNow);
  closed.withdraw();
  EXPECT_EQ(closed.state(kNow), BreakerState::closed);
  EXPECT_EQ(closed.failures_in_a_row(), 1U);
  HookBreaker open = opened();
  open.withdraw();
  EXPECT_FALSE(open.admit(kNow));
}

TEST(HookBreaker, NearTheEndOfTimeStaysOpenForGood) {
  HookBreaker breaker;
  for (int i = 0; i < 3; ++i) breaker.failed(kNever - 1s);
  EXPECT_EQ(breaker.open_until(), kNever);
}

}  // namespace
}  // namespace reprise
