#include "worker/output_tail.h"

#include <gtest/gtest.h>

#include <string>

#include "base/text.h"

namespace reprise::worker {
namespace {

std::string tail_of(std::string_view text, std::size_t bytes = OutputTail::kMaxBytes,
                    std::size_t lines = OutputTail::kMaxLines) {
  OutputTail tail(bytes, lines);
  tail.append(text);
  return tail.text();
}

TEST(OutputTail, IsAllThatIsShort) {
  EXPECT_EQ(tail_of(""), "");
  EXPECT_EQ(tail_of("one\ntwo"), "one\ntwo");
}

TEST(OutputTail, LeavesOutLineEndsAtTheEnd) {
  EXPECT_EQ(tail_of("one\r\n\n\n"), "one");
  EXPECT_EQ(tail_of("\n\n"), "");
}

TEST(OutputTail, KeepsControlCharacters) {
  const std::string text("\x1b[31mred\x1b[0m\t\0!", 15);
  EXPECT_EQ(tail_of(text), text);
}

TEST(OutputTail, IsTheLastLines) {
  EXPECT_EQ(tail_of("1\n2\n3\n4\n", 100, 2), "3\n4");
  EXPECT_EQ(tail_of("1\n2", 100, 2), "1\n2");
  EXPECT_EQ(tail_of("\n2\n3", 100, 2), "2\n3");
}

TEST(OutputTail, BeginsWithAWholeLine) {
  EXPECT_EQ(tail_of("first\nsecond\nthird\n", 15), "second\nthird");
  EXPECT_EQ(tail_of("first\nsecond\nthird", 9), "third");
}

TEST(OutputTail, BeginsWithAWholeCharacterInALongLine) {
  EXPECT_EQ(tail_of("aéé", 4), "éé");
  EXPECT_EQ(tail_of("aéé", 3), "é");
  EXPECT_EQ(tail_of("a€€", 5), "€");
}

TEST(OutputTail, IsValidUtf8) {
  EXPECT_EQ(tail_of("a\xff\xfe z\xc3"), "a?? z?");
  EXPECT_EQ(tail_of(std::string(100, '\x80'), 10), "???????");
}

TEST(OutputTail, IsTheSameHoweverItComes) {
  std::string all;
  for (int i = 0; i < 5000; ++i) all += "line " + std::to_string(i) + " é\n";
  for (const std::size_t piece : {1UL, 7UL, 4096UL, 10'000UL}) {
    OutputTail tail;
    for (std::size_t at = 0; at < all.size(); at += piece) {
      tail.append(std::string_view(all).substr(at, piece));
    }
    EXPECT_TRUE(tail.text().starts_with("line 4980 é\nline 4981")) << piece;
    EXPECT_TRUE(tail.text().ends_with("line 4999 é")) << piece;
  }
}

TEST(OutputTail, OfAVeryLongLineIsItsEnd) {
  OutputTail tail;
  for (int i = 0; i < 1000; ++i) tail.append(std::string(1000, 'x'));
  tail.append("end\n");
  const std::string text = tail.text();
  EXPECT_GE(text.size(), OutputTail::kMaxBytes - 1);
  EXPECT_LE(text.size(), OutputTail::kMaxBytes);
  EXPECT_TRUE(text.ends_with("xxend"));
  EXPECT_TRUE(is_valid_utf8(text));
}

}  // namespace
}  // namespace reprise::worker
