#include "cli/job_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Choice, NumbersAndRanges) {
  EXPECT_THAT(parse_choice("1 3-5", 20)->numbers, ElementsAre(1, 3, 4, 5));
  EXPECT_THAT(parse_choice(" 5,2 , 2-3\t", 5)->numbers, ElementsAre(2, 3, 5));
  EXPECT_THAT(parse_choice("4-4", 4)->numbers, ElementsAre(4));
}

TEST(Choice, AllIsMoreThanEveryNumber) {
  EXPECT_TRUE(parse_choice("all", 3)->all);
  EXPECT_FALSE(parse_choice("1-3", 3)->all);
}

TEST(Choice, NothingIsAnAnswer) {
  EXPECT_TRUE(parse_choice("", 3)->nothing());
  EXPECT_TRUE(parse_choice(" \t", 3)->nothing());
  EXPECT_FALSE(parse_choice("all", 3)->nothing());
}

TEST(Choice, WhatIsNotThereIsNamed) {
  for (const char* answer : {"4", "0", "x", "2-", "-2", "3-2", "1-4", "1 all", "1--2",
                             "1-99999999999999999999", "+1", "1.5"}) {
    EXPECT_FALSE(parse_choice(answer, 3)) << answer;
  }
  EXPECT_THAT(parse_choice("1 nine", 3).error().detail, HasSubstr("'nine'"));
}

}  // namespace
}  // namespace reprise::cli
