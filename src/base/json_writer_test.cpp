#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/json.h"
#include "base/random.h"

namespace reprise {
namespace {

std::string json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(JsonWriter, PlacesCommasAndColons) {
  JsonWriter json;
  json.begin_object().key("id").value("x").key("tags").begin_array().value("a").value("b");
  json.end_array().key("empty").begin_array().end_array().key("none").begin_object().end_object();
  json.key("list").begin_array().begin_object().end_object().begin_object().key("k").null();
  json.end_object().end_array().end_object();
  EXPECT_EQ(json.text(),
            R"({"id":"x","tags":["a","b"],"empty":[],"none":{},"list":[{},{"k":null}]})");
}

TEST(JsonWriter, WritesEachKindOfValue) {
  JsonWriter json;
  json.begin_array().value(true).value(false).null().value(-1).value(2U).value("s");
  json.value(std::string("t")).value(std::string_view("u")).value(1.5).raw(R"({"a":1})");
  json.end_array();
  EXPECT_EQ(json.take(), R"([true,false,null,-1,2,"s","t","u",1.5,{"a":1}])");
}

TEST(JsonWriter, WritesExtremeIntegersExactly) {
  JsonWriter json;
  json.begin_array();
  json.value(std::numeric_limits<std::int64_t>::min());
  json.value(std::numeric_limits<std::int64_t>::max());
  json.value(std::numeric_limits<std::uint64_t>::max());
  json.value(std::uint8_t{255}).value(std::int8_t{-128});
  json.end_array();
  EXPECT_EQ(json.text(),
            "[-9223372036854775808,9223372036854775807,18446744073709551615,255,-128]");
}

TEST(JsonWriter, NegativeZeroKeepsItsSign) {
  JsonWriter json;
  json.begin_array().value(-0.0).value(0.0).end_array();
  EXPECT_EQ(json.text(), "[-0.0,0]");
  EXPECT_EQ(Json::parse(json.text())->dump(), json.text());
}

TEST(JsonWriter, NumbersThatJsonLacksBecomeNull) {
  JsonWriter json;
  json.begin_array().value(std::nan("")).value(HUGE_VAL).value(-HUGE_VAL).end_array();
  EXPECT_EQ(json.text(), "[null,null,null]");
}

TEST(JsonWriter, DoublesAreReadBackExactly) {
  SeededRandom random(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto number = std::bit_cast<double>(random.next_u64());
    if (!std::isfinite(number)) continue;
    JsonWriter json;
    json.value(number);
    const auto parsed = Json::parse(json.text());
    ASSERT_TRUE(parsed) << json.text();
    ASSERT_EQ(parsed->number(), number) << json.text();
  }
}

TEST(JsonString, EscapesWhatMustBeEscaped) {
  EXPECT_EQ(json_string("plain"), R"("plain")");
  EXPECT_EQ(json_string(""), R"("")");
  EXPECT_EQ(json_string("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(json_string("\b\f\n\r\t"), R"("\b\f\n\r\t")");
  EXPECT_EQ(json_string(std::string_view("\0\x01\x1F\x7F", 4)), "\"\\u0000\\u0001\\u001f\x7F\"");
  EXPECT_EQ(json_string("/<>&'"), R"("/<>&'")");
}

TEST(JsonString, KeepsUtf8) {
  EXPECT_EQ(json_string("h\u00e9 \u20ac \U0001F600"), "\"h\u00e9 \u20ac \U0001F600\"");
}

TEST(JsonString, ReplacesEachBadByte) {
  EXPECT_EQ(json_string("a\xFF"
                        "b"),
            "\"a\uFFFD"
            "b\"");
  EXPECT_EQ(json_string("\xC3"), "\"\uFFFD\"");
  EXPECT_EQ(json_string("\xE2\x82"), "\"\uFFFD\uFFFD\"");            // a character cut off
  EXPECT_EQ(json_string("\xC0\x80"), "\"\uFFFD\uFFFD\"");            // overlong
  EXPECT_EQ(json_string("\xED\xA0\x80"), "\"\uFFFD\uFFFD\uFFFD\"");  // a surrogate
  EXPECT_EQ(json_string("\xC3\""), "\"\uFFFD\\\"\"");                // the quote is not swallowed
}

TEST(JsonString, IsAlwaysValidJson) {
  SeededRandom random(2);
  for (int i = 0; i < 20'000; ++i) {
    std::string text(random.below(30), '\0');
    for (char& c : text) c = static_cast<char>(random.next_u64());
    const auto parsed = Json::parse(json_string(text));
    ASSERT_TRUE(parsed) << parsed.error().detail;
  }
}

TEST(JsonWriter, EscapesKeysToo) {
  JsonWriter json;
  json.begin_object().key("a\"b").value(1).end_object();
  EXPECT_EQ(json.text(), R"({"a\"b":1})");
}

}  // namespace
}  // namespace reprise
