#include "base/duration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct Good {
  std::string_view text;
  Duration value;
};

class DurationText : public testing::TestWithParam<Good> {};

TEST_P(DurationText, IsRead) {
  const auto parsed = parse_duration(GetParam().text);
  ASSERT_TRUE(parsed) << parsed.error().detail;
  EXPECT_EQ(*parsed, GetParam().value) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(Suffixes, DurationText,
                         testing::Values(Good{"7us", 7us}, Good{"200ms", 200ms}, Good{"30s", 30s},
                                         Good{"5m", 5min}, Good{"2h", 2h}, Good{"7d", 168h},
                                         Good{"2sec", 2s}, Good{"2secs", 2s}, Good{"2min", 2min},
                                         Good{"2mins", 2min}, Good{"2hr", 2h}, Good{"2hrs", 2h}));

INSTANTIATE_TEST_SUITE_P(LongForms, DurationText,
                         testing::Values(Good{"1 microsecond", 1us}, Good{"3 microseconds", 3us},
                                         Good{"1 millisecond", 1ms}, Good{"3 milliseconds", 3ms},
                                         Good{"1 second", 1s}, Good{"30 seconds", 30s},
                                         Good{"1 minute", 1min}, Good{"5 minutes", 5min},
                                         Good{"1 hour", 1h}, Good{"2 hours", 2h},
                                         Good{"1 day", 24h}, Good{"7 days", 168h},
                                         Good{"5minutes", 5min}));

INSTANTIATE_TEST_SUITE_P(Compound, DurationText,
                         testing::Values(Good{"1h30m", 90min}, Good{"1h 30m", 90min},
                                         Good{"1d2h3m4s5ms6us", 26h + 3min + 4s + 5ms + 6us},
                                         Good{"1 hour 30 minutes", 90min}, Good{"1m 0s", 1min},
                                         Good{"1.5h30m", 2h}));

INSTANTIATE_TEST_SUITE_P(Fractions, DurationText,
                         testing::Values(Good{"1.5h", 90min}, Good{"0.5s", 500ms},
                                         Good{"0.1s", 100ms}, Good{"0.3s", 300ms},
                                         Good{"1.000001s", 1000001us}, Good{"2.25", 2250ms},
                                         Good{"0.0001d", 8640ms}, Good{"0.5us", 1us},
                                         Good{"1.00000000000000000000000000000001s", 1s}));

INSTANTIATE_TEST_SUITE_P(BareNumbersAreSeconds, DurationText,
                         testing::Values(Good{"0", 0s}, Good{"30", 30s}, Good{" 30 ", 30s},
                                         Good{"0030", 30s}, Good{"0s", 0s}));

INSTANTIATE_TEST_SUITE_P(Longest, DurationText,
                         testing::Values(Good{"3155695200s", std::chrono::years(100)},
                                         Good{"36524d6h", std::chrono::years(100)}));

struct Bad {
  std::string_view text;
  std::string_view message;
};

class NoDuration : public testing::TestWithParam<Bad> {};

TEST_P(NoDuration, IsRefusedWithAReason) {
  const auto parsed = parse_duration(GetParam().text);
  ASSERT_FALSE(parsed) << GetParam().text << " was read as " << parsed->count() << "us";
  EXPECT_EQ(parsed.error().code, Errc::invalid_field);
  EXPECT_THAT(parsed.error().detail, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    UnknownSuffix, NoDuration,
    testing::Values(Bad{"5x", "unknown duration suffix 'x' in '5x': use ms, s, m, h or d"},
                    Bad{"5 fortnights", "unknown duration suffix 'fortnights'"},
                    Bad{"5M", "unknown duration suffix 'M'"},
                    Bad{"1h5x", "unknown duration suffix 'x' in '1h5x'"},
                    Bad{"5,5s", "unknown duration suffix ','"}, Bad{"1e3", "suffix 'e'"},
                    Bad{"5\u00b5s", "unknown duration suffix '\u00b5'"}, Bad{"5%", "suffix '%'"}));

INSTANTIATE_TEST_SUITE_P(Negative, NoDuration,
                         testing::Values(Bad{"-5s", "a duration cannot be negative: '-5s'"},
                                         Bad{"-0", "cannot be negative"},
                                         Bad{" -1", "cannot be negative"}));

INSTANTIATE_TEST_SUITE_P(Empty, NoDuration,
                         testing::Values(Bad{"", "a duration is missing"},
                                         Bad{"  ", "a duration is missing"}));

INSTANTIATE_TEST_SUITE_P(NotANumber, NoDuration,
                         testing::Values(Bad{"s", "'s' is not a duration"},
                                         Bad{"soon", "'soon' is not a duration"},
                                         Bad{"+5s", "not a duration"}, Bad{".5s", "not a duration"},
                                         Bad{"nan", "not a duration"}, Bad{"inf", "not a duration"},
                                         Bad{"5.s", "no digit after the point in '5.s'"},
                                         Bad{"1h,30m", "not a duration"},
                                         Bad{"1.2.3s", "unknown duration suffix '.'"}));

INSTANTIATE_TEST_SUITE_P(UnclearCompound, NoDuration,
                         testing::Values(Bad{"1h30", "the last number has no unit in '1h30'"},
                                         Bad{"30m1h", "units must go from large to small"},
                                         Bad{"1h1h", "each once"},
                                         Bad{"5 5s", "unknown duration suffix '5'"}));

INSTANTIATE_TEST_SUITE_P(
    TooLong, NoDuration,
    testing::Values(Bad{"101 days 36500d", "units must"}, Bad{"36525d", "more than 100 years"},
                    Bad{"3155695201", "'3155695201' is more than 100 years"},
                    Bad{"36524d7h", "more than 100 years"},
                    Bad{"18446744073709551615d", "more than 100 years"},
                    Bad{"18446744073709551616s", "more than 100 years"},
                    Bad{"99999999999999999999999999999999999", "more than 100 years"}));

TEST(FormatDuration, IsShortAndExact) {
  EXPECT_EQ(format_duration(0s), "0s");
  EXPECT_EQ(format_duration(30s), "30s");
  EXPECT_EQ(format_duration(90min), "1h30m");
  EXPECT_EQ(format_duration(168h), "7d");
  EXPECT_EQ(format_duration(250ms), "250ms");
  EXPECT_EQ(format_duration(1500ms), "1.5s");
  EXPECT_EQ(format_duration(1us), "1us");
  EXPECT_EQ(format_duration(1500us), "1.5ms");
  EXPECT_EQ(format_duration(1000001us), "1.000001s");
  EXPECT_EQ(format_duration(24h + 1us), "1d1us");
}

TEST(FormatDuration, ShowsASignRatherThanBreaking) {
  EXPECT_EQ(format_duration(-90s), "-1m30s");
  EXPECT_EQ(format_duration(Duration::min()), "-106751991d4h54.775808s");
}

TEST(FormatDuration, IsReadBackExactly) {
  SeededRandom random(5);
  for (int i = 0; i < 100'000; ++i) {
    // All sizes alike: a random number of bits, up to a century.
    const std::uint64_t bits = random.below(52);
    const Duration value(static_cast<std::int64_t>(random.next_u64() >> (63 - bits)));
    if (value > std::chrono::years(100)) continue;
    const std::string text = format_duration(value);
    const auto parsed = parse_duration(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().detail;
    ASSERT_EQ(*parsed, value) << text;
  }
}

TEST(ParseDuration, SurvivesRandomText) {
  constexpr std::string_view kChars = "0123456789.smhdu -+\xFF\0xe";
  SeededRandom random(6);
  for (int i = 0; i < 100'000; ++i) {
    std::string text(random.below(12), ' ');
    for (char& c : text) c = kChars[random.below(kChars.size())];
    if (const auto parsed = parse_duration(text)) {
      ASSERT_GE(*parsed, 0us) << text;
      ASSERT_LE(*parsed, std::chrono::years(100)) << text;
    }
  }
}

TEST(HumanizeDuration, ShowsTwoUnitsAtMost) {
  EXPECT_EQ(humanize_duration(0s), "0s");
  EXPECT_EQ(humanize_duration(250us), "250us");
  EXPECT_EQ(humanize_duration(3210us), "3.2ms");
  EXPECT_EQ(humanize_duration(250400us), "250ms");
  EXPECT_EQ(humanize_duration(3210ms), "3.2s");
  EXPECT_EQ(humanize_duration(45300ms), "45s");
  EXPECT_EQ(humanize_duration(2min + 5s + 400ms), "2m 5s");
  EXPECT_EQ(humanize_duration(5h + 7min + 20s), "5h 7m");
  EXPECT_EQ(humanize_duration(76h + 10min), "3d 4h");
}

TEST(HumanizeDuration, RoundsIntoTheNextUnit) {
  EXPECT_EQ(humanize_duration(9960us), "10ms");
  EXPECT_EQ(humanize_duration(999'700us), "1s");
  EXPECT_EQ(humanize_duration(59'700ms), "1m");
  EXPECT_EQ(humanize_duration(1h - 1ms), "1h");
  EXPECT_EQ(humanize_duration(24h - 1s), "1d");
}

TEST(HumanizeDuration, TakesNegativeAndExtremeValues) {
  EXPECT_EQ(humanize_duration(-90s), "-1m 30s");
  EXPECT_FALSE(humanize_duration(Duration::max()).empty());
  EXPECT_TRUE(humanize_duration(Duration::min()).starts_with('-'));
}

}  // namespace
}  // namespace reprise
