#include "base/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Json parse(std::string_view text) {
  auto json = Json::parse(text);
  EXPECT_TRUE(json) << json.error().detail;
  return json ? *json : Json();
}

// Reads the field "f" of `text` as a T and returns the error.
template <class T>
Error error_of(std::string_view text) {
  const Json json = parse(text);
  JsonFields fields(json);
  T value{};
  EXPECT_FALSE(fields.read("f", value));
  EXPECT_FALSE(fields.ok());
  const Status status = fields.finish();
  return status ? Error{Errc::internal, "no error"} : status.error();
}

TEST(JsonFields, ReadsEachKind) {
  const Json json = parse(R"({"s":"x","b":true,"u32":7,"u64":18446744073709551615,"d":0.5,
                              "text":"1h30m","seconds":1.5})");
  JsonFields fields(json);
  std::string s;
  bool b = false;
  std::uint32_t u32 = 0;
  std::uint64_t u64 = 0;
  double d = 0;
  Duration text{};
  Duration seconds{};
  EXPECT_TRUE(fields.read("s", s));
  EXPECT_TRUE(fields.read("b", b));
  EXPECT_TRUE(fields.read("u32", u32));
  EXPECT_TRUE(fields.read("u64", u64));
  EXPECT_TRUE(fields.read("d", d));
  EXPECT_TRUE(fields.read("text", text));
  EXPECT_TRUE(fields.read("seconds", seconds));
  EXPECT_TRUE(fields.finish());
  EXPECT_EQ(s, "x");
  EXPECT_TRUE(b);
  EXPECT_EQ(u32, 7U);
  EXPECT_EQ(u64, 18446744073709551615U);
  EXPECT_EQ(d, 0.5);
  EXPECT_EQ(text, 90min);
  EXPECT_EQ(seconds, 1500ms);
}

TEST(JsonFields, AbsentAndNullLeaveTheTarget) {
  const Json json = parse(R"({"null":null})");
  JsonFields fields(json);
  std::string absent = "before";
  std::optional<std::uint32_t> null = 5;
  EXPECT_FALSE(fields.read("absent", absent));
  EXPECT_FALSE(fields.read("null", null));
  EXPECT_EQ(absent, "before");
  EXPECT_EQ(null, 5U);
  EXPECT_TRUE(fields.finish());
}

TEST(JsonFields, NullableIsResetByNull) {
  const Json json = parse(R"({"reset":null,"set":"2s"})");
  JsonFields fields(json);
  std::optional<Duration> reset = 1s;
  std::optional<Duration> set;
  std::optional<Duration> absent = 3s;
  EXPECT_TRUE(fields.read_nullable("reset", reset));
  EXPECT_TRUE(fields.read_nullable("set", set));
  EXPECT_FALSE(fields.read_nullable("absent", absent));
  EXPECT_TRUE(fields.finish());
  EXPECT_EQ(reset, std::nullopt);
  EXPECT_EQ(set, 2s);
  EXPECT_EQ(absent, 3s);
}

TEST(JsonFields, WrongKindSaysWhatWasExpected) {
  EXPECT_EQ(error_of<std::string>(R"({"f":1})"),
            (Error{Errc::invalid_request, "f: expected a string, got 1"}));
  EXPECT_EQ(error_of<bool>(R"({"f":"true"})"),
            (Error{Errc::invalid_request, "f: expected true or false, got a string"}));
  EXPECT_EQ(error_of<std::uint32_t>(R"({"f":"7"})"),
            (Error{Errc::invalid_request, "f: expected a whole number, got a string"}));
  EXPECT_EQ(error_of<double>(R"({"f":[]})"),
            (Error{Errc::invalid_request, "f: expected a number, got an array"}));
  EXPECT_EQ(error_of<Duration>(R"({"f":{}})"),
            (Error{Errc::invalid_request,
                   "f: expected a duration like \"30s\" or a number of seconds, got an object"}));
}

TEST(JsonFields, NumberOutOfRangeSaysWhy) {
  EXPECT_EQ(error_of<std::uint32_t>(R"({"f":-1})"),
            (Error{Errc::invalid_field, "f: must not be negative, got -1"}));
  EXPECT_EQ(error_of<std::uint32_t>(R"({"f":1.5})"),
            (Error{Errc::invalid_field, "f: must be a whole number, got 1.5"}));
  EXPECT_EQ(error_of<std::uint32_t>(R"({"f":4294967296})"),
            (Error{Errc::invalid_field, "f: must be at most 4294967295, got 4294967296"}));
  EXPECT_EQ(error_of<std::uint64_t>(R"({"f":1e30})"),
            (Error{Errc::invalid_field, "f: too large: 1e+30"}));
}

TEST(JsonFields, BadDurationKeepsTheParsersWords) {
  EXPECT_EQ(
      error_of<Duration>(R"({"f":"5x"})"),
      (Error{Errc::invalid_field, "f: unknown duration suffix 'x' in '5x': use ms, s, m, h or d"}));
  EXPECT_THAT(error_of<Duration>(R"({"f":-1})").detail,
              HasSubstr("f: a duration cannot be negative"));
  EXPECT_THAT(error_of<Duration>(R"({"f":1e300})").detail, HasSubstr("more than 100 years"));
  EXPECT_THAT(error_of<Duration>(R"({"f":4e9})").detail, HasSubstr("more than 100 years"));
}

TEST(JsonFields, SecondsMayHaveRoundingErrors) {
  const Json json = parse(R"({"f":0.30000000000000004})");
  JsonFields fields(json);
  Duration value{};
  EXPECT_TRUE(fields.read("f", value));
  EXPECT_EQ(value, 300ms);
}

TEST(JsonFields, ErrorsNameTheWholePath) {
  const Json json = parse(R"({"attempts":"many"})");
  JsonFields fields(json, "retry");
  std::uint32_t attempts = 0;
  fields.read("attempts", attempts);
  const Status status = fields.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().detail, "retry.attempts: expected a whole number, got a string");
}

TEST(JsonFields, UnknownFieldSuggestsAKnownOne) {
  const Json json = parse(R"({"cooldwon":"1s"})");
  JsonFields fields(json, "retry");
  Duration cooldown{};
  fields.read("attempts", cooldown);
  fields.read("cooldown", cooldown);
  EXPECT_TRUE(fields.ok());
  const Status status = fields.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error(),
            (Error{Errc::unknown_field,
                   "unknown field 'retry.cooldwon'; did you mean 'retry.cooldown'?"}));
}

TEST(JsonFields, UnknownFieldWithNothingCloseIsOnlyNamed) {
  const Json json = parse(R"({"colour":1})");
  JsonFields fields(json);
  fields.peek("lease");
  const Status status = fields.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().detail, "unknown field 'colour'");
}

TEST(JsonFields, PeekMakesAFieldKnown) {
  const Json json = parse(R"({"payload":{"any":"thing"}})");
  JsonFields fields(json);
  const Json* payload = fields.peek("payload");
  ASSERT_NE(payload, nullptr);
  EXPECT_EQ(payload->dump(), R"({"any":"thing"})");
  EXPECT_EQ(fields.peek("absent"), nullptr);
  EXPECT_TRUE(fields.finish());
}

TEST(JsonFields, FirstErrorSticks) {
  const Json json = parse(R"({"a":1,"b":"x","c":0})");
  JsonFields fields(json);
  std::string a;
  std::uint32_t b = 0;
  fields.read("a", a);
  fields.read("b", b);
  fields.fail("a", "must be nice");
  const Status status = fields.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().detail, "a: expected a string, got 1");
}

TEST(JsonFields, FailTakesACode) {
  const Json json = parse("{}");
  JsonFields fields(json);
  fields.fail("key", "longer than 512 bytes", Errc::key_too_long);
  const Status status = fields.finish();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error(), (Error{Errc::key_too_long, "key: longer than 512 bytes"}));
}

TEST(JsonFields, NoObjectIsAnErrorAndNothingIsRead) {
  const Json json = parse("[1]");
  JsonFields top(json);
  std::string value;
  EXPECT_FALSE(top.read("f", value));
  EXPECT_EQ(top.finish().error(),
            (Error{Errc::invalid_request, "expected an object, got an array"}));
  JsonFields nested(json, "retry");
  EXPECT_EQ(nested.finish().error().detail, "retry: expected an object, got an array");
}

}  // namespace
}  // namespace reprise
