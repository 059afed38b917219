#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/random.h"

namespace reprise {
namespace {

using testing::Optional;

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(Base64, MatchesRfc4648) {
  const std::vector<std::pair<std::string, std::string>> vectors = {{"", ""},
                                                                    {"f", "Zg=="},
                                                                    {"fo", "Zm8="},
                                                                    {"foo", "Zm9v"},
                                                                    {"foob", "Zm9vYg=="},
                                                                    {"fooba", "Zm9vYmE="},
                                                                    {"foobar", "Zm9vYmFy"},
                                                                    {"\xFB\xFF", "+/8="}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(base64_encode(bytes), text);
    EXPECT_THAT(base64_decode(text), Optional(bytes));
  }
}

TEST(Base64, DecodesWhatItEncodes) {
  SeededRandom random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes(random.below(50), '\0');
    for (char& c : bytes) c = static_cast<char>(random.next_u64());
    ASSERT_THAT(base64_decode(base64_encode(bytes)), Optional(bytes));
  }
}

TEST(Base64, RefusesAnythingElse) {
  for (const auto* text : {"Z", "Zg", "Zg=", "Zm8", "Zg===", "====", "=", "Z===", "Zg==Zg==",
                           "Zm9v\n", "Zm 9", "Zm9-", "Zm9_", "Z=g=", "\xFF\xFF\xFF\xFF"}) {
    EXPECT_EQ(base64_decode(text), std::nullopt) << text;
  }
}

TEST(Base64, RefusesBitsThatBelongToNoByte) {
  EXPECT_EQ(base64_decode("Zh=="), std::nullopt);
  EXPECT_EQ(base64_decode("Zm9="), std::nullopt);
}

TEST(Utf8, AcceptsEveryLength) {
  EXPECT_TRUE(is_valid_utf8(""));
  EXPECT_TRUE(is_valid_utf8("plain"));
  EXPECT_TRUE(is_valid_utf8("\u0080\u07FF\u0800\uFFFF\U00010000\U0010FFFF"));
  EXPECT_TRUE(is_valid_utf8(std::string_view("\0", 1)));
}

TEST(Utf8, RefusesBadSequences) {
  for (const auto* bytes :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC3", "\xC3(", "\xE0\x9F\xBF", "\xE2\x82",
        "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF0\x9F\x98", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFE", "\xFF", "ok\xFF", "\xE2\x28\xA1"}) {
    EXPECT_FALSE(is_valid_utf8(bytes));
  }
}

TEST(Utf8, TellsTheLengthOfTheFirstCharacter) {
  EXPECT_EQ(utf8_character_bytes("ab"), 1U);
  EXPECT_EQ(utf8_character_bytes("\u00e9x"), 2U);
  EXPECT_EQ(utf8_character_bytes("\u20acx"), 3U);
  EXPECT_EQ(utf8_character_bytes("\U0001F600x"), 4U);
  EXPECT_EQ(utf8_character_bytes("\xFFx"), 0U);
  EXPECT_EQ(utf8_character_bytes(""), 0U);
}

TEST(Utf8, IsCutBetweenCharacters) {
  EXPECT_EQ(cut_at_character("abc", 3), "abc");
  EXPECT_EQ(cut_at_character("abc", 2), "ab");
  EXPECT_EQ(cut_at_character("a\u20acb", 4), "a\u20ac");
  EXPECT_EQ(cut_at_character("a\u20acb", 3), "a");
  EXPECT_EQ(cut_at_character("a\u20acb", 2), "a");
  EXPECT_EQ(cut_at_character("\u20ac", 2), "");
  EXPECT_EQ(cut_at_character("\U0001F600x", 3), "");
  EXPECT_EQ(cut_at_character("\x80\x80\x80\x80\x80\x80", 5), "\x80\x80\x80\x80\x80");
  EXPECT_EQ(cut_at_character("abc", 0), "");
}

TEST(EqualConstantTime, ComparesAllBytes) {
  EXPECT_TRUE(equal_constant_time("", ""));
  EXPECT_TRUE(equal_constant_time("secret", "secret"));
  EXPECT_FALSE(equal_constant_time("secret", "secreT"));
  EXPECT_FALSE(equal_constant_time("Secret", "secret"));
  EXPECT_FALSE(equal_constant_time("secret", "secret1"));
  EXPECT_FALSE(equal_constant_time("", "x"));
  EXPECT_FALSE(equal_constant_time("\x7F", "\xFF"));
}

std::optional<std::string> suggest(std::string_view typed) {
  static const std::vector<std::string> kCandidates = {"lease",     "ttl",      "max_jobs",
                                                       "max_bytes", "cooldown", "key_window"};
  return did_you_mean(typed, kCandidates);
}

TEST(DidYouMean, SeesSlipsOfTheFingers) {
  EXPECT_THAT(suggest("leese"), Optional(std::string("lease")));   // replaced
  EXPECT_THAT(suggest("leas"), Optional(std::string("lease")));    // left out
  EXPECT_THAT(suggest("leasee"), Optional(std::string("lease")));  // doubled
  EXPECT_THAT(suggest("laese"), Optional(std::string("lease")));   // swapped: one edit, not two
  EXPECT_THAT(suggest("tlt"), Optional(std::string("ttl")));
  EXPECT_THAT(suggest("maxjobs"), Optional(std::string("max_jobs")));
  EXPECT_THAT(suggest("keyWindow"), Optional(std::string("key_window")));
}

TEST(DidYouMean, IgnoresCase) {
  EXPECT_THAT(suggest("LEASE"), Optional(std::string("lease")));
  EXPECT_THAT(suggest("MaxBytes"), Optional(std::string("max_bytes")));
}

TEST(DidYouMean, PrefersTheClosest) {
  const std::vector<std::string> candidates = {"orders-1", "orders-12", "orders"};
  EXPECT_THAT(did_you_mean("order", candidates), Optional(std::string("orders")));
  EXPECT_THAT(did_you_mean("orders-13", candidates), Optional(std::string("orders-1")));
}

TEST(DidYouMean, KeepsQuietWhenNothingIsClose) {
  EXPECT_EQ(suggest("priority"), std::nullopt);
  EXPECT_EQ(suggest("x"), std::nullopt);
  EXPECT_EQ(suggest(""), std::nullopt);
  EXPECT_EQ(suggest(std::string(1 << 20, 'l')), std::nullopt);
  EXPECT_EQ(did_you_mean("lease", {}), std::nullopt);
}

TEST(ParseBytes, ReadsUnits) {
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("1048576"), 1048576U);
  EXPECT_EQ(parse_bytes("512B"), 512U);
  EXPECT_EQ(parse_bytes("64 KiB"), 65536U);
  EXPECT_EQ(parse_bytes("64KiB"), 65536U);
  EXPECT_EQ(parse_bytes("64k"), 65536U);
  EXPECT_EQ(parse_bytes("64kb"), 64000U);
  EXPECT_EQ(parse_bytes("16MiB"), 16U << 20);
  EXPECT_EQ(parse_bytes("16mib"), 16U << 20);
  EXPECT_EQ(parse_bytes("2 GB"), 2'000'000'000U);
  EXPECT_EQ(parse_bytes("1TiB"), std::uint64_t{1} << 40);
  EXPECT_EQ(parse_bytes("18446744073709551615"), kMax);
}

TEST(ParseBytes, RefusesEverythingElse) {
  for (const auto* text : {"", " ", "KiB", "-1", "+1", "1.5MiB", "64 XiB", "64  KiB", "64KiB ",
                           " 64", "64KiBB", "18446744073709551616", "16777216TiB", "1e3", "0x10"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

TEST(FormatBytes, UsesTheLargestUnitBelowTheValue) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1 KiB");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(64 << 10), "64 KiB");
  EXPECT_EQ(format_bytes((1 << 20) - 1), "1 MiB");
  EXPECT_EQ(format_bytes(16 << 20), "16 MiB");
  EXPECT_EQ(format_bytes(kMax), "16 EiB");
}

TEST(ShellQuoted, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(shell_quoted("/var/lib/reprise-1.0"), "/var/lib/reprise-1.0");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("two words"), "'two words'");
  EXPECT_EQ(shell_quoted("it's $HOME"), R"('it'\''s $HOME')");
}

}  // namespace
}  // namespace reprise
