#include "cli/push_fallback.h"

#include <gtest/gtest.h>

#include "base/json_view.h"
#include "spool/event.h"

namespace reprise::cli {
namespace {

using client::Reply;

constexpr char kUlid[] = "01KA5QH3M5T6W0V8Z2Y4X6C8B1";

Reply answer(int status) {
  return {.status = status, .body = R"({"error":{"code":"overloaded","message":"busy"}})"};
}

std::vector<PushedJob> jobs(std::size_t count) {
  std::vector<PushedJob> made;
  for (std::size_t i = 1; i <= count; ++i) {
    made.push_back({.line = 10 * i, .job = R"({"payload":1})", .id = {}});
  }
  return made;
}

TEST(IsAway, NoAnswerAndNotNowAre) {
  EXPECT_TRUE(is_away(Error{Errc::unreachable, "gone"}));
  for (const int status : {502, 503, 504}) EXPECT_TRUE(is_away(answer(status))) << status;
}

TEST(IsAway, AnAnswerAboutTheJobIsNot) {
  for (const int status : {200, 400, 401, 404, 409, 413, 429, 500, 507}) {
    EXPECT_FALSE(is_away(answer(status))) << status;
  }
}

TEST(AwayReason, SaysWhoAndWhy) {
  EXPECT_EQ(away_reason("http://q", Error{Errc::unreachable, "cannot reach http://q: refused"}),
            "cannot reach http://q: refused");
  EXPECT_EQ(away_reason("http://q", answer(503)), "http://q answered HTTP 503: busy");
}

TEST(SpooledNote, NamesTheNextCommandAndTheCost) {
  EXPECT_EQ(spooled_note({"/spool", "cannot reach http://q", "it", 0}),
            "spooled in /spool: cannot reach http://q; send it later with: reprise spool drain");
  EXPECT_NE(spooled_note({"/spool", "gone", "them", 3}).find("3 older events"), std::string::npos);
}

TEST(PushEvent, KeepsTheJobWhole) {
  const std::string job = R"({"payload":{"id":1.0},"delay":"5m","key":"own"})";
  const auto event =
      push_event({.ns = "shop", .queue = "orders", .create = true}, *decode_ulid(kUlid), job);
  ASSERT_TRUE(event);
  const JsonView json(*event);
  EXPECT_EQ(json["id"].string_or(""), kUlid);
  EXPECT_EQ(json["type"].string_or(""), "reprise.push");
  EXPECT_EQ(json["data"].raw(),
            R"({"namespace":"shop","queue":"orders","create":true,"job":)" + job + "}");
}

TEST(KeepJobs, StoresOneFileEach) {
  std::vector<spool::NewFile> files;
  auto some = jobs(2);
  some[1].id = *decode_ulid(kUlid);
  const auto kept = keep_jobs({}, some, [&](const auto& events) -> Result<spool::Added> {
    files = events;
    return spool::Added{};
  });
  EXPECT_EQ(kept.stored, 2U);
  EXPECT_EQ(kept.dealt_with, 2U);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[1].name, "01KA5QH3M5T6W0V8Z2Y4X6C8B1.json");
}

TEST(KeepJobs, WhatIsTooLargeIsRejectedAndTheOthersStored) {
  auto some = jobs(3);
  some[1].job = R"({"payload":")" + std::string(spool::kMaxEventBytes, 'x') + "\"}";
  const auto kept =
      keep_jobs({}, some, [](const auto&) -> Result<spool::Added> { return spool::Added{}; });
  EXPECT_EQ(kept.stored, 2U);
  EXPECT_EQ(kept.dealt_with, 3U);
  ASSERT_EQ(kept.rejected.size(), 1U);
  EXPECT_EQ(kept.rejected[0].first, 20U);
  EXPECT_EQ(kept.rejected[0].second.code, "payload_too_large");
}

TEST(KeepJobs, WhatIsNestedTooDeepToBeSentIsRejected) {
  auto some = jobs(2);
  // A request has an object and an array around the event, the event three around the payload.
  some[0].job = R"({"payload":)" + std::string(59, '[') + std::string(59, ']') + "}";
  some[1].job = R"({"payload":)" + std::string(60, '[') + std::string(60, ']') + "}";
  const auto kept =
      keep_jobs({}, some, [](const auto&) -> Result<spool::Added> { return spool::Added{}; });
  EXPECT_EQ(kept.stored, 1U);
  ASSERT_EQ(kept.rejected.size(), 1U);
  EXPECT_EQ(kept.rejected[0].first, 20U);
}

TEST(KeepJobs, SaysFromWhichJobOnTheSpoolWasFull) {
  auto some = jobs(5);
  const std::string large = R"({"payload":")" + std::string(spool::kMaxEventBytes, 'x') + "\"}";
  some[1].job = large;
  some[4].job = large;
  // Room for two: the first and the third.
  std::size_t room = 2;
  const auto kept = keep_jobs({}, some, [&](const auto& events) -> Result<spool::Added> {
    if (events.size() > room) return Error{Errc::spool_full, "full"};
    room -= events.size();
    return spool::Added{};
  });
  EXPECT_EQ(kept.stored, 2U);
  EXPECT_EQ(kept.dealt_with, 3U);
  ASSERT_EQ(kept.rejected.size(), 1U);
  EXPECT_EQ(kept.rejected[0].first, 20U);
  EXPECT_EQ(kept.error->code, Errc::spool_full);
}

}  // namespace
}  // namespace reprise::cli
