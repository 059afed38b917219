#include "base/json_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/random.h"

namespace reprise {
namespace {

struct Case {
  std::string_view text;
  std::size_t offset;
  std::string_view problem;
};

class ProblemIn : public testing::TestWithParam<Case> {};

TEST_P(ProblemIn, IsFoundWhereItIs) {
  const auto found = find_json_problem(GetParam().text);
  ASSERT_TRUE(found) << GetParam().text;
  EXPECT_EQ(found->problem, GetParam().problem);
  EXPECT_EQ(found->offset, GetParam().offset);
}

INSTANTIATE_TEST_SUITE_P(
    Structure, ProblemIn,
    testing::Values(Case{"", 0, "the text ends where a value should be"},
                    Case{"{\"a\":", 5, "the text ends where a value should be"},
                    Case{"{\"a\":1,}", 7, "expected a field name in double quotes"},
                    Case{"{a:1}", 1, "expected a field name in double quotes"},
                    Case{"{\"a\" 1}", 5, "expected ':'"},
                    Case{"{\"a\":1 \"b\":2}", 7, "expected ',' or '}'"},
                    Case{"[1 2]", 3, "expected ',' or ']'"}, Case{"[1,]", 3, "expected a value"},
                    Case{"[1}", 2, "expected ',' or ']'"},
                    Case{"1 2", 2, "unexpected text after the value"},
                    Case{"nul", 0, "expected a value"}, Case{"'a'", 0, "expected a value"}));

INSTANTIATE_TEST_SUITE_P(
    Strings, ProblemIn,
    testing::Values(Case{"\"abc", 0, "a string that does not end"},
                    Case{"\"a\nb\"", 2, "a control character in a string must be escaped"},
                    Case{"\"\\x\"", 1, "unknown escape in a string"},
                    Case{"\"\\u12G4\"", 1, "\\u needs four hexadecimal digits"},
                    Case{"\"\\u12", 1, "\\u needs four hexadecimal digits"},
                    Case{"\"\\ud800\"", 1, "half of a surrogate pair"},
                    Case{"\"\\udc00\"", 1, "half of a surrogate pair"},
                    Case{"\"\\ud800\\u0041\"", 1, "half of a surrogate pair"},
                    Case{"\"a\xFF\"", 2, "not UTF-8"}));

INSTANTIATE_TEST_SUITE_P(Numbers, ProblemIn,
                         testing::Values(Case{"01", 0, "a number with a leading zero"},
                                         Case{"-", 1, "expected a digit"},
                                         Case{"1.", 2, "expected a digit"},
                                         Case{"1e+", 3, "expected a digit"},
                                         Case{"[1,1e400]", 3, "number too large"}));

TEST(JsonProblem, FindsNoneInGoodText) {
  for (const std::string_view text : {"null", " [1, -2.5e-3, 0, 1e-400] ",
                                      R"({"a":{"b":[true,false]},"":"\u00e9\ud83d\ude00"})"}) {
    EXPECT_FALSE(find_json_problem(text)) << text;
  }
}

TEST(JsonProblem, NumbersMayBeAnythingWhenNobodyReadsThem) {
  EXPECT_FALSE(find_json_problem("[1,1e400]", JsonNumbers::any));
  EXPECT_TRUE(find_json_problem("[1,1e]", JsonNumbers::any));
  EXPECT_TRUE(find_json_problem("[01]", JsonNumbers::any));
}

TEST(JsonProblem, PositionCountsLinesAndColumnsFromOne) {
  EXPECT_EQ(describe_position("abc", 0), "line 1, column 1");
  EXPECT_EQ(describe_position("abc", 2), "line 1, column 3");
  EXPECT_EQ(describe_position("a\nbc\nd", 5), "line 3, column 1");
  EXPECT_EQ(describe_position("a\nbc", 4), "line 2, column 3");
}

// The finder and simdjson are two readings of one grammar: they must agree on what is JSON.
TEST(JsonProblem, AgreesWithTheParserOnRandomEdits) {
  constexpr std::string_view kSeedText =
      R"({"a":[1,-2.5e3,true,null],"b":{"c":"x\n\u00e9\ud83d\ude00"},"d":18446744073709551616})";
  constexpr std::string_view kChars = "{}[]\",:\\u0123dDeE+-. \n\x01tfnx\x80\xC3\xA9";
  SeededRandom random(1);
  for (int i = 0; i < 50'000; ++i) {
    std::string text(kSeedText);
    for (std::uint64_t edits = random.below(4); edits > 0; --edits) {
      const std::size_t at = random.below(text.size());
      switch (random.below(3)) {
        case 0:
          text[at] = kChars[random.below(kChars.size())];
          break;
        case 1:
          text.erase(at, 1 + random.below(3));
          break;
        default:
          text.insert(at, 1, kChars[random.below(kChars.size())]);
      }
    }
    const auto parsed = Json::parse(text);
    const bool refused = !parsed && !parsed.error().detail.starts_with("duplicate field");
    ASSERT_EQ(refused, find_json_problem(text).has_value())
        << text << '\n'
        << (parsed ? "" : parsed.error().detail);
  }
}

}  // namespace
}  // namespace reprise
