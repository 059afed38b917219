#include "cli/key_record.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Terminal kPipe{};
constexpr Terminal kScreen{.out_is_tty = true};
constexpr char kNoOther[] = R"({"pending":0,"active":0,"delivered":0,"share":0})";
constexpr char kDefault[] =
    R"({"key":"default","pending":120,"active":1,"weight":1,"delivered":601,"share":0.2})";
constexpr char kAcme[] =
    R"({"key":"acme","pending":812,"active":3,"weight":3,"delivered":1804,"share":0.6})";
constexpr char kGone[] =
    R"({"key":"zeta","pending":0,"active":0,"weight":null,"delivered":601,"share":0.2})";

std::string keys(std::string_view top, std::string_view other = kNoOther) {
  return fmt::format(R"({{"active":2,"top":[{}],"other":{}}})", top, other);
}

std::string shown(const std::string& keys, const Terminal& terminal) {
  Record record(terminal);
  add_keys(record, JsonView(keys), terminal);
  return record.text();
}

TEST(KeyRecord, PeopleReadATable) {
  EXPECT_EQ(shown(keys(fmt::format("{},{},{}", kAcme, kDefault, kGone)), kScreen),
            "Keys: 2 with jobs; delivered in the last minute\n"
            "  KEY      PENDING  ACTIVE  WEIGHT  DELIVERED  SHARE\n"
            "  acme         812       3       3       1804    60%\n"
            "  default      120       1       1        601    20%\n"
            "  zeta           0       0       -        601    20%\n");
}

TEST(KeyRecord, TheOthersHaveARowWhenThereAreSome) {
  EXPECT_THAT(shown(keys(kAcme), kScreen), Not(HasSubstr("(other)")));
  EXPECT_THAT(shown(keys(kAcme, R"({"pending":7,"active":0,"delivered":0,"share":0})"), kScreen),
              HasSubstr("\n  (other)        7       0       -          0     0%\n"));
  EXPECT_THAT(
      shown(keys(kAcme, R"({"pending":0,"active":0,"delivered":9,"share":0.004})"), kScreen),
      HasSubstr("(other)"));
}

TEST(KeyRecord, NobodyReadsAboutKeysWhereNobodyNamesThem) {
  for (const std::string& told : {keys(kDefault), keys(""), std::string("null"), std::string()}) {
    EXPECT_EQ(shown(told, kScreen), "") << told;
  }
}

TEST(KeyRecord, AKeyCannotDriveATerminalAndIsCutToItsWidth) {
  const std::string nasty =
      fmt::format(R"({{"key":"\u001b[31m{:x>200}","pending":1,"share":1}})", "");
  const Terminal narrow{.out_is_tty = true, .columns = 60};
  const std::string text = shown(keys(nasty), narrow);
  EXPECT_THAT(text, HasSubstr("  \\u001b[31mx"));
  EXPECT_THAT(text, Not(HasSubstr(std::string(60, 'x'))));
}

TEST(KeyRecord, PipedItIsAsDeepAsTheReply) {
  EXPECT_EQ(shown(keys(kDefault), kPipe),
            "FIELD\tVALUE\n"
            "stats.keys.active\t2\n"
            "stats.keys.top.0.key\tdefault\n"
            "stats.keys.top.0.pending\t120\n"
            "stats.keys.top.0.active\t1\n"
            "stats.keys.top.0.weight\t1\n"
            "stats.keys.top.0.delivered\t601\n"
            "stats.keys.top.0.share\t0.2\n"
            "stats.keys.other.pending\t0\n"
            "stats.keys.other.active\t0\n"
            "stats.keys.other.delivered\t0\n"
            "stats.keys.other.share\t0\n");
  EXPECT_EQ(shown("", kPipe), "FIELD\tVALUE\n");
}

}  // namespace
}  // namespace reprise::cli
