#include "base/pattern.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace reprise {
namespace {

// The definition, without any cleverness.
bool matches_slowly(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') {
    return matches_slowly(pattern.substr(1), text) ||
           (!text.empty() && matches_slowly(pattern, text.substr(1)));
  }
  return !text.empty() && text.front() == pattern.front() &&
         matches_slowly(pattern.substr(1), text.substr(1));
}

TEST(MatchesPattern, WithoutAStarOnlyTheSameTextFits) {
  EXPECT_TRUE(matches_pattern("order.created", "order.created"));
  EXPECT_FALSE(matches_pattern("order.created", "order.create"));
  EXPECT_FALSE(matches_pattern("order.created", "order.created2"));
  EXPECT_FALSE(matches_pattern("order.created", "Order.created"));
  EXPECT_TRUE(matches_pattern("", ""));
  EXPECT_FALSE(matches_pattern("", "a"));
  EXPECT_FALSE(matches_pattern("?", "a"));
}

TEST(MatchesPattern, AStarStandsForAnythingAlsoNothing) {
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_TRUE(matches_pattern("order.*", "order."));
  EXPECT_TRUE(matches_pattern("order.*", "order.created.again"));
  EXPECT_FALSE(matches_pattern("order.*", "orders.created"));
  EXPECT_TRUE(matches_pattern("*.created", "order.created"));
  EXPECT_TRUE(matches_pattern("o*r*d", "order.created"));
  EXPECT_FALSE(matches_pattern("*a*b", "xbxa"));
}

TEST(MatchesPattern, AgreesWithItsDefinition) {
  SeededRandom random(1);
  const auto make = [&](std::string_view letters, std::size_t longest) {
    std::string text(random.below(longest + 1), 'a');
    for (char& c : text) c = letters[random.below(letters.size())];
    return text;
  };
  int fitting = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string pattern = make("ab*", 6);
    const std::string text = make("ab", 8);
    const bool fits = matches_slowly(pattern, text);
    fitting += fits ? 1 : 0;
    ASSERT_EQ(matches_pattern(pattern, text), fits) << pattern << " " << text;
  }
  EXPECT_GT(fitting, 1000);
}

TEST(MatchesPattern, ManyStarsCostNoMoreThanTheLengths) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "a*";
  // Exponential backtracking would not end before the sun does.
  EXPECT_FALSE(matches_pattern(pattern + "b", std::string(10'000, 'a')));
}

}  // namespace
}  // namespace reprise
