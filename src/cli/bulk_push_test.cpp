#include "cli/bulk_push.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace reprise::cli {
namespace {

using client::JsonView;
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
    push.add(line, fmt::format(R"({{"payload":{}}})", payload));
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
  EXPECT_FALSE(push.add(2001, "{}"));
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
  push.add(1, "{}");
  push.add(2, "{}");
  EXPECT_FALSE(push.flush());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(push.stopped()->reply->status, 404);
}

TEST_F(BulkPushTest, CountsLinesThatAreNoJobs) {
  push.reject(1, {.code = "invalid_request", .message = "no"});
  EXPECT_EQ(push.counts().rejected, 1U);
  EXPECT_EQ(push.counts().lines, 1U);
  EXPECT_TRUE(push.flush());
  EXPECT_TRUE(server.batch_sizes.empty());
}

}  // namespace
}  // namespace reprise::cli
