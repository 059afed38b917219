// The breaker by itself. What it does to jobs is in engine_breaker_test.cpp.
#include "engine/outage_guard.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/random.h"
#include "support/fake_clock.h"
#include "support/seeds.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;

class OutageGuardTest : public testing::Test {
 protected:
  Timestamp now() const { return clock_.now(); }
  void pass(Duration by) { clock_.advance(by); }
  bool succeed(int times = 1, OutageGuard::Trial trial = 0) {
    bool changed = false;
    for (int i = 0; i < times; ++i) changed = guard_.succeeded(trial, now()) || changed;
    return changed;
  }
  bool fail(int times = 1, OutageGuard::Trial trial = 0) {
    bool changed = false;
    for (int i = 0; i < times; ++i) changed = guard_.failed(trial, now()) || changed;
    return changed;
  }
  void begin_trial() {
    if (guard_.state() == BreakerState::closed) {
      EXPECT_TRUE(fail(4));
    }
    clock_.set(guard_.open_until());
    EXPECT_TRUE(guard_.advance(now()));
    EXPECT_EQ(guard_.state(), BreakerState::trial);
  }

  test::FakeClock clock_;
  OutageGuard guard_{
      {.failure_rate_ppm = 500'000, .window = 1min, .min = 4, .pause = 30s, .canaries = 2}};
};

TEST_F(OutageGuardTest, BeginsClosed) {
  EXPECT_EQ(guard_.state(), BreakerState::closed);
  EXPECT_EQ(guard_.room(), UINT64_MAX);
  EXPECT_FALSE(guard_.spares());
  EXPECT_EQ(guard_.lease_began(), 0U);
  EXPECT_FALSE(guard_.advance(now()));
}

TEST_F(OutageGuardTest, OpensAtTheRateAndNotBeforeMin) {
  EXPECT_FALSE(fail(3)) << "fewer than min";
  EXPECT_TRUE(fail());
  EXPECT_EQ(guard_.state(), BreakerState::open);
  EXPECT_EQ(guard_.open_until(), now() + 30s);
  EXPECT_EQ(guard_.room(), 0U);
  EXPECT_TRUE(guard_.spares());
}

TEST_F(OutageGuardTest, OpensWhenExactlySoManyHaveFailed) {
  succeed(10);
  EXPECT_FALSE(fail(9)) << "9 of 19";
  EXPECT_TRUE(fail()) << "10 of 20";
}

TEST_F(OutageGuardTest, ASuccessOpensNothing) {
  fail(3);
  EXPECT_FALSE(succeed()) << "3 of 4 have failed, but the latest did not";
  EXPECT_TRUE(fail());
}

TEST_F(OutageGuardTest, WhatIsOlderThanTheWindowDoesNotCount) {
  succeed(100);
  pass(56s);
  EXPECT_FALSE(fail(4)) << "the successes are within it";
  pass(4s);
  EXPECT_EQ(guard_.stats(now()).ended, 4U);
  EXPECT_TRUE(fail());
}

TEST_F(OutageGuardTest, ALongPauseEmptiesTheWindow) {
  fail(3);
  pass(24h);
  EXPECT_EQ(guard_.stats(now()).ended, 0U);
  EXPECT_FALSE(fail(3));
  EXPECT_TRUE(fail());
}

TEST_F(OutageGuardTest, TheTrialBeginsWhenThePauseIsOver) {
  fail(4);
  pass(30s - 1us);
  EXPECT_FALSE(guard_.advance(now()));
  pass(1us);
  EXPECT_TRUE(guard_.advance(now()));
  EXPECT_EQ(guard_.state(), BreakerState::trial);
  EXPECT_FALSE(guard_.advance(now())) << "it began already";
  EXPECT_EQ(guard_.room(), 2U);
}

TEST_F(OutageGuardTest, ResultsOfBeforeChangeNothingWhileOpenOrInTrial) {
  fail(4);
  EXPECT_FALSE(fail(100));
  EXPECT_FALSE(succeed(100));
  EXPECT_EQ(guard_.open_until(), now() + 30s);
  begin_trial();
  EXPECT_FALSE(fail(100));
  EXPECT_FALSE(succeed(100));
  EXPECT_EQ(guard_.state(), BreakerState::trial);
  EXPECT_EQ(guard_.room(), 2U);
}

TEST_F(OutageGuardTest, ClosesWhenAllCanariesHaveSucceeded) {
  begin_trial();
  const auto trial = guard_.lease_began();
  EXPECT_NE(trial, 0U);
  EXPECT_EQ(guard_.room(), 1U);
  EXPECT_EQ(guard_.lease_began(), trial);
  EXPECT_EQ(guard_.room(), 0U);
  EXPECT_EQ(guard_.stats(now()).canaries_out, 2U);
  EXPECT_FALSE(succeed(1, trial));
  EXPECT_EQ(guard_.room(), 0U) << "one that succeeded is not tried again";
  EXPECT_TRUE(succeed(1, trial));
  EXPECT_EQ(guard_.state(), BreakerState::closed);
  EXPECT_EQ(guard_.stats(now()).ended, 0U) << "its window is empty";
  EXPECT_FALSE(fail(3));
}

TEST_F(OutageGuardTest, OneCanaryThatFailsOpensIt) {
  begin_trial();
  const auto trial = guard_.lease_began();
  guard_.lease_began();
  succeed(1, trial);
  EXPECT_TRUE(fail(1, trial));
  EXPECT_EQ(guard_.open_until(), now() + 30s);
  EXPECT_EQ(guard_.stats(now()).opened, 2U);
  EXPECT_EQ(guard_.stats(now()).canaries_out, 0U);
}

TEST_F(OutageGuardTest, ACanaryThatCameBackMakesRoomForAnother) {
  begin_trial();
  const auto trial = guard_.lease_began();
  guard_.lease_began();
  guard_.came_back(trial);
  EXPECT_EQ(guard_.room(), 1U);
  guard_.came_back(0);
  EXPECT_EQ(guard_.room(), 1U) << "that was no canary";
}

TEST_F(OutageGuardTest, ACanaryOfAnEarlierTrialDecidesNothing) {
  begin_trial();
  const auto first = guard_.lease_began();
  guard_.lease_began();
  fail(1, first);
  begin_trial();
  EXPECT_FALSE(fail(1, first));
  EXPECT_FALSE(succeed(1, first));
  guard_.came_back(first);
  EXPECT_EQ(guard_.room(), 2U);
  EXPECT_EQ(guard_.state(), BreakerState::trial);
}

TEST_F(OutageGuardTest, CanariesThatFailStayAwayLongerEachTime) {
  Duration last = 30s;
  for (int i = 0; i < 50; ++i) {
    begin_trial();
    fail(1, guard_.lease_began());
    EXPECT_GT(guard_.canary_delay(), last);
    last = guard_.canary_delay();
  }
  begin_trial();
  succeed(1, guard_.lease_began());
  succeed(1, guard_.lease_began());
  begin_trial();
  fail(1, guard_.lease_began());
  EXPECT_EQ(guard_.canary_delay(), 60s) << "it was closed in between";
}

TEST_F(OutageGuardTest, ACanaryIsAwayForAWeekAtMost) {
  OutageGuard guard({.failure_rate_ppm = 500'000, .min = 1, .pause = 24h});
  guard.failed(0, now());
  for (int i = 0; i < 20; ++i) {
    clock_.set(guard.open_until());
    guard.advance(now());
    guard.failed(guard.lease_began(), now());
  }
  EXPECT_EQ(guard.canary_delay(), 24h * 7);
}

// Whatever happens: never more canaries than allowed, and closed only when all of one trial have
// succeeded.
TEST_F(OutageGuardTest, NoSequenceOfResultsGivesOutTooMany) {
  for (std::uint64_t seed = 1; seed <= test::seed_count(50); ++seed) {
    SeededRandom dice(seed);
    const auto canaries = static_cast<std::uint32_t>(1 + dice.below(4));
    OutageGuard guard({.failure_rate_ppm = static_cast<std::uint32_t>(1 + dice.below(kWholeShare)),
                       .window = 10s,
                       .min = static_cast<std::uint32_t>(1 + dice.below(10)),
                       .pause = 5s,
                       .canaries = canaries});
    struct Out {
      OutageGuard::Trial trial = 0;
      int trials_begun = 0;
    };
    std::deque<Out> out;
    int trials_begun = 0;
    std::uint32_t succeeded = 0;  // of this trial
    for (int step = 0; step < 2'000; ++step) {
      pass(Duration(dice.below(2'000'000)));
      if (guard.advance(now())) {
        ++trials_begun;
        succeeded = 0;
      }
      const BreakerState before = guard.state();
      while (guard.room() > 0 && out.size() < 30 && dice.below(3) > 0) {
        out.push_back({guard.lease_began(), guard.spares() ? trials_begun : 0});
      }
      if (out.empty()) continue;
      const Out lease = out[dice.below(out.size())];
      out.erase(
          std::ranges::find_if(out, [&](const Out& other) { return other.trial == lease.trial; }));
      const bool canary = before == BreakerState::trial && lease.trials_begun == trials_begun;
      switch (dice.below(3)) {
        case 0:
          guard.came_back(lease.trial);
          ASSERT_EQ(guard.state(), before);
          break;
        case 1:
          guard.failed(lease.trial, now());
          if (before != BreakerState::closed) {
            ASSERT_EQ(guard.state(), canary ? BreakerState::open : before);
          }
          break;
        default:
          guard.succeeded(lease.trial, now());
          if (canary) ++succeeded;
          ASSERT_EQ(guard.state(), canary && succeeded == canaries ? BreakerState::closed : before);
      }
      if (guard.state() == BreakerState::trial) {
        const auto canaries_out = std::ranges::count_if(
            out, [&](const Out& other) { return other.trials_begun == trials_begun; });
        ASSERT_EQ(guard.room() + static_cast<std::uint64_t>(canaries_out) + succeeded, canaries);
      }
    }
  }
}

}  // namespace
}  // namespace reprise
