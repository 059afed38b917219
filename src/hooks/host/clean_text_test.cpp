#include "hooks/host/clean_text.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace reprise::hooks {
namespace {

TEST(CleanText, LeavesGoodTextAlone) {
  EXPECT_EQ(clean_text("", 10), "");
  EXPECT_EQ(clean_text("h\xC3\xA9llo", 10), "h\xC3\xA9llo");
  EXPECT_EQ(clean_text("0123456789", 10), "0123456789");
}

TEST(CleanText, ReplacesWhatIsNoCharacterOrControls) {
  EXPECT_EQ(clean_text("a\xFF\xC3", 100), "a\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(clean_text("a\nb\tc\x1B[31m\x7F", 100), "a b c [31m ");
}

TEST(CleanText, ShortensAtCharacters) {
  EXPECT_EQ(clean_text("0123456789x", 10), "0123456...");
  for (std::size_t most = 3; most < 40; ++most) {
    const std::string text = clean_text(
        "\xF0\x9F\x98\x80\xF0\x9F\x98\x80\xC3\xA9\xC3\xA9\xFF\xFFxyzxyzxyzxyz"
        "xyzxyzxyz",
        most);
    EXPECT_LE(text.size(), most);
    EXPECT_TRUE(is_valid_utf8(text));
  }
}

}  // namespace
}  // namespace reprise::hooks
