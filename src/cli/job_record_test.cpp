#include "cli/job_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Terminal kPipe{};
constexpr Terminal kScreen{.out_is_tty = true};

std::string shown(const char* job, const Terminal& terminal) {
  return job_record(JsonView(job), terminal, Timestamp{});
}

TEST(JobRecord, PeopleSeeSchedulingWhereItIsNotTheDefault) {
  EXPECT_THAT(
      shown(R"({"fairness_key":"default","weight":1,"throttle_keys":[]})", kScreen),
      AllOf(Not(HasSubstr("fairness")), Not(HasSubstr("weight")), Not(HasSubstr("throttle"))));
  const auto text =
      shown(R"({"fairness_key":"a\u001b","weight":10,"throttle_keys":["x","y"]})", kScreen);
  EXPECT_THAT(text, HasSubstr("a\\u001b\n"));
  EXPECT_THAT(text, HasSubstr("10\n"));
  EXPECT_THAT(text, HasSubstr("x, y\n"));
}

TEST(JobRecord, PipedSchedulingIsAsInTheReply) {
  EXPECT_THAT(
      shown(R"({"fairness_key":"default","weight":1,"throttle_keys":["x","y"]})", kPipe),
      HasSubstr("fairness_key\tdefault\nweight\t1\nthrottle_keys.0\tx\nthrottle_keys.1\ty\n"));
  EXPECT_THAT(shown("{}", kPipe), Not(HasSubstr("fairness_key")));
}

}  // namespace
}  // namespace reprise::cli
