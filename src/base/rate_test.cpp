#include "base/rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct Good {
  std::string_view text;
  Rate value;
  std::string_view shortest;
};

class RateText : public testing::TestWithParam<Good> {};

TEST_P(RateText, IsReadAndWritten) {
  const auto parsed = parse_rate(GetParam().text);
  ASSERT_TRUE(parsed) << parsed.error().detail;
  EXPECT_EQ(parsed->count, GetParam().value.count);
  EXPECT_EQ(parsed->per, GetParam().value.per);
  EXPECT_EQ(format_rate(*parsed), GetParam().shortest);
}

INSTANTIATE_TEST_SUITE_P(
    Units, RateText,
    testing::Values(Good{"100/s", {100, 1s}, "100/s"}, Good{"30/m", {30, 1min}, "30/m"},
                    Good{"1000/h", {1000, 1h}, "1000/h"}, Good{"5/d", {5, 24h}, "5/d"},
                    Good{"7/ms", {7, 1ms}, "7/1ms"}, Good{"1/minute", {1, 1min}, "1/m"}));

INSTANTIATE_TEST_SUITE_P(
    Durations, RateText,
    testing::Values(Good{"10/30s", {10, 30s}, "10/30s"}, Good{"10/1s", {10, 1s}, "10/s"},
                    Good{"10/60s", {10, 1min}, "10/m"}, Good{"1/1h30m", {1, 90min}, "1/1h30m"},
                    Good{"5/0.5s", {5, 500ms}, "5/500ms"}, Good{"3/30", {3, 30s}, "3/30s"}));

INSTANTIATE_TEST_SUITE_P(Spaces, RateText,
                         testing::Values(Good{" 100 / s ", {100, 1s}, "100/s"},
                                         Good{"10 / 30 seconds", {10, 30s}, "10/30s"}));

INSTANTIATE_TEST_SUITE_P(Edges, RateText,
                         testing::Values(Good{"1000000/s", {1'000'000, 1s}, "1000000/s"},
                                         Good{"1/us", {1, 1us}, "1/1us"},
                                         Good{"0030/m", {30, 1min}, "30/m"},
                                         Good{"1/36524d", {1, 36524 * 24h}, "1/36524d"}));

struct Bad {
  std::string_view text;
  std::string_view message;
};

class NoRate : public testing::TestWithParam<Bad> {};

TEST_P(NoRate, IsRefusedWithAReason) {
  const auto parsed = parse_rate(GetParam().text);
  ASSERT_FALSE(parsed) << GetParam().text << " was read as " << format_rate(*parsed);
  EXPECT_EQ(parsed.error().code, Errc::invalid_field);
  EXPECT_THAT(parsed.error().detail, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    OtherText, NoRate,
    testing::Values(Bad{"x", "'x' is no rate; write 100/s, 30/m or 1000/h"},
                    Bad{"100", "'100' is no rate"}, Bad{"/s", "'/s' is no rate"},
                    Bad{"/", "is no rate"}, Bad{"100/", "'100/' is no rate"},
                    Bad{"nan/s", "'nan/s' is no rate"}, Bad{"inf/s", "is no rate"},
                    Bad{"1e3/s", "is no rate"}, Bad{"+5/s", "is no rate"},
                    Bad{"5 per second", "is no rate"}, Bad{"5/x", "'5/x' is no rate"},
                    Bad{"5/nan", "'5/nan' is no rate"}, Bad{"5/s/s", "'5/s/s' is no rate"},
                    Bad{"5/S", "'5/S' is no rate"}, Bad{"5/2x", "unknown duration suffix 'x'"}));

INSTANTIATE_TEST_SUITE_P(Missing, NoRate,
                         testing::Values(Bad{"", "a rate is missing: write one like 100/s"},
                                         Bad{"  ", "a rate is missing"}));

INSTANTIATE_TEST_SUITE_P(OutOfRange, NoRate,
                         testing::Values(Bad{"0/s", "a rate cannot be zero: '0/s'"},
                                         Bad{"-5/s", "a rate cannot be negative: '-5/s'"},
                                         Bad{"5/-1s", "a duration cannot be negative"},
                                         Bad{"5/0s", "a rate needs a time longer than zero"},
                                         Bad{"0.5/s", "needs a whole number before the slash"},
                                         Bad{"1000001/s", "'1000001/s' is more than 1000000/s"},
                                         Bad{"2/us", "'2/us' is more than 1000000/s"},
                                         Bad{"18446744073709551615/d", "is more than 1000000/s"},
                                         Bad{"99999999999999999999/s", "is more than 1000000/s"},
                                         Bad{"1/101000d", "more than 100 years"}));

TEST(Rate, ReadsBackWhatItWrites) {
  SeededRandom random(7);
  for (int i = 0; i < 10000; ++i) {
    const Duration per(static_cast<std::int64_t>(1 + random.below(100'000'000'000)));
    const Rate rate{.count = 1 + random.below(static_cast<std::uint64_t>(per.count())), .per = per};
    const auto parsed = parse_rate(format_rate(rate));
    ASSERT_TRUE(parsed) << parsed.error().detail;
    EXPECT_EQ(*parsed, rate) << format_rate(rate);
  }
}

TEST(Rate, TellsItsSpeed) {
  EXPECT_DOUBLE_EQ((Rate{100, 1s}).per_second(), 100);
  EXPECT_DOUBLE_EQ((Rate{30, 1min}).per_second(), 0.5);
  EXPECT_EQ((Rate{1000, 1s}).interval(), 1ms);
  EXPECT_EQ((Rate{1, 24h}).interval(), 24h);
}

TEST(Rate, AnIntervalNeverMakesItFaster) {
  EXPECT_EQ((Rate{3, 1s}).interval(), 333334us);
  EXPECT_EQ((Rate{1'000'000, 1s}).interval(), 1us);
  EXPECT_EQ((Rate{999'999, 1s}).interval(), 2us);
}

TEST(Rate, AllowsOneAtOnceAndTheOthersInTime) {
  const Rate rate{3, 1s};
  EXPECT_EQ(rate.allowed_in(-1us), 0U);
  EXPECT_EQ(rate.allowed_in(0us), 1U);
  EXPECT_EQ(rate.allowed_in(333333us), 1U);
  EXPECT_EQ(rate.allowed_in(333334us), 2U);
  EXPECT_EQ(rate.allowed_in(1s), 4U);
  EXPECT_EQ(rate.allowed_in(1000h), 3U * 3600 * 1000 + 1);
  EXPECT_EQ((Rate{1'000'000, 1s}).allowed_in(Duration::max()),
            static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) + 1);
}

}  // namespace
}  // namespace reprise
