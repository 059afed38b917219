#include "cli/table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reprise::cli {
namespace {

constexpr Terminal kPipe{};
constexpr Terminal kScreen{.out_is_tty = true, .columns = 40};

std::vector<Column> columns() {
  return {{.title = "NAME"},
          {.title = "COUNT", .align = Column::Align::right, .may_be_left_out = true},
          {.title = "TEXT", .may_be_cut = true}};
}

TEST(Table, PipedIsTabsWithoutPadding) {
  Table table(columns(), kPipe, true);
  table.add({Cell("a"), Cell("1"), Cell(std::string(100, 'x'))});
  table.add({Cell("longer"), Cell(""), Cell("tab\there")});
  EXPECT_EQ(table.take_text(),
            "NAME\tCOUNT\tTEXT\na\t1\t" + std::string(100, 'x') + "\nlonger\t-\ttab\\there\n");
}

TEST(Table, TheHeaderIsOptional) {
  Table table(columns(), kPipe, false);
  table.add({Cell("a"), Cell("1"), Cell("x")});
  EXPECT_EQ(table.take_text(), "a\t1\tx\n");
}

TEST(Table, AlignsOnATerminal) {
  Table table(columns(), kScreen, true);
  table.add({Cell("日本"), Cell("7"), Cell("x")});
  table.add({Cell("abcdef"), Cell("1234567"), Cell("y")});
  EXPECT_EQ(table.take_text(),
            "NAME      COUNT  TEXT\n"
            "日本          7  x\n"
            "abcdef  1234567  y\n");
}

TEST(Table, CutsToTheTerminal) {
  Table table(columns(), kScreen, false);
  table.add({Cell("abc"), Cell("1"), Cell(std::string(100, 'x'))});
  EXPECT_EQ(table.take_text(), "abc  1  " + std::string(31, 'x') + "…\n");
}

TEST(Table, LeavesOutColumnsOnANarrowTerminal) {
  Terminal narrow = kScreen;
  narrow.columns = 20;
  Table table(columns(), narrow, true);
  table.add({Cell("abc"), Cell("1"), Cell(std::string(100, 'x'))});
  EXPECT_EQ(table.take_text(), "NAME  TEXT\nabc   " + std::string(13, 'x') + "…\n");
}

TEST(Table, PagesShareTheHeaderAndTheWidths) {
  Table table(columns(), kScreen, true);
  table.add({Cell("abcdef"), Cell("1"), Cell("x")});
  EXPECT_EQ(table.take_text(), "NAME    COUNT  TEXT\nabcdef      1  x\n");
  table.add({Cell("a"), Cell("2"), Cell("y")});
  EXPECT_EQ(table.take_text(), "a           2  y\n");
  EXPECT_EQ(table.take_text(), "");
}

TEST(Table, ColoursOnlyWhenAskedTo) {
  Terminal colourful = kScreen;
  colourful.colour = true;
  Table table({{.title = "A"}}, colourful, false);
  table.add({Cell("x", Style::red)});
  EXPECT_EQ(table.take_text(), "\x1b[31mx\x1b[0m\n");
}

TEST(Cell, ShowsJsonAsJson) {
  EXPECT_EQ(Cell::json("{\n\"a\":1}").text(), "{ \"a\":1}");
  EXPECT_EQ(Cell::json("").text(), "-");
  EXPECT_EQ(Cell("\x1b").text(), "\\u001b");
}

TEST(Record, PipedIsPathsAndValues) {
  Record record(kPipe);
  record.section("Jobs");
  record.field("stats.pending", "pending", Cell("2"));
  record.field("config.ttl", "ttl", Cell(""));
  EXPECT_EQ(record.text(), "FIELD\tVALUE\nstats.pending\t2\nconfig.ttl\t-\n");
}

TEST(Record, OnATerminalItHasSections) {
  Record record(kScreen);
  record.section("Jobs");
  record.field("stats.pending", "pending", Cell("2"));
  record.section("Config");
  record.field("config.ttl", "ttl", Cell("1h"));
  EXPECT_EQ(record.text(), "Jobs\n  pending  2\n\nConfig\n  ttl      1h\n");
}

}  // namespace
}  // namespace reprise::cli
