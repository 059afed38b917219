#include "base/time.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

using namespace std::chrono_literals;

Timestamp at(std::int64_t microseconds) { return Timestamp(Duration(microseconds)); }

TEST(FormatTimestamp, IsIso8601WithMilliseconds) {
  const auto day = std::chrono::sys_days(std::chrono::year(2026) / 1 / 31);
  EXPECT_EQ(format_timestamp(day + 8h + 15min + 250ms), "2026-01-31T08:15:00.250Z");
  EXPECT_EQ(format_timestamp(at(0)), "1970-01-01T00:00:00.000Z");
}

TEST(FormatTimestamp, KnowsLeapDays) {
  EXPECT_EQ(format_timestamp(std::chrono::sys_days(std::chrono::year(2024) / 2 / 28) + 24h),
            "2024-02-29T00:00:00.000Z");
  EXPECT_EQ(format_timestamp(std::chrono::sys_days(std::chrono::year(2100) / 2 / 28) + 24h),
            "2100-03-01T00:00:00.000Z");
}

TEST(FormatTimestamp, DropsMicrosecondsAndNeverRoundsUp) {
  EXPECT_EQ(format_timestamp(at(1'999)), "1970-01-01T00:00:00.001Z");
  EXPECT_EQ(format_timestamp(at(999'999)), "1970-01-01T00:00:00.999Z");
  EXPECT_EQ(format_timestamp(at(1'000'000)), "1970-01-01T00:00:01.000Z");
}

TEST(FormatTimestamp, GoesBackBefore1970) {
  EXPECT_EQ(format_timestamp(at(-1)), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(format_timestamp(at(-1'000)), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(format_timestamp(at(-1'001)), "1969-12-31T23:59:59.998Z");
  EXPECT_EQ(format_timestamp(std::chrono::sys_days(std::chrono::year(1900) / 3 / 1) - 1us),
            "1900-02-28T23:59:59.999Z");
}

TEST(AddSaturating, AddsWhatFits) {
  EXPECT_EQ(add_saturating(at(10), 5us), at(15));
  EXPECT_EQ(add_saturating(at(10), -5us), at(5));
  EXPECT_EQ(add_saturating(at(-10), Duration::max()), kNever - 10us);
  EXPECT_EQ(add_saturating(kNever, 0us), kNever);
  EXPECT_EQ(add_saturating(kNever, -1us), kNever - 1us);
}

TEST(AddSaturating, StopsAtNever) {
  EXPECT_EQ(add_saturating(kNever, 1us), kNever);
  EXPECT_EQ(add_saturating(kNever - 1us, 1us), kNever);
  EXPECT_EQ(add_saturating(at(1), Duration::max()), kNever);
}

}  // namespace
}  // namespace reprise
