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

TEST(ParseTimestamp, ReadsBackWhatIsFormatted) {
  for (const std::int64_t micros :
       {0LL, 1'769'847'300'250'000LL, -1'000LL, 253'402'300'799'999'000LL}) {
    EXPECT_EQ(parse_timestamp(format_timestamp(at(micros))), at(micros)) << micros;
  }
}

TEST(ParseTimestamp, TakesOffsetsAndFractions) {
  const Timestamp time = std::chrono::sys_days(std::chrono::year(2026) / 1 / 31) + 8h + 15min;
  EXPECT_EQ(parse_timestamp("2026-01-31T08:15:00Z"), time);
  EXPECT_EQ(parse_timestamp("2026-01-31t08:15:00z"), time);
  EXPECT_EQ(parse_timestamp("2026-01-31 08:15:00"), time);
  EXPECT_EQ(parse_timestamp("2026-01-31T08:15Z"), time);
  EXPECT_EQ(parse_timestamp("2026-01-31T10:15:00+02:00"), time);
  EXPECT_EQ(parse_timestamp("2026-01-31T10:15:00+0200"), time);
  EXPECT_EQ(parse_timestamp("2026-01-31T10:15+02"), time);
  EXPECT_EQ(parse_timestamp("2026-01-30T22:45:00-09:30"), time);
  EXPECT_EQ(parse_timestamp("2026-01-31T08:15:00.2Z"), time + 200ms);
  EXPECT_EQ(parse_timestamp("2026-01-31T08:15:00,000001Z"), time + 1us);
  EXPECT_EQ(parse_timestamp("2026-01-31T08:15:00.123456789+00:00"), time + 123456us);
}

TEST(ParseTimestamp, KnowsLeapDaysAndLeapSeconds) {
  EXPECT_EQ(parse_timestamp("2024-02-29T00:00:00Z"),
            Timestamp(std::chrono::sys_days(std::chrono::year(2024) / 2 / 29)));
  EXPECT_EQ(parse_timestamp("2026-02-29T00:00:00Z"), std::nullopt);
  EXPECT_EQ(parse_timestamp("2016-12-31T23:59:60Z"), parse_timestamp("2017-01-01T00:00:00Z"));
}

TEST(ParseTimestamp, RefusesNonsense) {
  for (const char* text : {"",
                           "now",
                           "1769847300",
                           "2026-01-31",
                           "2026-01-31T",
                           "2026-01-31T08",
                           "2026-01-31T08:15:",
                           "2026-1-31T08:15:00Z",
                           "26-01-31T08:15:00Z",
                           "2026-13-01T00:00:00Z",
                           "2026-00-01T00:00:00Z",
                           "2026-01-00T00:00:00Z",
                           "2026-04-31T00:00:00Z",
                           "2026-01-31T24:00:00Z",
                           "2026-01-31T08:60:00Z",
                           "2026-01-31T08:15:61Z",
                           "2026-01-31T08:15:00.Z",
                           "2026-01-31T08:15:00+",
                           "2026-01-31T08:15:00+2",
                           "2026-01-31T08:15:00+24:00",
                           "2026-01-31T08:15:00+02:60",
                           "2026-01-31T08:15:00+02:",
                           "2026-01-31T08:15:00Zx",
                           "2026-01-31T08:15:00 Z",
                           " 2026-01-31T08:15:00Z",
                           "2026/01/31T08:15:00Z",
                           "20260131T081500Z",
                           "-026-01-31T08:15:00Z",
                           "2026-01-31T+8:15:00Z"}) {
    EXPECT_EQ(parse_timestamp(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_timestamp(std::string("2026-01-31T08:15:00Z\0", 21)), std::nullopt);
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
