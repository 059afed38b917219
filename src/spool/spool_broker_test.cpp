// The drain against a real server: killed after any step, everything is stored once.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "spool/drain.h"
#include "spool/event.h"
#include "support/drain_fixture.h"
#include "support/live_server.h"

namespace reprise::spool {
namespace {

using test::Ids;
using test::test_id;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kTarget = "/api/events/ingest?queue=orders";
const QueueName kOrders{.ns = "default", .name = "orders"};

class SpoolBrokerTest : public test::DrainTest {
 protected:
  Result<DrainResult> drain_to_server() {
    const auto ingest = make_http_ingest(server.url(std::string(kTarget)), "", {});
    if (!ingest) return ingest.error();
    Drain drain({files, **ingest, pauses, clock, random}, options,
                {[this](const std::string& text) { warnings.push_back(text); }, {}});
    return drain.run();
  }
  bool drain_killed_at(std::size_t step) {
    const pid_t child = fork();
    if (child == 0) {
      std::size_t steps = 0;
      files.set_step_observer([&](std::string_view) {
        if (++steps == step) kill(getpid(), SIGKILL);
      });
      _exit(drain_to_server() ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) return true;
    EXPECT_EQ(WEXITSTATUS(status), 0);
    return false;
  }
  // The ids of the jobs that the server has, in order.
  Ids stored_ids() {
    Ids ids;
    for (const std::string& payload : server.take_payloads(kOrders)) {
      const auto event = parse_event(payload);
      EXPECT_TRUE(event) << payload;
      if (event) ids.push_back(event->id);
    }
    std::ranges::sort(ids);
    return ids;
  }

  test::LiveServer server;
};

TEST_F(SpoolBrokerTest, EventsBecomeJobsByteForByte) {
  const std::string text = R"({ "id": ")" + test_id(1) + R"(", "type": "t", "x": 1.50 })";
  put(test_id(1) + ".json", text);
  const auto result = drain_to_server();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->accepted, 1U);
  EXPECT_THAT(server.take_payloads(kOrders), ElementsAre(text));
}

TEST_F(SpoolBrokerTest, WhatTheServerKnowsIsADuplicate) {
  put_events(120);
  EXPECT_EQ(drain_to_server()->accepted, 120U);
  put_events(130);
  const auto result = drain_to_server();
  EXPECT_EQ(result->duplicates, 120U);
  EXPECT_EQ(result->accepted, 10U);
  EXPECT_EQ(stored_ids().size(), 130U);
}

TEST_F(SpoolBrokerTest, TheServersReasonIsKept) {
  put(test_id(1) + ".json", R"({"id":")" + test_id(1) + R"("})");
  const auto result = drain_to_server();
  EXPECT_EQ(result->retried, 1U);
  EXPECT_THAT(queued_json(test_id(1))["_lastError"].string_or(""), HasSubstr("type"));
}

TEST_F(SpoolBrokerTest, KilledAfterAnyStepEverythingIsStoredOnce) {
  options.batch = 3;
  options.removal_threads = 0;  // so that steps have an order
  constexpr std::size_t kPerStep = 10;
  for (std::size_t step = 1;; ++step) {
    SCOPED_TRACE(step);
    std::filesystem::remove_all(directory.path());
    files = make_spool(directory.path());
    // New ids each time: the server does not forget.
    const std::size_t first = step * kPerStep;
    Ids good;
    for (std::size_t i = 0; i < kPerStep; ++i) good.push_back(put_event(first + i));
    const std::string rejected = good[4];
    const std::string dies = good[6];
    put(rejected + ".json", R"({"id":")" + rejected + R"("})");
    put(dies + ".json", R"({"id":")" + dies + R"(","_attempts":9})");
    std::erase(good, rejected);
    std::erase(good, dies);

    const bool was_killed = drain_killed_at(step);
    const auto result = drain_to_server();
    ASSERT_TRUE(result) << result.error().detail;
    EXPECT_EQ(result->end, DrainEnd::finished);
    EXPECT_EQ(stored_ids(), good);
    EXPECT_THAT(queued(), ElementsAre(rejected + ".json"));
    EXPECT_THAT(dead(), ElementsAre(dies + ".json"));
    if (!was_killed) break;
    ASSERT_LT(step, 1000U);
  }
}

}  // namespace
}  // namespace reprise::spool
