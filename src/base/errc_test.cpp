#include "base/errc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace reprise {
namespace {

TEST(Errc, EachHasItsOwnWireName) {
  std::set<std::string_view> names;
  for (const ErrcInfo& info : all_errcs()) {
    EXPECT_TRUE(names.insert(info.wire_name).second) << info.wire_name << " occurs twice";
  }
}

TEST(Errc, WireNamesAreSnakeCase) {
  for (const ErrcInfo& info : all_errcs()) {
    EXPECT_FALSE(info.wire_name.empty());
    EXPECT_EQ(info.wire_name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"),
              std::string_view::npos)
        << info.wire_name;
  }
}

TEST(Errc, EachHasAnHttpErrorStatus) {
  for (const ErrcInfo& info : all_errcs()) {
    EXPECT_GE(info.http_status, 400) << info.wire_name;
    EXPECT_LE(info.http_status, 599) << info.wire_name;
  }
}

TEST(Errc, IsFoundByCodeAndByWireName) {
  for (const ErrcInfo& info : all_errcs()) {
    EXPECT_EQ(errc_info(info.code).wire_name, info.wire_name);
    EXPECT_EQ(errc_from_wire_name(info.wire_name), info.code);
  }
}

TEST(Errc, UnknownWireNameIsInternal) {
  EXPECT_EQ(errc_from_wire_name("from_a_newer_server"), Errc::internal);
  EXPECT_EQ(errc_from_wire_name(""), Errc::internal);
}

TEST(Errc, TableCoversTheEnumToItsEnd) {
  EXPECT_EQ(all_errcs().size(), static_cast<std::size_t>(Errc::internal) + 1);
  EXPECT_EQ(all_errcs().back().code, Errc::internal);
}

}  // namespace
}  // namespace reprise
