#include "cli/escape.h"

#include <gtest/gtest.h>

#include <string>

#include "base/json.h"

namespace reprise::cli {
namespace {

TEST(Escape, OutputKeepsItsLinesAndTabs) {
  EXPECT_EQ(escape_output("a\tb\n\n\x1b[31mc\r\n"), "a\tb\n\n\\u001b[31mc\\r\n");
  EXPECT_EQ(escape_output(""), "");
  EXPECT_EQ(escape_output("\xff"), "\\xff");
}

TEST(Escape, LeavesOrdinaryTextAlone) {
  EXPECT_EQ(escape_text("plain é 日本 \\n"), "plain é 日本 \\n");
}

TEST(Escape, NoControlReachesATerminal) {
  EXPECT_EQ(escape_text("\x1b[31mred\n\t\r"), "\\u001b[31mred\\n\\t\\r");
  EXPECT_EQ(escape_text(std::string_view("\0\x7f", 2)), "\\u0000\\u007f");
  EXPECT_EQ(escape_text("\xc2\x9b"
                        "31m"),
            "\\u009b31m");  // CSI in one character
  EXPECT_EQ(escape_text("a\xe2\x80\xae"
                        "b"),
            "a\\u202eb");  // right-to-left override
}

TEST(Escape, BytesThatAreNotUtf8AreShown) {
  EXPECT_EQ(escape_text("\xff"
                        "a\xc3"),
            "\\xffa\\xc3");
  EXPECT_EQ(escape_text("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
}

TEST(Escape, JsonStaysTheSameJsonOnOneLine) {
  const std::string json = "{\"a\":\r\n\t[1,\n\"x\x7f\xc2\x9b\"]}";
  const std::string escaped = escape_json(json);
  EXPECT_EQ(escaped, "{\"a\":   [1, \"x\\u007f\\u009b\"]}");
  EXPECT_EQ(Json::parse(escaped)->dump(), Json::parse(json)->dump());
}

TEST(Escape, MeasuresColumns) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("日本"), 4U);
  EXPECT_EQ(display_width("e\xcc\x81"), 1U);  // e and a combining accent
}

TEST(Escape, CutsToColumns) {
  EXPECT_EQ(cut_to_width("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_to_width("abcdef", 4), "abc…");
  EXPECT_EQ(cut_to_width("日本語", 4), "日…");
  EXPECT_EQ(cut_to_width("abc", 0), "");
}

}  // namespace
}  // namespace reprise::cli
