#include "model/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/text.h"

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

TEST(NameMessage, CutsNoCharacterInTwo) {
  for (std::size_t before = 58; before < 66; ++before) {
    const std::string name = std::string(before, 'x') + "\xE2\x82\xAC and more";
    EXPECT_TRUE(is_valid_utf8(check_name("queue", name).error().detail)) << before;
  }
}

TEST(SchedulingKey, IsAnyTextThatIsNotTooLong) {
  for (const std::string& key : {std::string("a"), std::string("customer:7 / \xE2\x82\xAC"),
                                 std::string("\0", 1), std::string(200, 'x')}) {
    EXPECT_EQ(scheduling_key_problem(key), "") << key;
  }
}

TEST(SchedulingKey, IsRefusedWithWhatIsWrong) {
  EXPECT_EQ(scheduling_key_problem(""), "must not be empty");
  EXPECT_EQ(scheduling_key_problem(std::string(201, 'x')),
            "has 201 bytes, at most 200 are allowed");
  EXPECT_EQ(scheduling_key_problem("a\xFF"), "is not valid UTF-8");
}

TEST(EventType, IsAnyTextThatCanBeShown) {
  for (const std::string& type :
       {std::string("a"), std::string("Order created / \xE2\x82\xAC"), std::string(200, 'x')}) {
    EXPECT_EQ(event_type_problem(type), "") << type;
  }
}

TEST(EventType, IsRefusedWithWhatIsWrong) {
  EXPECT_EQ(event_type_problem(""), "must not be empty");
  EXPECT_EQ(event_type_problem(std::string(201, 'x')), "has 201 bytes, at most 200 are allowed");
  EXPECT_EQ(event_type_problem("a\xFF"), "is not valid UTF-8");
  for (const std::string& type : {std::string("a\nb"), std::string("\0", 1), std::string("\x7F")}) {
    EXPECT_EQ(event_type_problem(type), "must not hold control characters");
  }
}

}  // namespace
}  // namespace reprise
