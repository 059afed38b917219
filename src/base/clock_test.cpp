#include "base/clock.h"

#include <gtest/gtest.h>

#include "support/fake_clock.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;

TEST(SteadyWallClock, StartsAtWallTime) {
  const auto before = std::chrono::floor<Duration>(std::chrono::system_clock::now());
  const SteadyWallClock clock;
  // Loose, as the wall clock of the machine may be set while this runs.
  EXPECT_GE(clock.now(), before - 1min);
  EXPECT_LE(clock.now(), before + 1min);
}

TEST(SteadyWallClock, NeverGoesBack) {
  const SteadyWallClock clock;
  Timestamp last = clock.now();
  for (int i = 0; i < 10'000; ++i) {
    const Timestamp now = clock.now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(SteadyWallClock, StartsNoEarlierThanTheLastRunEnded) {
  const Timestamp ahead =
      std::chrono::floor<Duration>(std::chrono::system_clock::now()) + std::chrono::hours(24);
  const SteadyWallClock clock(ahead);
  EXPECT_GE(clock.now(), ahead);
  EXPECT_LE(clock.now(), ahead + 1min);
}

TEST(FakeClock, MovesOnlyWhenTold) {
  test::FakeClock clock;
  EXPECT_EQ(format_timestamp(clock.now()), "2026-01-01T00:00:00.000Z");
  clock.advance(90s);
  EXPECT_EQ(format_timestamp(clock.now()), "2026-01-01T00:01:30.000Z");
  clock.set(Timestamp(1s));
  EXPECT_EQ(format_timestamp(clock.now()), "1970-01-01T00:00:01.000Z");
}

}  // namespace
}  // namespace reprise
