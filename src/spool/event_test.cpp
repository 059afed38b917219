#include "spool/event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/json.h"

namespace reprise::spool {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kId = "01KA5QH3M5T6W0V8Z2Y4X6C8B1";

std::string with_id(std::string_view rest) {
  return R"({"id":")" + std::string(kId) + "\"" + std::string(rest) + "}";
}

std::string problem_of(std::string_view bytes) {
  const auto event = parse_event(bytes);
  return event ? "" : event.error().detail;
}

SpooledEvent parsed(std::string_view bytes) {
  auto event = parse_event(bytes);
  EXPECT_TRUE(event) << bytes << ": " << problem_of(bytes);
  return event ? *event : SpooledEvent{};
}

TEST(ParseEvent, TakesAnEventApart) {
  const auto event =
      parsed(with_id(R"(,"type":"order.created","data":{"id":7},"_attempts":3,)"
                     R"("_firstAttemptAt":"2026-01-31T08:15:00.250Z","_lastError":"no\nway")"));
  EXPECT_EQ(event.id, kId);
  EXPECT_EQ(event.type, "order.created");
  EXPECT_EQ(event.json, with_id(R"(,"type":"order.created","data":{"id":7})"));
  EXPECT_EQ(event.attempts, 3U);
  EXPECT_EQ(event.first_attempt_at, "2026-01-31T08:15:00.250Z");
  EXPECT_EQ(event.last_error, "no\nway");
}

TEST(ParseEvent, KeepsTheProducersBytes) {
  const std::string text = with_id(R"( , "b" : 1.0,"a":[ 1e400,18446744073709551616, -0 ],"a":2,)"
                                   "\n\t\"\\u0061\":\"\\u00e9\\/\"\r\n");
  EXPECT_EQ(parsed(text).json, text);
  EXPECT_EQ(parsed(" \n" + text + "\r\n").json, text);
}

TEST(ParseEvent, CutsBookkeepingOutWhereverItStands) {
  const std::string id = R"("id":")" + std::string(kId) + "\"";
  const auto json = [](const std::string& text) { return parsed(text).json; };
  EXPECT_EQ(json("{\"_attempts\":1," + id + "}"), "{" + id + "}");
  EXPECT_EQ(json("{ \"_attempts\" : 1 , " + id + " }"), "{ " + id + " }");
  EXPECT_EQ(json("{" + id + ", \"_attempts\": 1}"), "{" + id + "}");
  EXPECT_EQ(json("{" + id + ",\"_lastError\":\"a,}\",\"z\":1}"), "{" + id + ",\"z\":1}");
  EXPECT_EQ(json("{\"_attempts\":1,\"_lastError\":{\"x\":[]},\"_attempts\":2," + id +
                 ",\"_firstAttemptAt\":null\n}"),
            "{" + id + "\n}");
  EXPECT_EQ(json("{\"_\\u0061ttempts\":1," + id + "}"), "{" + id + "}");
  // Only at the top.
  EXPECT_EQ(json("{" + id + ",\"data\":{\"_attempts\":1}}"),
            "{" + id + ",\"data\":{\"_attempts\":1}}");
}

TEST(ParseEvent, BookkeepingOfAnotherKindIsAbsent) {
  for (const std::string value :
       {"-1", "\"3\"", "4294967296", "1e400", "1.5", "null", "true", "[]", "{}"}) {
    const auto event = parsed(with_id(",\"_attempts\":" + value));
    EXPECT_EQ(event.attempts, 0U) << value;
    EXPECT_EQ(event.json, with_id("")) << value;
  }
  EXPECT_EQ(parsed(with_id(",\"_attempts\":4294967295")).attempts, 4294967295U);
  const auto event = parsed(with_id(R"(,"_firstAttemptAt":7,"_lastError":{"message":"x"})"));
  EXPECT_EQ(event.first_attempt_at, "");
  EXPECT_EQ(event.last_error, "");
}

TEST(ParseEvent, ALongErrorIsCutAtACharacter) {
  const std::string euro = "\u20ac";
  std::string text;
  while (text.size() <= kMaxLastErrorBytes) text += euro;
  const auto event = parsed(with_id(",\"_lastError\":\"" + text + "\""));
  EXPECT_EQ(event.last_error.size(), kMaxLastErrorBytes / 3 * 3);
  EXPECT_TRUE(event.last_error.ends_with(euro));
}

TEST(ParseEvent, ATypeThatIsNoTextCountsAsNone) {
  EXPECT_EQ(parsed(with_id(",\"type\":7")).type, "");
  EXPECT_EQ(parsed(with_id("")).type, "");
}

TEST(ParseEvent, OfAFieldThatIsThereTwiceTheLastOneCounts) {
  EXPECT_EQ(parsed(R"({"id":"x","id":")" + std::string(kId) + "\"}").id, kId);
}

TEST(ParseEvent, TheIdIsKeptAsItWasWritten) {
  EXPECT_EQ(parsed(R"({"id":"01ka5qh3m5t6w0v8z2y4x6c8b1"})").id, "01ka5qh3m5t6w0v8z2y4x6c8b1");
  EXPECT_EQ(parsed("{\"id\":\"\\u00301KA5QH3M5T6W0V8Z2Y4X6C8B1\"}").id, kId);
}

TEST(ParseEvent, SaysWhatIsWrongAndWhere) {
  using std::string_literals::operator""s;
  const std::string good = with_id("");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "it is empty"},
      {" \n ", "it is empty"},
      {"\0\0\0"s, "not valid JSON: a zero byte at line 1, column 1"},
      {good + "\0"s, "not valid JSON: a zero byte at line 1, column 36"},
      {"\xEF\xBB\xBF" + good,
       "not valid JSON: it begins with a byte order mark, which JSON must not have"},
      {"\xFF\xFE{", "not valid JSON: not UTF-8 at line 1, column 1"},
      {with_id(",\n\"a\":\"\xC3(\""), "not valid JSON: not UTF-8 at line 2, column 6"},
      {good.substr(0, 20), "not valid JSON: a string that does not end at line 1, column 7"},
      {good.substr(0, good.size() - 1), "not valid JSON: expected ',' or '}' at line 1, column 35"},
      {good + "x", "not valid JSON: unexpected text after the value at line 1, column 36"},
      {good + good, "not valid JSON: unexpected text after the value at line 1, column 36"},
      {"42", "an event is a JSON object; this is a number"},
      {"[]", "an event is a JSON object; this is an array"},
      {"null", "an event is a JSON object; this is null"},
      {"\"x\"", "an event is a JSON object; this is a string"},
      {"false", "an event is a JSON object; this is a boolean"},
      {"{}", "`id` is missing"},
      {R"({"id":7})", "`id` is a number, no ULID"},
      {R"({"id":null})", "`id` is null, no ULID"},
      {R"({"id":"abc"})", "`id` is no ULID: \"abc\""},
      {R"({"id":"\ud800"})", "not valid JSON: half of a surrogate pair at line 1, column 8"},
  };
  for (const auto& [text, problem] : cases) EXPECT_EQ(problem_of(text), problem) << text;
}

TEST(ParseEvent, RefusesDeepNesting) {
  const auto nested = [](int depth) {
    return with_id(",\"a\":" + std::string(depth, '[') + std::string(depth, ']'));
  };
  EXPECT_TRUE(parse_event(nested(63)));
  EXPECT_THAT(problem_of(nested(64)), StartsWith("not valid JSON: nested deeper than 64 levels"));
  EXPECT_THAT(problem_of(nested(500'000)), HasSubstr("nested deeper"));
}

TEST(ParseEvent, AnAbsurdIdIsShownCut) {
  const std::string problem = problem_of("{\"id\":\"" + std::string(100'000, 'a') + "\"}");
  EXPECT_THAT(problem, HasSubstr("aaa…\""));
  EXPECT_LT(problem.size(), 200U);
}

TEST(EventFileText, IsTheEventItselfWithoutBookkeeping) {
  const std::string text = with_id(", \"a\": 1.0 \n");
  EXPECT_EQ(event_file_text(parsed(text)), text);
}

TEST(EventFileText, BookkeepingComesBackAndLeavesNoTrace) {
  for (const std::string rest : {"", " ", ",\"a\":[1.0]", ",\"a\":\"}\" \n", ",\"a\":{}\t"}) {
    auto event = parsed(with_id(rest));
    event.attempts = 2;
    event.first_attempt_at = "2026-01-31T08:15:00.250Z";
    event.last_error = "\"quoted\"\n\x01";
    const std::string text = event_file_text(event);
    ASSERT_TRUE(Json::parse(text)) << text;
    const auto again = parsed(text);
    EXPECT_EQ(again.json, with_id(rest));
    EXPECT_EQ(again.attempts, 2U);
    EXPECT_EQ(again.first_attempt_at, event.first_attempt_at);
    EXPECT_EQ(again.last_error, event.last_error);
  }
}

TEST(EventFileText, HoldsOnlyWhatIsNotEmpty) {
  auto event = parsed(with_id(""));
  event.attempts = 1;
  EXPECT_EQ(event_file_text(event), with_id(",\"_attempts\":1"));
}

TEST(EventFileText, TheLargestEventStaysWithinItsFile) {
  auto event = parsed(with_id(",\"data\":\"" + std::string(kMaxEventBytes - 45, 'x') + "\""));
  ASSERT_EQ(event.json.size(), kMaxEventBytes);
  event.attempts = 4294967295U;
  event.first_attempt_at = "2026-01-31T08:15:00.250Z";
  event.last_error = std::string(2 * kMaxLastErrorBytes, '\x01');
  EXPECT_LE(event_file_text(event).size(), kMaxEventFileBytes);
}

TEST(NewEventJson, HasTheFourFields) {
  const NewEvent event{.id = std::string(kId),
                       .type = "a\"b",
                       .timestamp = Timestamp(std::chrono::milliseconds(250)),
                       .data = "{\"id\": 1.0}"};
  EXPECT_EQ(new_event_json(event),
            with_id(R"(,"type":"a\"b","timestamp":"1970-01-01T00:00:00.250Z","data":{"id": 1.0})"));
  EXPECT_EQ(parsed(new_event_json(event)).type, "a\"b");
}

TEST(EventFileName, IsTheIdInUpperCase) {
  EXPECT_EQ(event_file_name("01ka5qh3m5t6w0v8z2y4x6c8b1"), std::string(kId) + ".json");
}

}  // namespace
}  // namespace reprise::spool
