#include "spool/ingest_reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/text.h"
#include "spool/event.h"

namespace reprise::spool {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

// "a" accepted, "d" duplicate, "r" rejected, "-" none; "no reply" when it is none.
std::string verdicts(std::string_view body, std::size_t count) {
  const auto parsed = parse_results(body, count);
  if (!parsed) return "no reply";
  std::string text;
  for (const EventVerdict& verdict : *parsed) {
    text += "-adr"[static_cast<std::size_t>(verdict.verdict)];
  }
  return text;
}

// The words about event 0, which was rejected.
std::string words(std::string_view body) {
  const auto parsed = parse_results(body, 1);
  if (!parsed || parsed->front().verdict != Verdict::rejected) return "not rejected";
  return parsed->front().error;
}

std::string rejected_with(std::string_view error) {
  return R"({"results":[{"index":0,"status":"rejected","error":)" + std::string(error) + "}]}";
}

TEST(IngestReply, EachResultIsForItsIndex) {
  EXPECT_EQ(verdicts(R"({"ingested":1,"results":[{"index":2,"status":"rejected","error":"no"},
                         {"index":0,"status":"accepted"},{"index":1,"status":"duplicate"}]})",
                     3),
            "adr");
}

TEST(IngestReply, WhatIsNotToldClearlyIsNotTold) {
  const auto one = [](std::string_view result) {
    return verdicts(R"({"results":[)" + std::string(result) + "]}", 2);
  };
  EXPECT_EQ(one(R"({"index":1.0,"status":"accepted"})"), "-a");
  for (const char* result : {R"({"status":"accepted"})",
                             R"({"index":2,"status":"accepted"})",
                             R"({"index":-1,"status":"accepted"})",
                             R"({"index":"0","status":"accepted"})",
                             R"({"index":0.5,"status":"accepted"})",
                             R"({"index":1e30,"status":"accepted"})",
                             R"({"index":18446744073709551615,"status":"accepted"})",
                             R"({"index":99999999999999999999999999,"status":"accepted"})",
                             R"({"index":null,"status":"accepted"})",
                             R"({"index":[0],"status":"accepted"})",
                             R"({"index":true,"status":"accepted"})",
                             R"({"index":0})",
                             R"({"index":0,"status":"Accepted"})",
                             R"({"index":0,"status":"deferred"})",
                             R"({"index":0,"status":"accepted "})",
                             R"({"index":0,"status":true})",
                             R"({"index":0,"status":["accepted"]})",
                             R"("accepted")",
                             "0",
                             "null",
                             "[]",
                             R"([0,"accepted"])"}) {
    EXPECT_EQ(one(result), "--") << result;
  }
}

TEST(IngestReply, ARepeatedIndexIsTakenForNeither) {
  EXPECT_EQ(verdicts(R"({"results":[{"index":0,"status":"accepted"},{"index":1,"status":"accepted"},
                         {"index":0,"status":"accepted"}]})",
                     2),
            "-a");
  EXPECT_EQ(verdicts(R"({"results":[{"index":0,"status":"x"},{"index":0,"status":"accepted"},
                         {"index":0,"status":"accepted"}]})",
                     1),
            "-");
}

TEST(IngestReply, FewerOrMoreResultsThanEvents) {
  EXPECT_EQ(verdicts(R"({"results":[{"index":1,"status":"accepted"}]})", 3), "-a-");
  EXPECT_EQ(verdicts(R"({"results":[]})", 2), "--");
  std::string many = R"({"results":[)";
  for (int i = 0; i < 1000; ++i) {
    many += R"({"index":)" + std::to_string(i) + R"(,"status":"accepted"},)";
  }
  many.back() = ']';
  EXPECT_EQ(verdicts(many + "}", 2), "aa");
}

TEST(IngestReply, WhatIsNoReplyToABatch) {
  const std::string whole = R"({"results":[{"index":0,"status":"accepted"}]})";
  EXPECT_EQ(verdicts(whole, 1), "a");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(verdicts(whole.substr(0, size), 1), "no reply") << size;
  }
  for (const std::string& body :
       {std::string("OK"), std::string("null"), std::string("[]"), std::string("{}"),
        std::string(R"({"results":{"0":{"index":0,"status":"accepted"}}})"),
        std::string(R"({"results":null})"), std::string(R"({"results":"accepted"})"),
        std::string(R"({"result":[{"index":0,"status":"accepted"}]})"), whole + whole,
        std::string(R"([{"index":0,"status":"accepted"}])"),
        R"({"deep":)" + std::string(100'000, '[') + std::string(100'000, ']') + "," +
            whole.substr(1),
        std::string(4 << 20, '['), std::string("\0\0", 2),
        R"({"x":")" + std::string("\xff") + R"(",)" + whole.substr(1)}) {
    EXPECT_EQ(verdicts(body, 1), "no reply") << body.substr(0, 100);
  }
}

TEST(IngestReply, TheServersWordsInManyShapes) {
  EXPECT_EQ(words(rejected_with(R"("unknown customer")")), "unknown customer");
  EXPECT_EQ(words(rejected_with(R"({"code":"x","message":"no such"})")), "no such");
  EXPECT_EQ(words(rejected_with(R"({"code":7})")), R"({"code":7})");
  EXPECT_EQ(words(rejected_with("42")), "42");
  EXPECT_EQ(words(rejected_with("null")), "");
  EXPECT_EQ(words(rejected_with(R"(["a","b"])")), R"(["a","b"])");
  EXPECT_EQ(words(R"({"results":[{"index":0,"status":"rejected"}]})"), "");
  EXPECT_EQ(words(R"({"results":[{"index":0,"status":"rejected","message":"m"}]})"), "m");
  EXPECT_EQ(words(R"({"results":[{"index":0,"status":"rejected"}],
                      "errors":[{"index":7,"error":"x"},"y",{"index":0,"error":{"message":"z"}}]})"),
            "z");
  EXPECT_EQ(words(R"({"results":[{"index":0,"status":"rejected","error":"own"}],
                      "errors":[{"index":0,"error":"other"}]})"),
            "own");
}

TEST(IngestReply, WordsAboutOneThatWasNotRejectedAreNotKept) {
  const auto parsed = parse_results(
      R"({"results":[{"index":0,"status":"accepted","error":"x"}],"errors":[{"index":0,"error":"y"}]})",
      1);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->front().error, "");
}

TEST(IngestReply, LongWordsAreCutBetweenCharacters) {
  for (std::size_t before = 0; before < 4; ++before) {
    std::string text(before, 'x');
    while (text.size() < 3 * kMaxLastErrorBytes) text += "€";
    const std::string cut = words(rejected_with("\"" + text + "\""));
    EXPECT_LE(cut.size(), kMaxLastErrorBytes);
    EXPECT_GT(cut.size(), kMaxLastErrorBytes - 3);
    EXPECT_TRUE(is_valid_utf8(cut));
    EXPECT_TRUE(text.starts_with(cut));
  }
  const std::string just_fits(kMaxLastErrorBytes, 'x');
  EXPECT_EQ(words(rejected_with("\"" + just_fits + "\"")), just_fits);
}

std::vector<std::string> offenders(std::string_view body, std::size_t count = 5) {
  std::vector<std::string> found;
  for (const Offender& offender : named_offenders(body, count)) {
    found.push_back(std::to_string(offender.index) + ":" + offender.error);
  }
  return found;
}

TEST(IngestReply, OffendersByIndex) {
  EXPECT_THAT(offenders(R"({"errors":[{"index":3,"error":"bad"},{"index":1,"message":"worse"}]})"),
              ElementsAre("3:bad", "1:worse"));
  EXPECT_THAT(offenders(R"({"details":[{"index":0,"error":{"message":"bad"}}]})"),
              ElementsAre("0:bad"));
  EXPECT_THAT(offenders(R"({"error":{"message":"no","details":[{"index":2,"message":"bad"}]}})"),
              ElementsAre("2:bad"));
  EXPECT_THAT(offenders(R"({"error":{"message":"bad","index":2}})"), ElementsAre("2:bad"));
  EXPECT_THAT(offenders(R"({"error":"bad","index":4})"), ElementsAre("4:bad"));
  EXPECT_THAT(offenders(R"({"error":{"message":"no","details":{"index":2,"reason":"bad"}}})"),
              ElementsAre("2:bad"));
  EXPECT_THAT(offenders(R"({"results":[{"index":0,"status":"accepted"},
                                       {"index":1,"status":"rejected","error":"bad"}]})"),
              ElementsAre("1:bad"));
}

TEST(IngestReply, OffendersByText) {
  EXPECT_THAT(offenders(R"({"error":{"code":"x","message":"events[3].id: missing"}})"),
              ElementsAre("3:events[3].id: missing"));
  EXPECT_THAT(
      offenders("events[1] and events[4] are bad"),
      ElementsAre("1:events[1] and events[4] are bad", "4:events[1] and events[4] are bad"));
  EXPECT_THAT(
      offenders(R"({"errors":["events[0]: bad",{"field":"events[2].type","message":"m"}]})"),
      ElementsAre("0:events[0]: bad", "2:m"));
}

TEST(IngestReply, OffendersThatAreNone) {
  for (const char* body :
       {"", "null", "bad request", R"({"errors":[{"index":5}]})", R"({"errors":[{"index":"1"}]})",
        R"({"errors":{"index":[1]}})", R"({"error":"events[5]"})", R"({"error":"events[-1]"})",
        R"({"error":"events[99999999999999999999999]"})", R"({"error":"events[1"})", "events[",
        "myevents[1]", "events[]", R"({"details":7,"error":[]})"}) {
    EXPECT_THAT(offenders(body), IsEmpty()) << body;
  }
  EXPECT_THAT(named_offenders(R"({"errors":[{"index":0}]})", 0), IsEmpty());
}

TEST(IngestReply, AnOffenderIsNamedOnce) {
  EXPECT_THAT(offenders(R"({"errors":[{"index":1,"error":"a"},{"index":1,"error":"b"}],
                            "details":[{"index":1,"error":"c"}]})"),
              ElementsAre("1:a"));
}

TEST(IngestReply, TheWordsOfARefusal) {
  EXPECT_EQ(refusal_text(R"({"error":{"code":"x","message":"too many"}})"), "too many");
  EXPECT_EQ(refusal_text(R"({"error":"too many"})"), "too many");
  EXPECT_EQ(refusal_text(R"({"message":"too many"})"), "too many");
  EXPECT_EQ(refusal_text(R"({"detail":"too many"})"), "too many");
  EXPECT_EQ(refusal_text("\r\n Not here\r\nmore"), "Not here");
  EXPECT_EQ(refusal_text(R"({"ok":false})"), R"({"ok":false})");
  EXPECT_EQ(refusal_text(""), "");
  EXPECT_EQ(refusal_text("a\xff"), "a\uFFFD");
  EXPECT_LE(refusal_text(std::string(1 << 20, '\xff')).size(), kMaxLastErrorBytes);
}

TEST(IngestReply, TheWishToBeLeftAlone) {
  EXPECT_EQ(retry_after_of(R"({"retry_after_seconds":5})"), 5s);
  EXPECT_EQ(retry_after_of(R"({"error":{"retry_after_seconds":0.25}})"), 250ms);
  EXPECT_EQ(retry_after_of(R"({"retry_after_seconds":1e300})"), kMaxRetryAfter);
  EXPECT_EQ(retry_after_of(R"({"retry_after_seconds":0})"), 0s);
  for (const char* body :
       {"", "{}", R"({"retry_after_seconds":-1})", R"({"retry_after_seconds":"5"})",
        R"({"retry_after_seconds":null})", "[5]"}) {
    EXPECT_EQ(retry_after_of(body), std::nullopt) << body;
  }
}

}  // namespace
}  // namespace reprise::spool
