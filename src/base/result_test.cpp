#include "base/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "base/check.h"

namespace reprise {
namespace {

Status fails_with(Errc code) { return Error{code, "why"}; }

Status passes_on(Status status, bool& went_on) {
  REPRISE_TRY(status);
  went_on = true;
  return ok();
}

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> value = 5;
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, 5);
  const Result<int> error = Error{Errc::io, "disk"};
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error(), (Error{Errc::io, "disk"}));
}

TEST(Result, TryPassesTheErrorOn) {
  bool went_on = false;
  const Status status = passes_on(fails_with(Errc::queue_full), went_on);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::queue_full);
  EXPECT_FALSE(went_on);
}

TEST(Result, TryGoesOnAfterSuccess) {
  bool went_on = false;
  EXPECT_TRUE(passes_on(ok(), went_on));
  EXPECT_TRUE(went_on);
}

TEST(Result, ValueOfAnErrorThrowsWithItsDetail) {
  const Result<int> error = Error{Errc::io, "no space on disk"};
  EXPECT_THAT([&] { (void)error.value(); },
              testing::ThrowsMessage<std::logic_error>(testing::HasSubstr("no space on disk")));
}

TEST(CheckDeathTest, FailureNamesConditionAndPlace) {
  EXPECT_DEATH(REPRISE_CHECK(1 + 1 == 3), "1 \\+ 1 == 3 \\(.*result_test.cpp:[0-9]+\\)");
}

TEST(Check, PassesQuietly) { REPRISE_CHECK(1 + 1 == 2); }

}  // namespace
}  // namespace reprise
