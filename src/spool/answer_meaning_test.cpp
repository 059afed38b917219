#include "spool/answer_meaning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise::spool {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const std::string kUrl = "https://in.example/x";

Judgement judged(int status, std::string body = {}, std::string location = {}) {
  return judge({.status = status, .body = std::move(body), .location = std::move(location)}, kUrl,
               2);
}

TEST(AnswerMeaning, EveryStatusMeansSomething) {
  for (int status = 100; status < 700; ++status) {
    const Meaning meaning = judged(status, R"({"results":[]})").meaning;
    if (status >= 200 && status < 300) {
      EXPECT_EQ(meaning, Meaning::verdicts) << status;
    } else if (status == 400 || status == 413 || status == 422) {
      EXPECT_EQ(meaning, Meaning::bad_request) << status;
    } else if (status == 408 || status == 429 || status < 200 || status >= 500) {
      EXPECT_EQ(meaning, Meaning::trouble) << status;
    } else {
      EXPECT_EQ(meaning, Meaning::refused) << status;
    }
  }
}

TEST(AnswerMeaning, ASuccessWithoutResultsIsTrouble) {
  const Judgement judgement = judged(200, "<html>Welcome");
  EXPECT_EQ(judgement.meaning, Meaning::trouble);
  EXPECT_EQ(judgement.reason,
            "https://in.example/x answered 200, but not with results for a batch: <html>Welcome");
  EXPECT_EQ(judged(204).meaning, Meaning::trouble);
}

TEST(AnswerMeaning, NoAnswerIsTroubleWithItsReason) {
  const Judgement judgement = judge({.detail = "cannot reach it"}, kUrl, 2);
  EXPECT_EQ(judgement.meaning, Meaning::trouble);
  EXPECT_EQ(judgement.reason, "cannot reach it");
}

TEST(AnswerMeaning, TheReasonSaysWhatToDo) {
  EXPECT_EQ(judged(401).reason,
            "https://in.example/x refuses the token (401): give the right one with --token-file or "
            "REPRISE_TOKEN");
  EXPECT_THAT(judged(403, R"({"error":"no"})").reason, HasSubstr("(403: no): give"));
  EXPECT_EQ(judged(307, "", "https://there.example/").reason,
            "https://in.example/x redirects to https://there.example/ (307): give that with --to");
  EXPECT_THAT(judged(304).reason, HasSubstr("check --to"));
  EXPECT_EQ(judged(404, "nothing here").reason,
            "https://in.example/x answered 404: nothing here; check --to");
  EXPECT_EQ(judged(405).reason, "https://in.example/x answered 405; check --to");
  EXPECT_EQ(judged(503, R"({"error":{"message":"later"}})").reason,
            "https://in.example/x answered 503: later");
}

TEST(AnswerMeaning, WordsInAReasonAreShort) {
  EXPECT_LT(judged(500, std::string(100'000, 'x')).reason.size(), 500U);
}

TEST(AnswerMeaning, TheGreaterWishCounts) {
  const auto patience = [](std::optional<Duration> header, std::string body) {
    return judge({.status = 503, .body = std::move(body), .retry_after = header}, kUrl, 1).patience;
  };
  EXPECT_EQ(patience({}, ""), std::nullopt);
  EXPECT_EQ(patience(5s, ""), 5s);
  EXPECT_EQ(patience({}, R"({"retry_after_seconds":6})"), 6s);
  EXPECT_EQ(patience(5s, R"({"retry_after_seconds":6})"), 6s);
  EXPECT_EQ(patience(7s, R"({"retry_after_seconds":6})"), 7s);
}

}  // namespace
}  // namespace reprise::spool
