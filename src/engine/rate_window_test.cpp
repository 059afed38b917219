#include "engine/rate_window.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

using namespace std::chrono_literals;

constexpr Timestamp kStart = std::chrono::sys_days(std::chrono::year(2026) / 1 / 1);

TEST(RateWindow, IsZeroBeforeAnythingHappened) {
  RateWindow rate;
  EXPECT_EQ(rate.per_second(kStart), 0.0);
}

TEST(RateWindow, CountsPerSecondOverOneMinute) {
  RateWindow rate;
  rate.add(kStart, 60);
  EXPECT_DOUBLE_EQ(rate.per_second(kStart), 1.0);
  rate.add(kStart + 1s, 30);
  EXPECT_DOUBLE_EQ(rate.per_second(kStart + 1s), 1.5);
}

TEST(RateWindow, ASteadyRateShowsAsItIs) {
  RateWindow rate;
  for (int second = 0; second < 300; ++second) {
    const Timestamp now = kStart + std::chrono::seconds(second);
    rate.add(now, 2);
    if (second >= 60) {
      EXPECT_NEAR(rate.per_second(now), 2.0, 0.2) << second;
    }
  }
}

TEST(RateWindow, ForgetsWhatIsOverAMinuteOld) {
  RateWindow rate;
  rate.add(kStart, 60);
  EXPECT_DOUBLE_EQ(rate.per_second(kStart + 54s), 1.0);
  EXPECT_DOUBLE_EQ(rate.per_second(kStart + 60s), 0.0);
}

TEST(RateWindow, ForgetsOnlyTheOldPart) {
  RateWindow rate;
  rate.add(kStart, 60);
  rate.add(kStart + 30s, 120);
  EXPECT_DOUBLE_EQ(rate.per_second(kStart + 59s), 3.0);
  EXPECT_DOUBLE_EQ(rate.per_second(kStart + 61s), 2.0);
  EXPECT_DOUBLE_EQ(rate.per_second(kStart + 91s), 0.0);
}

TEST(RateWindow, SurvivesALongSilence) {
  RateWindow rate;
  rate.add(kStart, 60);
  rate.add(kStart + std::chrono::years(10), 6);
  EXPECT_DOUBLE_EQ(rate.per_second(kStart + std::chrono::years(10)), 0.1);
}

}  // namespace
}  // namespace reprise
