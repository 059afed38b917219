#include "hooks/host/script_json.h"

#include <gtest/gtest.h>

#include "support/hook_script.h"

namespace reprise::hooks {
namespace {

using test::HookScript;
using test::value_of;

// `json` decoded and encoded again.
std::string round_trip(std::string json) {
  HookScript script(HookKind::on_failure);
  script.job.payload = std::move(json);
  return value_of(script, "json.encode(json.decode(msg.payload))");
}
std::string decode_problem(std::string json) {
  HookScript script(HookKind::on_failure);
  script.job.payload = std::move(json);
  return value_of(script, "select(2, pcall(json.decode, msg.payload))");
}

TEST(ScriptJson, ValuesComeBackAsTheyWere) {
  for (const char* text :
       {"null", "true", "false", "0", "-1", "9223372036854775807", "-9223372036854775808", "1.5",
        "1e+100", "\"\"", "\"text\"", "[]", "{}", "[1,[2,[]],{}]", "{\"a\":{\"b\":[null,true]}}",
        "\"\\\"\\\\\\n\"", "\"\xC3\xA9\xF0\x9F\x98\x80\""}) {
    EXPECT_EQ(round_trip(text), text);
  }
  EXPECT_EQ(round_trip(" [ 1 , { \"a\" : 2 } ]\n"), "[1,{\"a\":2}]");
  EXPECT_EQ(round_trip("\"\\u00e9\\ud83d\\ude00\\/\\u0041\\u07ff\\uffff\""),
            "\"\xC3\xA9\xF0\x9F\x98\x80/A\xDF\xBF\xEF\xBF\xBF\"");
}

TEST(ScriptJson, NumbersAreWholeWhereTheyCanBe) {
  EXPECT_EQ(value_of("math.type(json.decode('5'))"), "integer");
  EXPECT_EQ(value_of("math.type(json.decode('5.0'))"), "float");
  EXPECT_EQ(value_of("math.type(json.decode('5e0'))"), "float");
  EXPECT_EQ(value_of("json.decode('9223372036854775808')"), "9.2233720368548e+18");
  EXPECT_EQ(value_of("json.decode('1e-999')"), "0.0");
  EXPECT_EQ(value_of("json.encode(1 / 3)"), "0.3333333333333333");
}

TEST(ScriptJson, NullIsAValueOfItsOwn) {
  EXPECT_EQ(value_of("json.decode('null') == json.null"), "true");
  EXPECT_EQ(value_of("json.decode('[null]')[1] == json.null"), "true");
  EXPECT_EQ(value_of("json.encode({a = json.null})"), "{\"a\":null}");
  EXPECT_EQ(value_of("json.encode(nil)"), "null");
}

TEST(ScriptJson, TextThatIsNoJsonIsNamedByItsByte) {
  const std::string prefix = "json.decode: ";
  EXPECT_EQ(decode_problem(""), prefix + "the text ends too early at byte 1");
  EXPECT_EQ(decode_problem("{\"a\":}"), prefix + "not a JSON value at byte 6");
  EXPECT_EQ(decode_problem("[1 2]"), prefix + "expected ',' or ']' at byte 4");
  EXPECT_EQ(decode_problem("{\"a\" 1}"), prefix + "expected ':' at byte 6");
  EXPECT_EQ(decode_problem("{a:1}"), prefix + "expected a name in quotes at byte 2");
  EXPECT_EQ(decode_problem("1 x"), prefix + "text after the value at byte 3");
  EXPECT_EQ(decode_problem("1e999"), prefix + "a number that is too large at byte 6");
  for (const char* text : {"[1,]",
                           "{\"a\":1,}",
                           "01",
                           "1.",
                           ".5",
                           "-",
                           "+1",
                           "1e",
                           "tru",
                           "nul",
                           "NaN",
                           "Infinity",
                           "'x'",
                           "\"x",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\u12G4\"",
                           "\"\\ud800\"",
                           "\"\\ud800\\u0041\"",
                           "\"\\udc00\"",
                           "\"a\nb\"",
                           "[",
                           "{",
                           "]",
                           "[1}",
                           "{\"a\":1]",
                           "\"\\u+123\"",
                           "1-",
                           "/**/1",
                           "\xEF\xBB\xBF"
                           "1"}) {
    EXPECT_EQ(decode_problem(text).substr(0, prefix.size()), prefix) << text;
  }
  EXPECT_EQ(decode_problem(std::string("1\0", 2)).substr(0, prefix.size()), prefix);
  EXPECT_EQ(value_of("pcall(json.decode)"), "false");
  EXPECT_EQ(value_of("pcall(json.decode, 5)"), "false");
}

TEST(ScriptJson, TablesAreArraysOrObjects) {
  EXPECT_EQ(value_of("json.encode({1, 'a', true})"), "[1,\"a\",true]");
  EXPECT_EQ(value_of("json.encode({})"), "{}");
  EXPECT_EQ(value_of("json.encode(json.array({}))"), "[]");
  EXPECT_EQ(value_of("json.encode(json.array(json.array({1})))"), "[1]");
  EXPECT_EQ(value_of("json.encode({x = 1})"), "{\"x\":1}");
  EXPECT_EQ(value_of("json.encode({[1] = 'a', [2] = 'b'})"), "[\"a\",\"b\"]");
  for (const char* bad :
       {"{1, nil, 3}", "{[2] = 1}", "{1, x = 2}", "{[0] = 1}", "{[-1] = 1}", "{[1.5] = 1}",
        "{[true] = 1}", "json.array({x = 1})", "{[math.maxinteger] = 1}"}) {
    EXPECT_EQ(value_of("select(2, pcall(json.encode, " + std::string(bad) + "))"),
              "json.encode: a table must have the keys 1 to n, or names alone")
        << bad;
  }
}

TEST(ScriptJson, WhatHasNoFormIsRefused) {
  for (const char* bad : {"0/0", "1/0", "-1/0", "pcall", "{pcall}", "{x = 0/0}"}) {
    EXPECT_EQ(value_of("pcall(json.encode, " + std::string(bad) + ")"), "false") << bad;
  }
  EXPECT_EQ(value_of("pcall(json.encode)"), "false");
  EXPECT_EQ(value_of("json.encode('\\xff')"), "\"\xEF\xBF\xBD\"");
}

TEST(ScriptJson, HundredLevelsAndNoMore) {
  const auto nested = [](std::size_t depth, const char* open, const char* close) {
    std::string text;
    for (std::size_t i = 0; i < depth; ++i) text += open;
    text += "1";
    for (std::size_t i = 0; i < depth; ++i) text += close;
    return text;
  };
  EXPECT_EQ(round_trip(nested(90, "[", "]")), nested(90, "[", "]"));
  EXPECT_EQ(decode_problem(nested(100, "[", "]")), "table");
  EXPECT_EQ(decode_problem(nested(101, "[", "]")), "json.decode: more than 100 levels at byte 101");
  EXPECT_EQ(decode_problem(nested(101, "{\"a\":", "}")).substr(0, 31),
            "json.decode: more than 100 leve");
  EXPECT_EQ(decode_problem(std::string(50'000, '[')),
            "json.decode: more than 100 levels at byte 101");
  EXPECT_EQ(value_of("select(2, pcall(json.encode, t))", "t = {} t[1] = t"),
            "json.encode: more than 100 levels; perhaps a table is in itself");
}

TEST(ScriptJson, MessagesAndHeadersCanBeEncoded) {
  HookScript script(HookKind::on_failure);
  script.job.headers = {{"tenant", "acme"}};
  EXPECT_EQ(value_of(script, "json.encode(msg.headers)"), "{\"tenant\":\"acme\"}");
  EXPECT_EQ(value_of(script, "json.decode(json.encode(msg)).headers.tenant"), "acme");
}

}  // namespace
}  // namespace reprise::hooks
