#include "model/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace reprise {
namespace {

using testing::HasSubstr;

TEST(Limits, AreThoseOfTheApi) {
  const Limits limits;
  EXPECT_EQ(limits.max_payload_bytes, 1024U * 1024);
  EXPECT_EQ(limits.max_batch_jobs, 1000U);
  EXPECT_EQ(limits.max_batch_bytes, 16U * 1024 * 1024);
  EXPECT_EQ(limits.max_headers, 64U);
  EXPECT_EQ(limits.max_header_bytes, 4U * 1024);
  EXPECT_EQ(limits.max_key_bytes, 512U);
  EXPECT_EQ(limits.max_error_bytes, 16U * 1024);
  EXPECT_EQ(limits.max_claim_jobs, 1000U);
  EXPECT_EQ(limits.max_waiting_claims, 10'000U);
}

class GoodName : public testing::TestWithParam<std::string> {};

TEST_P(GoodName, IsTaken) {
  const Status checked = check_name("queue", GetParam());
  EXPECT_TRUE(checked) << checked.error().detail;
}

INSTANTIATE_TEST_SUITE_P(Names, GoodName,
                         testing::Values("a", "Z", "0", "orders", "a.b_c-D9", "0-", "a..b",
                                         std::string(200, 'x')));

class BadName : public testing::TestWithParam<std::string> {};

TEST_P(BadName, IsRefusedAndTheMessageSaysWhichNameItWas) {
  const Status checked = check_name("namespace", GetParam());
  ASSERT_FALSE(checked) << GetParam();
  EXPECT_EQ(checked.error().code, Errc::invalid_name);
  EXPECT_THAT(checked.error().detail, HasSubstr("namespace name"));
  EXPECT_THAT(checked.error().detail, HasSubstr(GetParam().substr(0, 64)));
}

INSTANTIATE_TEST_SUITE_P(Names, BadName,
                         testing::Values("", ".", "-a", "_a", " a", "a b", "a/b", "a*", "ä", "a\n",
                                         std::string("a\0b", 3), std::string(201, 'x'),
                                         std::string(1'000'000, 'x')));

TEST(NameMessage, StaysShortWhateverTheName) {
  EXPECT_LT(check_name("queue", std::string(1'000'000, 'x')).error().detail.size(), 200U);
}

}  // namespace
}  // namespace reprise
