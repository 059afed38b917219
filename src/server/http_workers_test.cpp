// Workers and external queues over HTTP: what is read, what is refused, and what is answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "support/worker_http_fixture.h"

namespace reprise::server {
namespace {

using test::HttpReply;
using test::kNoon;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using worker::ExternalQueueView;
using worker::WorkerCommand;
using worker::WorkerReply;
using worker::WorkerStatus;
using worker::WorkerVerb;
using worker::WorkerView;

WorkerView shipper() {
  return {.ns = "shop",
          .name = "shipper",
          .queue = "orders",
          .pipeline = "ship",
          .status = WorkerStatus::running,
          .active = 1,
          .concurrency = 4,
          .autostart = true,
          .succeeded = 12,
          .failed = 1};
}
constexpr const char* kShipper =
    R"({"name":"shipper","namespace":"shop","queue":"orders","type":"persisted",)"
    R"("pipeline":"ship","status":"running","active":1,"concurrency":4,"autostart":true,)"
    R"("last_poll_at":null,"next_poll_at":null,"succeeded":12,"failed":1,"last_error":null,)"
    R"("last_error_at":null})";

ExternalQueueView bugs() {
  return {.queue = {"shop", "bugs"},
          .workers = {"fixer"},
          .poll = std::chrono::seconds(30),
          .last_poll_at = kNoon,
          .listed = 3,
          .in_hand = 1};
}
constexpr const char* kBugs =
    R"({"name":"bugs","namespace":"shop","type":"external","workers":["fixer"],"poll":"30s",)"
    R"("last_poll_at":"2026-01-31T12:00:00.000Z","listed":3,"in_hand":1,"last_error":null})";

class HttpWorkers : public test::WorkerHttpTest {
 protected:
  // What the service was asked to change last.
  WorkerCommand change(std::string_view target, std::string_view body) {
    EXPECT_EQ(ask("POST", target, body).status, 200) << body;
    return service.with_lock([](auto& asked) {
      EXPECT_FALSE(asked.changes.empty());
      return asked.changes.empty() ? WorkerCommand{} : asked.changes.back();
    });
  }
  std::size_t changes() {
    return service.with_lock([](auto& asked) { return asked.changes.size(); });
  }
};

TEST_F(HttpWorkers, ThoseOfANamespaceAreListedWithTheirProjects) {
  WorkerView fixer{.ns = "shop",
                   .name = "fixer",
                   .queue = "bugs",
                   .external = true,
                   .pipeline = "fix",
                   .status = WorkerStatus::restarting,
                   .concurrency = 1,
                   .last_poll_at = kNoon,
                   .next_poll_at = kNoon + std::chrono::seconds(30),
                   .last_error = "list: exit code 1",
                   .last_error_at = kNoon};
  service.workers = worker::WorkerList{.workers = {fixer, shipper()}, .projects = {{.ns = "shop"}}};
  const HttpReply reply = ask("GET", "/v1/workers?namespace=shop");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(
      reply.body,
      R"({"workers":[{"name":"fixer","namespace":"shop","queue":"bugs","type":"external",)"
      R"("pipeline":"fix","status":"restarting","active":0,"concurrency":1,)"
      R"("autostart":false,"last_poll_at":"2026-01-31T12:00:00.000Z",)"
      R"("next_poll_at":"2026-01-31T12:00:30.000Z","succeeded":0,"failed":0,)"
      R"("last_error":"list: exit code 1","last_error_at":"2026-01-31T12:00:00.000Z"},)" +
          std::string(kShipper) +
          R"(],"projects":[{"name":"shop","root":"","loaded_at":null,"broken":false,"missing":false,)"
          R"("files":[],"queues":0,"pipelines":0,"workers":0,"findings":[]}]})");
  ask("GET", "/v1/workers");
  ask("GET", "/v1/workers?namespace=*");
  service.with_lock(
      [](auto& asked) { EXPECT_THAT(asked.namespaces, ElementsAre("shop", "default", "")); });
}

TEST_F(HttpWorkers, TheyAreStarted) {
  service.changed_workers = WorkerReply{.items = {{"shipper", shipper(), true}}};
  const HttpReply reply = ask("POST", "/v1/workers/start?namespace=shop",
                              R"({"names":["shipper"],"root":"/srv/shop"})");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"results":[{"name":"shipper","status":"running","was_running":true,)"
                        R"("worker":)" +
                            std::string(kShipper) + "}]}");
  const WorkerCommand asked = service.with_lock([](auto& all) { return all.changes.back(); });
  EXPECT_EQ(asked.verb, WorkerVerb::start);
  EXPECT_EQ(asked.ns, "shop");
  EXPECT_EQ(asked.root, "/srv/shop");
  EXPECT_THAT(asked.names, ElementsAre("shipper"));
  EXPECT_FALSE(asked.all);
}

TEST_F(HttpWorkers, EachVerbHasItsFields) {
  const WorkerCommand start = change("/v1/workers/start", R"({"all":true})");
  EXPECT_EQ(start.verb, WorkerVerb::start);
  EXPECT_EQ(start.ns, "default");
  EXPECT_TRUE(start.all);
  EXPECT_THAT(start.names, IsEmpty());
  EXPECT_EQ(start.root, "");
  const WorkerCommand stop = change("/v1/workers/stop", R"({"names":["a","b","a"],"now":true})");
  EXPECT_EQ(stop.verb, WorkerVerb::stop);
  EXPECT_THAT(stop.names, ElementsAre("a", "b"));
  EXPECT_TRUE(stop.now);
  const WorkerCommand restart = change("/v1/workers/restart", R"({"names":["a"],"all":false})");
  EXPECT_EQ(restart.verb, WorkerVerb::restart);
  EXPECT_FALSE(restart.now);
  const WorkerCommand resize =
      change("/v1/workers/resize", R"({"names":["a"],"concurrency":1000})");
  EXPECT_EQ(resize.verb, WorkerVerb::resize);
  EXPECT_THAT(resize.names, ElementsAre("a"));
  EXPECT_EQ(resize.concurrency, 1000U);
  EXPECT_EQ(ask("POST", "/v1/workers/stop", R"({"names":[]})").body, R"({"results":[]})");
}

TEST_F(HttpWorkers, SomeMaySucceedWhileOthersAreRefused) {
  const Error absent{Errc::worker_not_found, "no worker 'shiper'; did you mean 'shipper'?"};
  service.changed_workers =
      WorkerReply{.items = {{"shiper", absent}, {"shipper", shipper(), false}}};
  const HttpReply some = ask("POST", "/v1/workers/stop", R"({"names":["shiper","shipper"]})");
  EXPECT_EQ(some.status, 200);
  EXPECT_THAT(some.body, HasSubstr(R"({"results":[{"name":"shiper","status":"error",)"
                                   R"("error":{"code":"worker_not_found","message":)"));
  service.with_lock([&](auto&) {
    service.changed_workers = WorkerReply{.items = {{"shiper", absent}}};
  });
  const HttpReply none = ask("POST", "/v1/workers/stop", R"({"names":["shiper"]})");
  EXPECT_EQ(none.status, 404);
  EXPECT_THAT(none.body, HasSubstr(R"({"results":[{"name":"shiper","status":"error",)"));
  service.with_lock([&](auto&) {
    service.changed_workers = Error{Errc::project_not_found, "no project 'default'"};
  });
  EXPECT_EQ(refused("POST", "/v1/workers/stop", R"({"all":true})"), "project_not_found");
}

TEST_F(HttpWorkers, WhichOnesMustBeSaid) {
  for (const char* verb : {"start", "stop", "restart"}) {
    const std::string target = std::string("/v1/workers/") + verb;
    for (const char* body : {"", "{}", R"({"names":null})", R"({"all":false})"}) {
      EXPECT_EQ(refused("POST", target, body, "names: is missing"), "invalid_request") << body;
    }
    EXPECT_EQ(refused("POST", target, R"({"names":["a"],"all":true})", "not both"),
              "invalid_request");
    EXPECT_EQ(refused("POST", target, R"({"names":"a"})", "names:"), "invalid_request");
    EXPECT_EQ(refused("POST", target, R"({"names":[1]})", "names:"), "invalid_request");
    EXPECT_EQ(refused("POST", target, R"({"names":["a b"]})", "worker name"), "invalid_name");
    EXPECT_EQ(refused("POST", target, R"({"names":[""]})", "worker name"), "invalid_name");
    EXPECT_EQ(refused("POST", target, R"({"all":"yes"})", "all:"), "invalid_request");
  }
  EXPECT_EQ(changes(), 0U);
}

TEST_F(HttpWorkers, SoManyAreNamedAtOnce) {
  const auto body = [](int count) {
    std::string names;
    for (int i = 0; i < count; ++i) names += (i > 0 ? ",\"w" : "\"w") + std::to_string(i) + "\"";
    return R"({"names":[)" + names + "]}";
  };
  EXPECT_EQ(change("/v1/workers/stop", body(1000)).names.size(), 1000U);
  EXPECT_EQ(refused("POST", "/v1/workers/stop", body(1001), "1000"), "batch_too_many_jobs");
}

TEST_F(HttpWorkers, OneIsResizedAtATime) {
  const std::string target = "/v1/workers/resize";
  for (const char* body :
       {"{}", R"({"names":[],"concurrency":2})", R"({"names":["a","b"],"concurrency":2})"}) {
    EXPECT_EQ(refused("POST", target, body, "names: one worker"), "invalid_request") << body;
  }
  EXPECT_EQ(refused("POST", target, R"({"names":["a"]})", "concurrency: is missing"),
            "invalid_request");
  for (const char* number : {"0", "1001", "-1", "1.5", "4294967297"}) {
    EXPECT_EQ(
        refused("POST", target, R"({"names":["a"],"concurrency":)" + std::string(number) + "}",
                "concurrency:"),
        "invalid_field")
        << number;
  }
  EXPECT_EQ(refused("POST", target, R"({"names":["a"],"concurrency":"2"})", "concurrency:"),
            "invalid_request");
  EXPECT_EQ(refused("POST", target, R"({"all":true,"concurrency":2})", "all"), "unknown_field");
  EXPECT_EQ(changes(), 0U);
}

TEST_F(HttpWorkers, NothingElseIsTaken) {
  EXPECT_EQ(refused("POST", "/v1/workers/start", R"({"all":true,"now":true})", "now"),
            "unknown_field");
  EXPECT_EQ(refused("POST", "/v1/workers/stop", R"({"all":true,"root":"/a"})", "root"),
            "unknown_field");
  EXPECT_EQ(refused("POST", "/v1/workers/start", R"({"all":true,"root":"a"})", "root"),
            "invalid_field");
  EXPECT_EQ(refused("POST", "/v1/workers/start?now=true", R"({"all":true})", "now"),
            "unknown_field");
  EXPECT_EQ(refused("POST", "/v1/workers/start?namespace=*", R"({"all":true})", "namespace"),
            "invalid_name");
  EXPECT_EQ(refused("POST", "/v1/workers/start", "[]"), "invalid_request");
  EXPECT_EQ(refused("GET", "/v1/workers?name=a", "", "name"), "unknown_field");
  EXPECT_EQ(refused("GET", "/v1/workers?namespace=.a", "", "namespace"), "invalid_name");
  EXPECT_EQ(refused("GET", "/v1/workers", R"({"all":true})", "all"), "unknown_field");
  EXPECT_EQ(refused("GET", "/v1/workers/start"), "method_not_allowed");
  EXPECT_EQ(refused("POST", "/v1/workers/pause"), "not_found");
  EXPECT_EQ(changes(), 0U);
}

TEST_F(HttpWorkers, AnExternalQueueIsListedOnDemand) {
  service.refreshed = bugs();
  const HttpReply reply = ask("POST", "/v1/queues/bugs/refresh?namespace=shop");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, kBugs);
  service.with_lock([](auto& asked) {
    EXPECT_THAT(asked.refreshes, ElementsAre(QueueName{"shop", "bugs"}));
  });
  service.with_lock([&](auto&) {
    service.refreshed = Error{Errc::queue_not_external, "queue 'orders' is stored here"};
  });
  EXPECT_EQ(ask("POST", "/v1/queues/orders/refresh", "{}").status, 409);
  EXPECT_EQ(refused("POST", "/v1/queues/orders/refresh"), "queue_not_external");
  EXPECT_EQ(refused("POST", "/v1/queues/.bugs/refresh"), "invalid_name");
  EXPECT_EQ(refused("POST", "/v1/queues/bugs/refresh?wait=1s", "", "wait"), "unknown_field");
  EXPECT_EQ(refused("POST", "/v1/queues/bugs/refresh", R"({"wait":1})", "wait"), "unknown_field");
}

TEST_F(HttpWorkers, ExternalQueuesAreShownAmongTheQueues) {
  EXPECT_EQ(ask("GET", "/v1/queues").body, R"({"queues":[],"external":[]})");
  ExternalQueueView idle{.queue = {"shop", "mail"}, .last_error = "list: no JSON"};
  service.with_lock([&](auto&) { service.external_views = std::vector{bugs(), idle}; });
  const HttpReply reply = ask("GET", "/v1/queues?namespace=shop");
  EXPECT_EQ(reply.body, R"({"queues":[],"external":[)" + std::string(kBugs) +
                            R"(,{"name":"mail","namespace":"shop","type":"external",)"
                            R"("workers":[],"poll":null,"last_poll_at":null,"listed":0,)"
                            R"("in_hand":0,"last_error":"list: no JSON"}]})");
  ask("GET", "/v1/queues?namespace=*");
  service.with_lock(
      [](auto& asked) { EXPECT_THAT(asked.namespaces, ElementsAre("default", "shop", "")); });
  server.reset();
  start();
  EXPECT_EQ(ask("GET", "/v1/queues").body, R"({"queues":[],"external":[]})");
}

TEST_F(HttpWorkers, AnExternalQueueIsShownAlone) {
  service.external = {{"shop", "bugs"}};
  service.external_views = std::vector{bugs()};
  const HttpReply reply = ask("GET", "/v1/queues/bugs?namespace=shop");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, kBugs);
  broker.with_lock([](auto& asked) { EXPECT_THAT(asked.named, IsEmpty()); });
  // The same name elsewhere is another queue.
  EXPECT_EQ(json_of(ask("GET", "/v1/queues/bugs"))["name"].string_or(""), "orders");
  service.with_lock([&](auto&) { service.external_views = std::vector<ExternalQueueView>{}; });
  EXPECT_EQ(refused("GET", "/v1/queues/bugs?namespace=shop"), "queue_not_found");
}

TEST_F(HttpWorkers, NothingIsStoredInAnExternalQueue) {
  service.external = {{"shop", "bugs"}};
  for (const auto& [method, rest, body] : {std::tuple{"POST", "/push", R"({"jobs":[{}]})"},
                                           {"POST", "/claim", "{}"},
                                           {"PUT", "", "{}"},
                                           {"PATCH", "", R"({"lease":"1m"})"},
                                           {"DELETE", "", ""},
                                           {"POST", "/pause", ""},
                                           {"POST", "/resume", ""}}) {
    const std::string target = "/v1/queues/bugs" + std::string(rest) + "?namespace=shop";
    const HttpReply reply = ask(method, target, body);
    EXPECT_EQ(reply.status, 409) << target;
    EXPECT_EQ(code_of(reply), "external_queue") << target;
    EXPECT_THAT(json_of(reply)["error"]["message"].string_or(""),
                AllOf(HasSubstr("list command"), HasSubstr("/v1/queues/bugs/refresh")));
  }
  broker.with_lock([](auto& asked) {
    EXPECT_THAT(asked.pushes, IsEmpty());
    EXPECT_THAT(asked.claims, IsEmpty());
    EXPECT_THAT(asked.puts, IsEmpty());
    EXPECT_THAT(asked.named, IsEmpty());
  });
  EXPECT_EQ(ask("POST", "/v1/queues/bugs/push", R"({"jobs":[{}]})").status, 200);
}

}  // namespace
}  // namespace reprise::server
