#include "cli/dead_letter_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise::cli {
namespace {

using spool::DeadLetter;
using ::testing::ElementsAre;

DeadLetter letter(std::string id, std::string name = {}) {
  DeadLetter made;
  made.name = name.empty() ? id + ".json" : std::move(name);
  made.id = std::move(id);
  return made;
}

class FindDeadLetter : public ::testing::Test {
 protected:
  std::string found(std::string_view given) {
    const auto result = find_dead_letter(letters, given);
    if (!result) return std::string(errc_info(result.error().code).wire_name);
    return *result == nullptr ? "none" : (*result)->name;
  }

  std::vector<DeadLetter> letters{
      letter("01KA5QH3M5T6W0V8Z2Y4X6C8B1"), letter("01KA5QH3M5T6W0V8Z2Y4X6C8B2"),
      letter("01KB0000000000000000000000"), letter("bad", "bad.raw"),
      letter("01KC0000000000000000000000"), letter("01KC0000000000000000000000", "copy.json")};
};

TEST_F(FindDeadLetter, WholeOrByAPrefixInAnyCase) {
  EXPECT_EQ(found("01KA5QH3M5T6W0V8Z2Y4X6C8B2"), "01KA5QH3M5T6W0V8Z2Y4X6C8B2.json");
  EXPECT_EQ(found("01kb"), "01KB0000000000000000000000.json");
  EXPECT_EQ(found("01KZ"), "none");
}

TEST_F(FindDeadLetter, WhatFitsSeveralIsListed) {
  EXPECT_EQ(found("01KA5"), "ambiguous_id");
  EXPECT_THAT(find_dead_letter(letters, "01KA5").error().matches,
              ElementsAre("01KA5QH3M5T6W0V8Z2Y4X6C8B1", "01KA5QH3M5T6W0V8Z2Y4X6C8B2"));
}

TEST_F(FindDeadLetter, APrefixHasFourCharacters) {
  EXPECT_EQ(found("01K"), "invalid_field");
  EXPECT_EQ(found("bad"), "bad.raw");
}

TEST_F(FindDeadLetter, TwoOfOneIdAreToldApartByTheirFiles) {
  EXPECT_EQ(found("01KC0000000000000000000000"), "01KC0000000000000000000000.json");
  EXPECT_EQ(found("copy"), "copy.json");
  EXPECT_EQ(found("copy.json"), "copy.json");
}

}  // namespace
}  // namespace reprise::cli
