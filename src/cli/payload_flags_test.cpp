#include "cli/payload_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise::cli {
namespace {

using testing::HasSubstr;

TEST(PayloadOfVars, IsAnObjectInTheOrderGiven) {
  EXPECT_EQ(*payload_of_vars({"id=7", "a=x"}), R"({"id":"7","a":"x"})");
  EXPECT_EQ(*payload_of_vars({"z=", "a.b=c"}), R"({"z":"","a.b":"c"})");
  EXPECT_EQ(*payload_of_vars({"q=\"\\\n"}), R"({"q":"\"\\\n"})");
}

TEST(PayloadOfVars, TakesAnyValueAsJson) {
  EXPECT_EQ(*payload_of_vars({"id:=7", "n:=1.0", "o:={\"a\": [1e2, null]}", "t:=\"x\"", "z:=null"}),
            R"({"id":7,"n":1.0,"o":{"a": [1e2, null]},"t":"x","z":null})");
}

TEST(PayloadOfVars, OnlyTheFirstEqualsSignParts) {
  EXPECT_EQ(*payload_of_vars({"a=b=c", "u=http://x:=1"}), R"({"a":"b=c","u":"http://x:=1"})");
  EXPECT_EQ(*payload_of_vars({"a:b=c", "d::=1"}), R"({"a:b":"c","d:":1})");
}

TEST(PayloadOfVars, NamesWhatIsWrong) {
  const auto problem = [](const std::vector<std::string>& vars) {
    const auto payload = payload_of_vars(vars);
    return payload ? "none: " + *payload : payload.error().detail;
  };
  EXPECT_EQ(problem({"id"}), "--var id: write NAME=VALUE or NAME:=JSON");
  EXPECT_THAT(problem({"=x"}), HasSubstr("a name must stand before the ="));
  EXPECT_THAT(problem({":=1"}), HasSubstr("a name must stand before the ="));
  EXPECT_EQ(problem({"id=1", "id:=2"}), "--var id: is given twice");
  EXPECT_THAT(problem({"id:=x"}), HasSubstr("--var id: not valid JSON"));
  EXPECT_THAT(problem({"id:="}), HasSubstr("--var id: "));
  EXPECT_THAT(problem({"id:=1 2"}), HasSubstr("--var id: "));
  EXPECT_EQ(problem({"id=\xFF"}), "--var id: is not UTF-8");
}

}  // namespace
}  // namespace reprise::cli
