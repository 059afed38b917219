#include "model/error_fingerprint.h"

#include <gtest/gtest.h>

#include "base/ids.h"
#include "base/random.h"
#include "base/text.h"

namespace reprise {
namespace {

struct Normal {
  std::string_view error;
  std::string_view form;
};

class NormalForm : public testing::TestWithParam<Normal> {};

TEST_P(NormalForm, IsAsExpected) { EXPECT_EQ(normalize_error(GetParam().error), GetParam().form); }

INSTANTIATE_TEST_SUITE_P(Plain, NormalForm,
                         testing::Values(Normal{"", ""}, Normal{"timeout", "timeout"},
                                         Normal{"a.b: c!", "a.b: c!"},
                                         Normal{"größer als möglich", "größer als möglich"},
                                         Normal{"<n>", "<n>"}));

INSTANTIATE_TEST_SUITE_P(
    Numbers, NormalForm,
    testing::Values(Normal{"timeout after 31 ms", "timeout after <n> ms"},
                    Normal{"took 1.5s", "took <n>s"}, Normal{"took 30s", "took <n>s"},
                    Normal{"exit code -9", "exit code <n>"}, Normal{"(+3)", "(<n>)"},
                    Normal{"x=-1.5e-3,", "x=<n>,"}, Normal{"1e5", "<n>"},
                    Normal{"2E+8 Hz", "<n> Hz"}, Normal{"1e", "<n>e"}, Normal{"1e-", "<n>e-"},
                    Normal{"1.", "<n>."}, Normal{"no. 7. Next", "no. <n>. Next"},
                    Normal{"10.0.0.1:5432 refused", "<n>:<n> refused"},
                    Normal{"host-17", "host-<n>"}, Normal{"host17 down", "host<n> down"},
                    Normal{"2026-01-31T08:15:00.250Z", "<n>-<n>-<n>T<n>:<n>:<n>Z"},
                    Normal{"12345678901234567890123", "<n>"}, Normal{"12345678", "<n>"},
                    Normal{"line 3 - 4", "line <n> - <n>"}, Normal{"-", "-"}, Normal{"-x", "-x"},
                    Normal{"sha256WithRSAEncryption", "sha<n>WithRSAEncryption"}));

INSTANTIATE_TEST_SUITE_P(
    Ids, NormalForm,
    testing::Values(Normal{"at 0x7ffee4b0", "at <id>"}, Normal{"0XAB", "<id>"},
                    Normal{"0x", "<n>x"}, Normal{"0xyz", "<n>xyz"},
                    Normal{"commit 3f9a0c51d2e88b17 gone", "commit <id> gone"},
                    Normal{"trace deadbee1", "trace <id>"}, Normal{"deadbeef", "deadbeef"},
                    Normal{"ab12cd", "ab<n>cd"},
                    Normal{"user 550e8400-e29b-41d4-a716-446655440000!", "user <id>!"},
                    Normal{"12345678-1234-1234-1234-123456789012", "<id>"},
                    Normal{"12345678-1234-1234-1234-1234567890123", "<n>-<n>-<n>-<n>-<n>"},
                    Normal{"job 7ZK3M9QAX2B4C lost", "job <id> lost"},
                    Normal{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "<id>"},
                    Normal{"ch_3MtwBwLkdIwHu7ix28a3tqPa", "ch_<id>"},
                    Normal{"NOSUCHTABLEXX", "NOSUCHTABLEXX"},
                    Normal{"SERVERBUSY42X", "SERVERBUSY<n>X"}));

INSTANTIATE_TEST_SUITE_P(Quotes, NormalForm,
                         testing::Values(Normal{"no file '/tmp/a b'", "no file '<…>'"},
                                         Normal{R"({"a": "b"})", R"({"<…>": "<…>"})"},
                                         Normal{"run `make all`", "run `<…>`"},
                                         Normal{"key ''", "key '<…>'"},
                                         Normal{"cannot stat ‘x’", "cannot stat ‘<…>’"},
                                         Normal{"“a” «b»", "“<…>” «<…>»"},
                                         Normal{"文件“甲”", "文件“<…>”"},
                                         Normal{R"(say "a \" b" now)", R"(say "<…>" now)"},
                                         Normal{"KeyError: b'abc'", "KeyError: b'<…>'"},
                                         Normal{"'it isn't here' 5", "'<…>' <n>"}));

INSTANTIATE_TEST_SUITE_P(
    NoQuotes, NormalForm,
    testing::Values(Normal{"can't open 'a' and 'b'", "can't open '<…>' and '<…>'"},
                    Normal{"don't, won't", "don't, won't"},
                    Normal{"the users' files' names", "the users' files' names"},
                    Normal{"can’t, won’t", "can’t, won’t"},
                    Normal{"l'été d'Anaïs", "l'été d'Anaïs"},
                    Normal{"unclosed 'quote", "unclosed 'quote"},
                    Normal{"unclosed \"a 5", "unclosed \"a <n>"}, Normal{"'", "'"},
                    Normal{"a 5\" pipe \"x\"", "a <n>\" pipe \"<…>\""},
                    Normal{"'ends in \\", "'ends in \\"}));

INSTANTIATE_TEST_SUITE_P(WhiteSpace, NormalForm,
                         testing::Values(Normal{"  a \t\r\n b\v", "a b"}, Normal{" \n ", ""},
                                         Normal{std::string_view("a\0b\x7f", 4), "a b"}));

INSTANTIATE_TEST_SUITE_P(BadBytes, NormalForm,
                         testing::Values(Normal{"a\xff\xfe", "a\uFFFD\uFFFD"},
                                         Normal{"\xe2\x82", "\uFFFD\uFFFD"},
                                         Normal{"'\xff' \xc3", "'<…>' \uFFFD"}));

TEST(NormalForm, IsCutBetweenCharactersAndPlaceholders) {
  EXPECT_EQ(normalize_error(std::string(1000, 'x')), std::string(200, 'x'));
  const std::string nearly(198, 'x');
  EXPECT_EQ(normalize_error(nearly + " yz"), nearly + " y");
  EXPECT_EQ(normalize_error(nearly + "x yz"), nearly + "x");
  EXPECT_EQ(normalize_error(nearly + " 17"), nearly);
  EXPECT_EQ(normalize_error(nearly + "éé é"), nearly + "éé");
  EXPECT_EQ(normalize_error(nearly + "-'quoted'"), nearly + "-");
}

TEST(NormalForm, AnyBytesGiveShortUtf8) {
  // Few kinds of bytes, so that quotes, ids and broken characters meet often.
  constexpr std::string_view kBytes = "'\"`\\ -+.0179aexXZ\n\xe2\x80\x98\x99\xc3\xff";
  SeededRandom random(11);
  for (int i = 0; i < 20000; ++i) {
    std::string error(random.below(400), '\0');
    for (char& c : error) c = kBytes[random.below(kBytes.size())];
    const std::string form = normalize_error(error);
    ASSERT_TRUE(is_valid_utf8(form)) << error;
    ASSERT_LE(form.size(), 4 * kNormalErrorChars);
    ASSERT_EQ(form.find_first_of("0179\n"), form.npos) << error;
  }
}

TEST(NormalForm, OurIdsAreTakenOut) {
  int kept = 0;
  for (Seq seq = 1; seq <= 10000; ++seq) {
    kept += normalize_error("job " + encode_job_id(seq) + " failed") != "job <id> failed";
  }
  // Those that are letters only, and look like words.
  EXPECT_LT(kept, 100);
}

TEST(ErrorFingerprint, IsOfWhatStaysTheSame) {
  EXPECT_EQ(error_fingerprint("timeout after 31 ms on host 'db-4'", ""),
            error_fingerprint("timeout after 7 ms on  host 'db-1'\n", ""));
  EXPECT_NE(error_fingerprint("timeout", ""), error_fingerprint("time out", ""));
  EXPECT_NE(error_fingerprint("timeout", ""), error_fingerprint("timeout", "Timeout"));
  EXPECT_NE(error_fingerprint("ab", "c"), error_fingerprint("a", "bc"));
}

// Stored in everybody's data: these may not change.
TEST(ErrorFingerprint, KeepsItsValues) {
  EXPECT_EQ(format_fingerprint(error_fingerprint("", "")), "af63bd4c8601b7df");
  EXPECT_EQ(format_fingerprint(error_fingerprint("timeout", "")), "e41131c84e61a318");
  EXPECT_EQ(format_fingerprint(error_fingerprint("timeout after 31 ms on host 'db-4'", "Timeout")),
            "1b3d2698dd4891f6");
}

TEST(ErrorFingerprint, IsWrittenAndRead) {
  EXPECT_EQ(format_fingerprint(0), "0000000000000000");
  EXPECT_EQ(format_fingerprint(0x3f9a0c51d2e88b17), "3f9a0c51d2e88b17");
  EXPECT_EQ(parse_fingerprint("3f9a0c51d2e88b17"), 0x3f9a0c51d2e88b17U);
  EXPECT_EQ(parse_fingerprint("FFFFFFFFFFFFFFFF"), ~std::uint64_t{0});
  for (const auto* text : {"", "3f9a", "3f9a0c51d2e88b1g", "0x9a0c51d2e88b17", "-f9a0c51d2e88b17",
                           "3f9a0c51d2e88b170"}) {
    EXPECT_EQ(parse_fingerprint(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace reprise
