#include "server/json_scanner.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/json_problem.h"
#include "base/random.h"
#include "base/text.h"

namespace reprise::server {
namespace {

bool scans(std::string_view text) {
  JsonScanner scanner(text);
  scanner.raw_value();
  return !scanner.failed() && scanner.at_end();
}

// A few random bytes of `text` replaced, inserted or removed.
std::string edited(std::string text, SeededRandom& random) {
  static constexpr std::string_view kBytes = "{}[]\",:\\ \n0123456789.eE+-truefalsnu\x01\x80\xC3";
  for (std::uint64_t edits = 1 + random.below(3); edits > 0 && !text.empty(); --edits) {
    const std::size_t at = random.below(text.size());
    const char byte = kBytes[random.below(kBytes.size())];
    switch (random.below(3)) {
      case 0:
        text[at] = byte;
        break;
      case 1:
        text.insert(at, 1, byte);
        break;
      default:
        text.erase(at, 1);
    }
  }
  return text;
}

TEST(JsonScanner, RawValueIsTheValueByteForByteWithoutTheBlanksAroundIt) {
  for (const std::string_view value :
       {"1.0", "123456789012345678901234567890", "-0", "1E400", R"("a\u00e9b")", "[ 1 , {} ]",
        R"({"b":1,"a":2,"a":3})", "null", "true"}) {
    const std::string text = " \n" + std::string(value) + "\t ";
    JsonScanner scanner(text);
    EXPECT_EQ(scanner.raw_value(), value);
    EXPECT_TRUE(scanner.at_end());
  }
}

TEST(JsonScanner, AValueThatWasWalkedThroughCanBeHadWhole) {
  JsonScanner scanner(R"([ {"a": [1] , "b":2 } , 3])");
  ASSERT_TRUE(scanner.begin_array());
  ASSERT_TRUE(scanner.next_element());
  const std::size_t begin = scanner.position();
  ASSERT_TRUE(scanner.begin_object());
  while (scanner.next_member()) scanner.raw_value();
  EXPECT_EQ(scanner.since(begin), R"({"a": [1] , "b":2 })");
  ASSERT_TRUE(scanner.next_element());
  EXPECT_EQ(scanner.raw_value(), "3");
}

// Wherever it stands, and however many bytes are looked at together.
TEST(JsonScanner, FindsWhatEndsOrSpoilsAStringAtEveryPlace) {
  for (std::size_t length = 0; length < 70; ++length) {
    SCOPED_TRACE(length);
    const std::string plain = std::string(length, 'x');
    const std::string after = std::string(40, 'y');
    EXPECT_EQ(JsonScanner("\"" + plain + "\"").string_value(), plain);
    EXPECT_EQ(JsonScanner("\"" + plain + "\\n" + after + "\"").string_value(),
              plain + "\n" + after);
    EXPECT_EQ(JsonScanner("\"" + plain + "\xc3\xa4\x7f\"").string_value(), plain + "\xc3\xa4\x7f");
    for (const char control : {'\0', '\n', '\x1f'}) {
      const std::string text = "\"" + plain + control + after + "\"";
      EXPECT_EQ(JsonScanner(text).string_value(), std::nullopt);
    }
    EXPECT_EQ(JsonScanner("\"" + plain).string_value(), std::nullopt) << "no end";
  }
}

// Two readings of what is JSON must not differ: the parser of all other bodies takes a payload
// exactly when the scanner does.
TEST(JsonScanner, AgreesWithTheParserOnRandomEdits) {
  constexpr std::string_view kGood =
      R"({"a":[1,-2.5e-3,true,false,null],"b":{"c":"x\n\u00e9\ud83d\ude00y"},"d":[[],{}], "e" : "\\" })";
  ASSERT_TRUE(scans(kGood));
  SeededRandom random{20260131};
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = edited(std::string(kGood), random);
    if (!is_valid_utf8(text)) continue;  // the scanner's caller has looked at that already
    const auto problem = find_json_problem(text);
    // The one difference by design: a payload's numbers are kept as text, whatever their size.
    if (problem && problem->problem == "number too large") continue;
    ASSERT_EQ(scans(text), !problem) << text << (problem ? problem->problem : " is fine");
    refused += problem ? 1 : 0;
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace reprise::server
