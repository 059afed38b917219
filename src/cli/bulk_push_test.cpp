#include "cli/bulk_push.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace reprise::cli {
namespace {

using client::Reply;

Reply refusal(int status, std::string_view code) {
  return {.status = status,
          .body = fmt::format(R"({{"error":{{"code":"{}","message":"no"}}}})", code)};
}

// A server that refuses a whole batch for a job with the payload "poison", and one item for "full".
class FakeServer {
 public:
  Result<Reply> push(const std::string& body) {
    if (calls_left == 0) return Error{Errc::unreachable, "gone"};
    --calls_left;
    const auto jobs = JsonView(body)["jobs"].elements();
    batch_sizes.push_back(jobs.size());
    for (const auto& job : jobs) {
      if (job["payload"].raw() == "\"poison\"") return refusal(400, "unknown_field");
    }
    std::string results;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const auto payload = jobs[i]["payload"].raw();
      const bool full = payload == "\"full\"";
      if (!full) stored.emplace_back(payload);
      results += fmt::format(R"({}{{"index":{},"status":"{}","error":{{"code":"queue_full"}}}})",
                             i == 0 ? "" : ",", i, full ? "rejected" : "pushed");
    }
    return Reply{.status = 200, .body = R"({"results":[)" + results + "]}"};
  }

  int calls_left = 1000;
  std::vector<std::size_t> batch_sizes;
  std::vector<std::string> stored;
};

class BulkPushTest : public ::testing::Test {
 protected:
  void add(std::uint64_t line, std::string_view payload) {
    push.add({.line = line, .job = fmt::format(R"({{"payload":{}}})", payload), .id = {}});
  }

  FakeServer server;
  std::vector<std::pair<std::uint64_t, std::string>> rejected;
  BulkPush push{[this](const std::string& body) { return server.push(body); },
                [this](std::uint64_t line, const Problem& problem) {
                  rejected.emplace_back(line, problem.code);
                },
                false};
};

TEST_F(BulkPushTest, SendsBatchesOfAThousand) {
  for (std::uint64_t line = 1; line <= 2500; ++line) add(line, "1");
  EXPECT_EQ(push.counts().lines, 2000U);
  EXPECT_TRUE(push.flush());
  EXPECT_EQ(server.batch_sizes, (std::vector<std::size_t>{1000, 1000, 500}));
  EXPECT_EQ(push.counts().pushed, 2500U);
  EXPECT_EQ(push.counts().lines, 2500U);
}

TEST_F(BulkPushTest, SendsAtMostEightMebibytes) {
  const std::string large = '"' + std::string(3 << 20, 'x') + '"';
  for (std::uint64_t line = 1; line <= 5; ++line) add(line, large);
  push.flush();
  EXPECT_EQ(server.batch_sizes, (std::vector<std::size_t>{2, 2, 1}));
}

TEST_F(BulkPushTest, OneJobBeyondTheBatchSizeGoesAlone) {
  add(1, '"' + std::string(9 << 20, 'x') + '"');
  add(2, "1");
  push.flush();
  EXPECT_EQ(server.batch_sizes, (std::vector<std::size_t>{1, 1}));
}

TEST_F(BulkPushTest, FindsTheJobThatABatchIsRefusedFor) {
  for (std::uint64_t line = 1; line <= 100; ++line) {
    add(line, line == 37 || line == 90 ? "\"poison\"" : std::to_string(line));
  }
  EXPECT_TRUE(push.flush());
  EXPECT_EQ(rejected, (std::vector<std::pair<std::uint64_t, std::string>>{{37, "unknown_field"},
                                                                          {90, "unknown_field"}}));
  ASSERT_EQ(server.stored.size(), 98U);
  EXPECT_EQ(server.stored[36], "38");  // in order, none twice
  EXPECT_EQ(push.counts().rejected, 2U);
}

TEST_F(BulkPushTest, NamesTheLinesOfRefusedItems) {
  add(4, "1");
  add(9, "\"full\"");
  push.flush();
  EXPECT_EQ(rejected, (std::vector<std::pair<std::uint64_t, std::string>>{{9, "queue_full"}}));
  EXPECT_EQ(push.counts().pushed, 1U);
  EXPECT_FALSE(push.stopped());
}

TEST_F(BulkPushTest, StopsWithoutAServerAndTellsTheLinesInDoubt) {
  server.calls_left = 1;
  for (std::uint64_t line = 1; line <= 2000; ++line) add(line, "1");
  ASSERT_TRUE(push.stopped());
  EXPECT_EQ(push.stopped()->first_line, 1001U);
  EXPECT_EQ(push.stopped()->last_line, 2000U);
  EXPECT_EQ(push.stopped()->reply.error().code, Errc::unreachable);
  EXPECT_EQ(push.counts().pushed, 1000U);
  EXPECT_FALSE(push.add({.line = 2001, .job = "{}", .id = {}}));
  EXPECT_FALSE(push.flush());
}

TEST(BulkPush, StopsWhenTheQueueIsNotThere) {
  int calls = 0;
  BulkPush push(
      [&](const std::string&) {
        ++calls;
        return Result<Reply>(refusal(404, "queue_not_found"));
      },
      [](std::uint64_t, const Problem&) { FAIL(); }, false);
  push.add({.line = 1, .job = "{}", .id = {}});
  push.add({.line = 2, .job = "{}", .id = {}});
  EXPECT_FALSE(push.flush());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(push.stopped()->reply->status, 404);
}

TEST(BulkPush, AnAnswerThatDoesNotTellOfEachJobIsNone) {
  for (const char* body : {"{}", R"({"results":[]})", R"({"results":5})",
                           R"({"results":[{"index":0,"status":"pushed"}]})"}) {
    BulkPush push([&](const std::string&) { return Reply{.status = 200, .body = body}; },
                  [](std::uint64_t, const Problem&) { FAIL(); }, false);
    push.add({.line = 1, .job = "{}", .id = {}});
    push.add({.line = 2, .job = "{}", .id = {}});
    EXPECT_FALSE(push.flush()) << body;
    ASSERT_TRUE(push.stopped());
    EXPECT_EQ(push.stopped()->reply.error().code, Errc::unreachable);
    EXPECT_EQ(push.stopped()->last_line, 2U);
    EXPECT_EQ(push.counts().pushed, 0U);
  }
}

TEST_F(BulkPushTest, CountsLinesThatAreNoJobs) {
  push.reject(1, {.code = "invalid_request", .message = "no"});
  EXPECT_EQ(push.counts().rejected, 1U);
  EXPECT_EQ(push.counts().lines, 1U);
  EXPECT_TRUE(push.flush());
  EXPECT_TRUE(server.batch_sizes.empty());
}

// A spool that takes jobs until it has `room` for no more.
class BulkPushWithASpool : public BulkPushTest {
 protected:
  BulkPushWithASpool() {
    push.set_fallback([this](std::span<const PushedJob> jobs) {
      KeptJobs kept;
      kept.stored = kept.dealt_with = std::min(jobs.size(), room - spooled.size());
      for (std::size_t i = 0; i < kept.stored; ++i) spooled.push_back(jobs[i].line);
      if (kept.stored < jobs.size()) kept.error = Error{Errc::spool_full, "full"};
      return kept;
    });
  }

  std::size_t room = 100'000;
  std::vector<std::uint64_t> spooled;  // lines
};

TEST_F(BulkPushWithASpool, IsNotUsedWhileThereIsAServer) {
  for (std::uint64_t line = 1; line <= 1500; ++line) add(line, "1");
  EXPECT_TRUE(push.flush());
  EXPECT_TRUE(spooled.empty());
  EXPECT_FALSE(push.away());
}

TEST_F(BulkPushWithASpool, AllThatIsLeftGoesThereTheBatchInDoubtIncluded) {
  server.calls_left = 1;
  for (std::uint64_t line = 1; line <= 3500; ++line) add(line, "1");
  server.calls_left = 10;  // it came back: nothing overtakes what is spooled
  EXPECT_TRUE(push.flush());
  EXPECT_FALSE(push.stopped());
  EXPECT_EQ(push.counts().pushed, 1000U);
  EXPECT_EQ(push.counts().spooled, 2500U);
  EXPECT_EQ(push.counts().lines, 3500U);
  ASSERT_EQ(spooled.size(), 2500U);
  EXPECT_EQ(spooled.front(), 1001U);
  EXPECT_EQ(spooled.back(), 3500U);
}

TEST_F(BulkPushWithASpool, AServerThatGoesAwayWithinABatchLeavesNoJobBehind) {
  server.calls_left =
      3;  // the batch is refused, its first quarter too, and the first of that stored
  for (std::uint64_t line = 1; line <= 8; ++line) add(line, line == 4 ? "\"poison\"" : "1");
  EXPECT_TRUE(push.flush());
  EXPECT_EQ(push.counts().pushed + push.counts().spooled, 8U);
  EXPECT_EQ(spooled, (std::vector<std::uint64_t>{3, 4, 5, 6, 7, 8}));
}

TEST_F(BulkPushWithASpool, AnAnswerThatTellsNothingIsAReasonToSpool) {
  for (const Reply& answer : {Reply{.status = 503, .body = "{}"},
                              Reply{.status = 502, .body = R"({"message":"Bad Gateway"})"},
                              Reply{.status = 200, .body = R"({"results":[]})"}}) {
    std::size_t kept = 0;
    BulkPush away([&](const std::string&) { return answer; },
                  [](std::uint64_t, const Problem&) { FAIL(); }, false);
    away.set_fallback([&](std::span<const PushedJob> jobs) -> KeptJobs {
      kept += jobs.size();
      return {.dealt_with = jobs.size(), .stored = jobs.size(), .rejected = {}, .error = {}};
    });
    away.add({.line = 1, .job = "{}", .id = {}});
    EXPECT_TRUE(away.flush()) << answer.body;
    EXPECT_EQ(kept, 1U);
  }
}

TEST_F(BulkPushWithASpool, ARefusalIsNoReasonToSpool) {
  BulkPush refused([](const std::string&) { return refusal(404, "queue_not_found"); },
                   [](std::uint64_t, const Problem&) { FAIL(); }, false);
  refused.set_fallback([](std::span<const PushedJob>) -> KeptJobs {
    ADD_FAILURE();
    return {};
  });
  refused.add({.line = 1, .job = "{}", .id = {}});
  EXPECT_FALSE(refused.flush());
  EXPECT_FALSE(refused.stopped()->spool_error);
}

TEST_F(BulkPushWithASpool, AFullSpoolStopsItAndTheLineIsKnown) {
  server.calls_left = 1;
  room = 300;
  for (std::uint64_t line = 1; line <= 2500; ++line) add(line, "1");
  ASSERT_TRUE(push.stopped());
  EXPECT_EQ(push.stopped()->first_line, 1301U);
  EXPECT_EQ(push.stopped()->last_line, 2000U);  // sent, but nobody knows
  EXPECT_EQ(push.stopped()->spool_error->code, Errc::spool_full);
  EXPECT_EQ(push.stopped()->reply.error().code, Errc::unreachable);
  EXPECT_EQ(push.counts().spooled, 300U);
  EXPECT_EQ(push.counts().lines, 1300U);
}

}  // namespace
}  // namespace reprise::cli
