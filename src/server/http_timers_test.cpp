// Timers over HTTP: polls, then jobs that cool down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "support/worker_http_fixture.h"

namespace reprise::server {
namespace {

using test::HttpReply;
using test::kNoon;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HttpTimers : public test::WorkerHttpTest {
 protected:
  HttpTimers() {
    broker.on_browse = [this](const BrowseQuery& query) { return browse(query); };
  }

  // Pages of at most two jobs, due a second after another.
  Result<BrowsePage> browse(const BrowseQuery& query) {
    EXPECT_EQ(query.filter.status, JobStatus::failed);
    if (gone == query.queue.name) return Error{Errc::queue_not_found, "gone"};
    const std::uint64_t first = query.cursor.empty() ? 1 : std::stoull(query.cursor);
    BrowsePage page;
    if (empty_pages > 0) {
      --empty_pages;
      page.cursor = std::to_string(first);
      return page;
    }
    std::uint64_t next = first;
    while (next <= failed[query.queue.name] && page.jobs.size() < std::min(query.limit, 2U)) {
      auto state = std::make_shared<JobState>();
      state->status = JobStatus::failed;
      state->due = kNoon + std::chrono::seconds(next);
      page.jobs.push_back({next++, JobStatus::failed, test::record_of("1"), std::move(state)});
    }
    if (next <= failed[query.queue.name]) page.cursor = std::to_string(next);
    return page;
  }

  void add_queue(const std::string& name, std::uint64_t jobs) {
    failed[name] = jobs;
    QueueStats stats = test::stats_of({"shop", name});
    stats.by_status[static_cast<std::size_t>(JobStatus::failed)] = jobs;
    broker.queues.push_back(stats);
  }

  std::vector<std::string> ids(const HttpReply& reply) {
    std::vector<std::string> found;
    const Json json = json_of(reply);
    if (json["timers"].array() == nullptr) return found;
    for (const Json& timer : *json["timers"].array()) found.push_back(timer["id"].string_or(""));
    return found;
  }
  static std::string retry(const std::string& queue, Seq seq) {
    return "queue-retry:shop/" + queue + ":" + encode_job_id(seq);
  }

  std::map<std::string, std::uint64_t> failed;
  std::string gone;
  int empty_pages = 0;
};

TEST_F(HttpTimers, PollsComeBeforeJobs) {
  service.timers = std::vector<worker::TimerView>{{"queue-poll:shop/fixer", kNoon}};
  add_queue("calm", 0);
  add_queue("mail", 1);
  add_queue("orders", 3);
  const HttpReply reply = ask("GET", "/v1/timers?namespace=shop");
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(ids(reply), ElementsAre("queue-poll:shop/fixer", retry("mail", 1), retry("orders", 1),
                                      retry("orders", 2), retry("orders", 3)));
  EXPECT_EQ(reply.body.substr(0, 74),
            R"({"timers":[{"id":"queue-poll:shop/fixer","due_at":"2026-01-31T12:00:00.000)");
  EXPECT_EQ(json_of(reply)["timers"].array()->back()["due_at"].string_or(""),
            "2026-01-31T12:00:03.000Z");
  ask("GET", "/v1/timers?namespace=*");
  ask("GET", "/v1/timers");
  service.with_lock(
      [](auto& asked) { EXPECT_THAT(asked.namespaces, ElementsAre("shop", "", "default")); });
  broker.with_lock(
      [](auto& asked) { EXPECT_THAT(asked.listed, ElementsAre("shop", "", "default")); });
}

TEST_F(HttpTimers, ThereAreAtMostSoMany) {
  service.timers =
      std::vector<worker::TimerView>{{"queue-poll:shop/a", kNoon}, {"queue-poll:shop/b", kNoon}};
  add_queue("mail", 3);
  add_queue("orders", 200);
  EXPECT_THAT(ids(ask("GET", "/v1/timers?limit=1")), ElementsAre("queue-poll:shop/a"));
  broker.with_lock([](auto& asked) { EXPECT_THAT(asked.browses, IsEmpty()); });
  EXPECT_THAT(ids(ask("GET", "/v1/timers?limit=6")),
              ElementsAre("queue-poll:shop/a", "queue-poll:shop/b", retry("mail", 1),
                          retry("mail", 2), retry("mail", 3), retry("orders", 1)));
  EXPECT_EQ(ids(ask("GET", "/v1/timers")).size(), 100U);
  EXPECT_EQ(ids(ask("GET", "/v1/timers?limit=1000")).size(), 205U);
  for (const char* limit : {"0", "1001", "x"}) {
    EXPECT_EQ(refused("GET", std::string("/v1/timers?limit=") + limit, "", "limit"),
              "invalid_field");
  }
}

TEST_F(HttpTimers, AQueueThatIsDeletedMeanwhileHasNone) {
  add_queue("mail", 2);
  add_queue("orders", 1);
  gone = "mail";
  EXPECT_THAT(ids(ask("GET", "/v1/timers")), ElementsAre(retry("orders", 1)));
}

TEST_F(HttpTimers, PagesThatTurnUpNothingHaveAnEnd) {
  add_queue("mail", 1);
  empty_pages = 3;
  EXPECT_THAT(ids(ask("GET", "/v1/timers")), ElementsAre(retry("mail", 1)));
  broker.with_lock([this](auto&) { empty_pages = 1'000'000; });
  EXPECT_THAT(ids(ask("GET", "/v1/timers")), IsEmpty());
  broker.with_lock([](auto& asked) { EXPECT_LT(asked.browses.size(), 100U); });
}

TEST_F(HttpTimers, JobsCoolDownWithoutWorkersToo) {
  add_queue("mail", 1);
  server.reset();
  start();
  EXPECT_THAT(ids(ask("GET", "/v1/timers?namespace=shop")), ElementsAre(retry("mail", 1)));
}

TEST_F(HttpTimers, WhatFailsIsTold) {
  EXPECT_EQ(refused("GET", "/v1/timers?kind=poll", "", "kind"), "unknown_field");
  EXPECT_EQ(refused("GET", "/v1/timers?namespace=.a"), "invalid_name");
  EXPECT_EQ(refused("GET", "/v1/timers", R"({"a":1})", "a"), "unknown_field");
  service.with_lock([&](auto&) { service.timers = Error{Errc::shutting_down, "stopping"}; });
  EXPECT_EQ(refused("GET", "/v1/timers"), "shutting_down");
}

}  // namespace
}  // namespace reprise::server
