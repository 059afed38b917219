#include "storage/rocksdb/table_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reprise::storage {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names(const std::vector<TableRanges::Table>& tables) {
  std::vector<std::string> names;
  for (const auto& table : tables) names.push_back(table.path);
  return names;
}

TEST(TableRanges, OfNoTablesHoldNothing) {
  const TableRanges none({});
  EXPECT_FALSE(none.may_hold("a"));
  EXPECT_THAT(none.alone(), IsEmpty());
}

TEST(TableRanges, ReachFromTheFirstKeyToTheLastOfEachTable) {
  const TableRanges ranges({{.first = "m", .last = "p"}, {.first = "c", .last = "e"}});
  for (const char* key : {"c", "d", "e", "m", "n", "p"}) EXPECT_TRUE(ranges.may_hold(key)) << key;
  for (const char* key : {"", "b", "e0", "f", "lz", "p0", "z"}) {
    EXPECT_FALSE(ranges.may_hold(key)) << key;
  }
}

TEST(TableRanges, OfALongTableReachOverShortOnes) {
  const TableRanges ranges(
      {{.first = "a", .last = "m"}, {.first = "b", .last = "c"}, {.first = "d", .last = "d"}});
  for (const char* key : {"a", "c0", "d", "e", "m"}) EXPECT_TRUE(ranges.may_hold(key)) << key;
  EXPECT_FALSE(ranges.may_hold("n"));
}

TEST(TableRanges, AloneAreThoseThatShareNoKeyWithAnother) {
  EXPECT_THAT(names(TableRanges({{.first = "a", .last = "b", .path = "1"},
                                 {.first = "c", .last = "m", .path = "2"},
                                 {.first = "e", .last = "f", .path = "3"},
                                 {.first = "l", .last = "n", .path = "4"},
                                 {.first = "o", .last = "p", .path = "5"},
                                 {.first = "p", .last = "q", .path = "6"},
                                 {.first = "r", .last = "r", .path = "7"}})
                        .alone()),
              ElementsAre("1", "7"));
}

}  // namespace
}  // namespace reprise::storage
