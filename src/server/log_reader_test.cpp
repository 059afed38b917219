#include "server/log_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "support/seeds.h"

namespace reprise::server {
namespace {

using namespace std::chrono_literals;
using worker::LogPart;
using worker::LogQuery;

const std::string kEuro = "\xE2\x82\xAC";

TEST(UnfinishedBytes, AreThoseOfACharacterThatMayStillBecomeOne) {
  EXPECT_EQ(unfinished_bytes(""), 0U);
  EXPECT_EQ(unfinished_bytes("a"), 0U);
  EXPECT_EQ(unfinished_bytes("a\xC3"), 1U);
  EXPECT_EQ(unfinished_bytes("\xC3\xA4"), 0U);
  EXPECT_EQ(unfinished_bytes("\xE2"), 1U);
  EXPECT_EQ(unfinished_bytes("x\xE2\x82"), 2U);
  EXPECT_EQ(unfinished_bytes(kEuro), 0U);
  EXPECT_EQ(unfinished_bytes("\xF0\x9F\x98"), 3U);
  EXPECT_EQ(unfinished_bytes("\xF0\x9F\x98\x80"), 0U);
  EXPECT_EQ(unfinished_bytes("\xFF"), 0U);
  EXPECT_EQ(unfinished_bytes("\xC0"), 0U);
  EXPECT_EQ(unfinished_bytes("\x80\x80\x80\x80"), 0U);
  EXPECT_EQ(unfinished_bytes("\xC3\xA4\x80"), 0U);
}

// A log that is all there, or grows when somebody waits for it.
struct Log {
  std::string bytes;
  bool ended = false;
  std::vector<std::string> to_come{};  // each wait brings one of them
  std::vector<LogQuery> asked{};

  void read(const LogQuery& query, Done<LogPart> done) {
    asked.push_back(query);
    std::size_t begin = std::min<std::size_t>(query.offset, bytes.size());
    if (query.tail) begin = bytes.size() - std::min<std::size_t>(*query.tail, bytes.size());
    if (begin == bytes.size() && query.wait > 0s && !to_come.empty()) {
      bytes += to_come.front();
      to_come.erase(to_come.begin());
    }
    LogPart part{.text = bytes.substr(begin, query.limit)};
    part.next = begin + part.text.size();
    part.ended = ended && part.next == bytes.size();
    done(std::move(part));
  }
};

LogPart read(Log& log, LogQuery query) {
  std::optional<Result<LogPart>> result;
  read_log([&](const LogQuery& part, Done<LogPart> done) { log.read(part, std::move(done)); },
           query, [&](Result<LogPart> part) { result = std::move(part); });
  EXPECT_TRUE(result && *result);
  return result && *result ? **result : LogPart{};
}

TEST(ReadLog, LeavesAnUnfinishedCharacterForTheNextPart) {
  Log log{.bytes = "ab" + kEuro + "c"};
  const LogPart part = read(log, {.limit = 4});
  EXPECT_EQ(part.text, "ab");
  EXPECT_EQ(part.next, 2U);
  EXPECT_EQ(read(log, {.offset = 2, .limit = 4}).text, kEuro + "c");
}

TEST(ReadLog, AtTheEndNothingIsLeft) {
  Log log{.bytes = "ab\xE2", .ended = true};
  const LogPart part = read(log, {});
  EXPECT_EQ(part.text, "ab\xE2");
  EXPECT_EQ(part.next, 3U);
  EXPECT_TRUE(part.ended);
}

TEST(ReadLog, GoesOnWaitingForTheRestOfACharacter) {
  Log log{.bytes = "\xE2", .to_come = {"\x82", "\xACx"}};
  const LogPart part = read(log, {.wait = 1min});
  EXPECT_EQ(part.text, kEuro + "x");
  EXPECT_EQ(part.next, 4U);
  ASSERT_EQ(log.asked.size(), 3U);
  EXPECT_EQ(log.asked[2].offset, 2U);
  EXPECT_LE(log.asked[2].wait, 1min);
}

TEST(ReadLog, AnswersWithNothingWhenTheRestDoesNotCome) {
  Log log{.bytes = "a\xE2"};
  const LogPart part = read(log, {.offset = 1, .wait = 1min});
  EXPECT_EQ(part.text, "");
  EXPECT_EQ(part.next, 1U);
  EXPECT_FALSE(part.ended);
  EXPECT_EQ(log.asked.size(), 2U);  // and does not go round in circles
  EXPECT_EQ(read(log, {.offset = 1}).next, 1U);
  EXPECT_EQ(log.asked.size(), 3U);
}

TEST(ReadLog, ATailBeginsWithAWholeCharacter) {
  Log log{.bytes = "a" + kEuro + "b"};
  for (const auto& [tail, text] : {std::pair<std::uint64_t, std::string>{0, ""},
                                   {1, "b"},
                                   {2, "b"},
                                   {3, "b"},
                                   {4, kEuro + "b"},
                                   {9, "a" + kEuro + "b"}}) {
    const LogPart part = read(log, {.tail = tail});
    EXPECT_EQ(part.text, text) << tail;
    EXPECT_EQ(part.next, 5U) << tail;
  }
  Log odd{.bytes = "\x82\x82"};  // which is all there is, so nothing was cut
  EXPECT_EQ(read(odd, {.tail = 9}).text, "\x82\x82");
}

TEST(ReadLog, AnErrorIsPassedOn) {
  std::optional<Error> error;
  read_log(
      [](const LogQuery&, Done<LogPart> done) {
        done(Error{Errc::run_not_found, "no run"});
      },
      {}, [&](const Result<LogPart>& part) { error = part.error(); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Errc::run_not_found);
}

// Whatever the bytes and however small the parts: all bytes come, in order, and no valid character
// is cut in two.
TEST(ReadLog, PartsPutTogetherAreTheLog) {
  for (std::uint64_t seed = 1; seed <= test::seed_count(500); ++seed) {
    SeededRandom random(seed);
    Log log{.ended = true};
    while (log.bytes.size() < 200) {
      switch (random.below(4)) {
        case 0:
          log.bytes += kEuro;
          break;
        case 1:
          log.bytes += "\xF0\x9F\x98\x80";
          break;
        case 2:
          log.bytes += static_cast<char>(seed % 2 == 0 ? random.below(256) : 'x');
          break;
        default:
          log.bytes += "a";
      }
    }
    std::string together;
    LogQuery query;
    for (int parts = 0; parts < 500; ++parts) {
      query.limit = 4 + random.below(6);
      const LogPart part = read(log, query);
      ASSERT_FALSE(part.text.empty() && !part.ended) << seed;
      if (seed % 2 == 1) {
        EXPECT_TRUE(is_valid_utf8(part.text)) << seed;
      }
      together += part.text;
      query.offset = part.next;
      if (part.ended) break;
    }
    EXPECT_EQ(together, log.bytes) << seed;
  }
}

}  // namespace
}  // namespace reprise::server
