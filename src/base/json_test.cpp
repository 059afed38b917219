#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/json_writer.h"

namespace reprise {
namespace {

using testing::HasSubstr;

Json parse(std::string_view text) {
  auto json = Json::parse(text);
  EXPECT_TRUE(json) << json.error().detail;
  return json ? *json : Json();
}

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

void expect_refused(std::string_view text) {
  const auto json = Json::parse(text);
  ASSERT_FALSE(json) << text;
  EXPECT_EQ(json.error().code, Errc::invalid_request);
  EXPECT_THAT(json.error().detail, HasSubstr(" at line ")) << text;
}

TEST(Json, ReadsEachKind) {
  EXPECT_TRUE(parse("null").is_null());
  EXPECT_EQ(*parse("true").boolean(), true);
  EXPECT_EQ(*parse("\"a\"").string(), "a");
  EXPECT_EQ(parse("[1,2]").array()->size(), 2U);
  EXPECT_EQ(parse("{\"a\":1}").object()->size(), 1U);
  EXPECT_EQ(parse("1.5").number(), 1.5);
}

TEST(Json, OtherKindsGiveNothing) {
  const Json json = parse("\"5\"");
  EXPECT_FALSE(json.is_null());
  EXPECT_EQ(json.boolean(), nullptr);
  EXPECT_EQ(json.array(), nullptr);
  EXPECT_EQ(json.object(), nullptr);
  EXPECT_EQ(json.number(), std::nullopt);
  EXPECT_EQ(json.integer(), std::nullopt);
  EXPECT_EQ(json.unsigned_integer(), std::nullopt);
  EXPECT_EQ(json.find("a"), nullptr);
}

TEST(Json, KindNamesReadWellInASentence) {
  EXPECT_EQ(parse("null").kind_name(), "null");
  EXPECT_EQ(parse("false").kind_name(), "a boolean");
  for (const auto* number : {"1", "-1", "18446744073709551615", "1.5"}) {
    EXPECT_EQ(parse(number).kind_name(), "a number");
  }
  EXPECT_EQ(parse("\"\"").kind_name(), "a string");
  EXPECT_EQ(parse("[]").kind_name(), "an array");
  EXPECT_EQ(parse("{}").kind_name(), "an object");
}

TEST(Json, FindsMembersThroughSeveralLevels) {
  const Json json = parse(R"({"a":{"b":"x"},"n":null})");
  EXPECT_EQ(json["a"]["b"].string_or("none"), "x");
  EXPECT_EQ(json["a"]["missing"]["deeper"].string_or("none"), "none");
  EXPECT_EQ(json["a"].string_or("none"), "none");
  EXPECT_TRUE(json["missing"].is_null());
  EXPECT_EQ(json.find("missing"), nullptr);
  ASSERT_NE(json.find("n"), nullptr);
  EXPECT_TRUE(json.find("n")->is_null());
}

TEST(Json, KeepsMembersInOrder) {
  EXPECT_EQ(parse(R"({"z":1,"a":2,"m":{"y":[],"b":{}}})").dump(),
            R"({"z":1,"a":2,"m":{"y":[],"b":{}}})");
}

TEST(Json, WholeNumbersKeep64Bits) {
  EXPECT_EQ(parse("9223372036854775807").integer(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse("-9223372036854775808").integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse("18446744073709551615").unsigned_integer(),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(parse("18446744073709551615").integer(), std::nullopt);
  EXPECT_EQ(parse("-1").unsigned_integer(), std::nullopt);
  EXPECT_EQ(parse("9007199254740993").dump(), "9007199254740993");
}

TEST(Json, WholeDoublesCountAsIntegers) {
  EXPECT_EQ(parse("3.0").integer(), 3);
  EXPECT_EQ(parse("3.0").unsigned_integer(), 3U);
  EXPECT_EQ(parse("1e3").integer(), 1000);
  EXPECT_EQ(parse("-1e3").integer(), -1000);
  EXPECT_EQ(parse("3.5").integer(), std::nullopt);
  EXPECT_EQ(parse("-3.0").unsigned_integer(), std::nullopt);
  EXPECT_EQ(parse("9223372036854775808.0").integer(), std::nullopt);
  EXPECT_EQ(parse("-9223372036854775808.0").integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(parse("18446744073709551616.0").unsigned_integer(), std::nullopt);
  EXPECT_EQ(parse("1e300").integer(), std::nullopt);
}

TEST(Json, NumbersBeyond64BitsBecomeDoubles) {
  EXPECT_EQ(parse("18446744073709551616").number(), 18446744073709551616.0);
  EXPECT_EQ(parse("-9223372036854775809").number(), -9223372036854775808.0);
  EXPECT_EQ(parse("123456789012345678901234567890").number(), 123456789012345678901234567890.0);
  // Its neighbours keep their bits, and strings of digits stay strings.
  EXPECT_EQ(
      parse(R"([18446744073709551616,18446744073709551615,"99999999999999999999\"1"])").dump(),
      R"([1.8446744073709552e+19,18446744073709551615,"99999999999999999999\"1"])");
}

TEST(Json, NumbersBeyondDoublesAreRefused) {
  expect_refused("1e400");
  expect_refused("-1e400");
  expect_refused("[" + std::string(400, '9') + "]");
  EXPECT_EQ(parse("1e-400").number(), 0.0);
}

TEST(Json, RefusesNumbersThatJsonDoesNotHave) {
  for (const auto* text : {"NaN", "nan", "Infinity", "-Infinity", "+1", "01", "-01", "1.", ".5",
                           "0x10", "1e", "1_000", "--1", "-", "1.5.5", "18446744073709551616x"}) {
    expect_refused(text);
  }
}

TEST(Json, Takes64LevelsAndRefuses65) {
  EXPECT_TRUE(Json::parse(nested(64)));
  EXPECT_TRUE(Json::parse("[" + nested(63) + "," + nested(63) + "]"));
  const auto refused = Json::parse(nested(65));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail,
              HasSubstr("nested deeper than 64 levels at line 1, column 65"));
  expect_refused(nested(100'000));
  expect_refused(std::string(100'000, '['));
}

TEST(Json, DepthCountsObjectsAndScalarsInside) {
  std::string text = "1";
  for (int i = 0; i < 64; ++i) text = "{\"a\":" + text + "}";
  EXPECT_TRUE(Json::parse(text));
  expect_refused("{\"a\":" + text + "}");
}

TEST(Json, DepthLimitHoldsForLargeDocumentsToo) {
  // Beyond the size at which a parser of its own is used.
  const std::string padding(2 << 20, ' ');
  EXPECT_TRUE(Json::parse(nested(64) + padding));
  EXPECT_FALSE(Json::parse(nested(65) + padding));
}

TEST(Json, RefusesTrailingText) {
  for (const auto* text : {"1 2", "{} {}", "[],", "null null", "\"a\" b", "{}]", "1,"}) {
    expect_refused(text);
  }
  EXPECT_TRUE(Json::parse(" \t\r\n1 \t\r\n"));
}

TEST(Json, RefusesNulBytes) {
  expect_refused(std::string_view("1\0", 2));
  expect_refused(std::string_view("\0", 1));
  expect_refused(std::string_view("\"a\0b\"", 5));
}

TEST(Json, RefusesEmptyAndCutOffText) {
  expect_refused("");
  expect_refused(std::string_view());
  expect_refused("   ");
  const std::string_view whole = R"({"a":[1,{"b":"c\n"}],"d":true})";
  for (std::size_t size = 0; size < whole.size(); ++size) expect_refused(whole.substr(0, size));
}

TEST(Json, ReadsOnlyItsOwnBytes) {
  // The text ends in the middle of a larger number: what follows must not be read.
  const std::string_view larger = "12345";
  EXPECT_EQ(parse(larger.substr(0, 2)).integer(), 12);
  EXPECT_TRUE(parse(std::string_view("truefalse").substr(0, 4)).boolean());
}

TEST(Json, RefusesCommentsAndLooseSyntax) {
  for (const auto* text : {"{'a':1}", "{a:1}", "[1,]", "{\"a\":1,}", "// x\n1", "/* x */1", "[,]",
                           "{\"a\"}", "{1:2}", "True", "nulll", "\xEF\xBB\xBF{}"}) {
    expect_refused(text);
  }
}

TEST(Json, RefusesBadUtf8) {
  for (const auto* text : {"\"\xFF\"", "\"\xC3\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"",
                           "\"\xF4\x90\x80\x80\"", "\"\xE2\x82\"", "{\"\x80\":1}"}) {
    expect_refused(text);
  }
}

TEST(Json, RefusesLoneSurrogates) {
  for (const auto* text : {R"("\ud800")", R"("\udc00")", R"("\ud800x")", R"("\ud800\n")",
                           R"("\ud800\u0041")", R"("\ud800\ud800")", R"({"\udfff":1})"}) {
    expect_refused(text);
  }
  EXPECT_EQ(*parse(R"("\ud83d\ude00")").string(), "\U0001F600");
}

TEST(Json, ReadsEscapes) {
  EXPECT_EQ(*parse(R"("\"\\\/\b\f\n\r\t\u00e9\u20AC")").string(), "\"\\/\b\f\n\r\t\u00e9\u20ac");
  EXPECT_EQ(*parse(R"("a\u0000b")").string(), std::string("a\0b", 3));
  expect_refused(R"("\x41")");
  expect_refused(R"("\u12g4")");
  expect_refused("\"a\nb\"");
}

TEST(Json, RefusesDuplicateFields) {
  const auto json = Json::parse(R"({"a":{"x":1,"y":2,"x":3}})");
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error(), (Error{Errc::invalid_request, "duplicate field 'x'"}));
  // The same name written in two ways is still the same name.
  EXPECT_FALSE(Json::parse(R"({"a":1,"\u0061":2})"));
  EXPECT_TRUE(Json::parse(R"([{"a":1},{"a":2}])"));
}

TEST(Json, ErrorSaysWhatAndWhere) {
  const auto json = Json::parse("{\n  \"a\": 1\n  \"b\": 2\n}");
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().detail, "not valid JSON: expected ',' or '}' at line 3, column 3");
}

TEST(Json, ParserWorksAfterAFailure) {
  expect_refused("[1,");
  EXPECT_EQ(parse("[1]").dump(), "[1]");
  expect_refused(nested(65));
  EXPECT_EQ(parse("[2]").dump(), "[2]");
}

TEST(Json, CanBeBuiltByHand) {
  Json::Object object;
  object.emplace_back("flag", Json(true));
  object.emplace_back("int", Json(-5));
  object.emplace_back("unsigned", Json(5U));
  object.emplace_back("real", Json(0.5));
  object.emplace_back("literal", Json("x"));
  object.emplace_back("text", Json(std::string("y")));
  object.emplace_back("list", Json(Json::Array{Json(), Json(1)}));
  EXPECT_EQ(Json(std::move(object)).dump(),
            R"({"flag":true,"int":-5,"unsigned":5,"real":0.5,"literal":"x","text":"y",)"
            R"("list":[null,1]})");
}

}  // namespace
}  // namespace reprise
