// Projects over HTTP: what is read, what is refused, and what is answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "support/worker_http_fixture.h"

namespace reprise::server {
namespace {

using test::HttpReply;
using test::kNoon;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using worker::ProjectView;

ProjectView shop() {
  ProjectView project{.ns = "shop", .root = "/srv/shop", .loaded_at = kNoon};
  project.files = {".reprise/shop.toml"};
  project.queues = 2;
  project.pipelines = 1;
  project.workers = 3;
  project.findings = {{runbook::Severity::warning,
                       {.file = ".reprise/shop.toml", .line = 12, .column = 8},
                       "pipeline.ship.step.0.run",
                       "in single quotes"}};
  return project;
}
constexpr const char* kShop =
    R"({"name":"shop","root":"/srv/shop","loaded_at":"2026-01-31T12:00:00.000Z","broken":false,"missing":false,)"
    R"("files":[".reprise/shop.toml"],"queues":2,"pipelines":1,"workers":3,)"
    R"("findings":[{"severity":"warning","file":".reprise/shop.toml","line":12,"column":8,)"
    R"("path":"pipeline.ship.step.0.run","message":"in single quotes"}]})";

class HttpProjects : public test::WorkerHttpTest {
 protected:
  std::size_t added() {
    return service.with_lock([](auto& asked) { return asked.added.size(); });
  }
};

TEST_F(HttpProjects, OneThatIsNewIsCreated) {
  service.project = shop();
  const HttpReply reply = ask("PUT", "/v1/projects/shop", R"({"root":"/srv/shop"})");
  EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(reply.body, kShop);
  service.with_lock(
      [](auto& asked) { EXPECT_THAT(asked.added, ElementsAre(Pair("/srv/shop", "shop"))); });
}

TEST_F(HttpProjects, OneThatIsKnownIsReadAgain) {
  service.project = shop();
  service.projects = std::vector{shop()};
  const HttpReply reply = ask("PUT", "/v1/projects/shop", R"({"root":"/srv/shop"})");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, kShop);
  EXPECT_EQ(ask("PUT", "/v1/projects/other", R"({"root":"/srv/other"})").status, 201);
  EXPECT_EQ(added(), 2U);
}

TEST_F(HttpProjects, AllAreListed) {
  EXPECT_EQ(ask("GET", "/v1/projects").body, R"({"projects":[]})");
  ProjectView broken{.ns = "bad", .root = "/srv/bad"};
  broken.broken = true;
  broken.findings = {{.place = {.file = ".reprise"}, .message = "is gone"}};
  service.with_lock([&](auto&) { service.projects = std::vector{broken, shop()}; });
  const HttpReply reply = ask("GET", "/v1/projects");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(
      reply.body,
      R"({"projects":[{"name":"bad","root":"/srv/bad","loaded_at":null,"broken":true,"missing":false,)"
      R"("files":[],"queues":0,"pipelines":0,"workers":0,)"
      R"("findings":[{"severity":"error","file":".reprise","line":0,"column":0,"path":"",)"
      R"("message":"is gone"}]},)" +
          std::string(kShop) + "]}");
}

TEST_F(HttpProjects, OneIsForgotten) {
  service.project = shop();
  const HttpReply reply = ask("DELETE", "/v1/projects/shop");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, kShop);
  service.with_lock([](auto& asked) { EXPECT_THAT(asked.removed, ElementsAre("shop")); });
}

TEST_F(HttpProjects, WhatTheServiceRefusesIsTold) {
  for (const auto& [code, status, name] : {std::tuple{Errc::project_conflict, 409, "conflict"},
                                           {Errc::unsafe_project, 403, "unsafe"},
                                           {Errc::invalid_runbook, 400, "runbook"}}) {
    service.with_lock([&, code = code](auto&) { service.project = Error{code, "first\nsecond"}; });
    const HttpReply reply = ask("PUT", "/v1/projects/shop", R"({"root":"/srv/shop"})");
    EXPECT_EQ(reply.status, status);
    EXPECT_THAT(code_of(reply), HasSubstr(name));
    EXPECT_EQ(json_of(reply)["error"]["message"].string_or(""), "first\nsecond");
  }
  service.with_lock([&](auto&) { service.project = Error{Errc::project_not_found, "no shop"}; });
  EXPECT_EQ(refused("DELETE", "/v1/projects/shop"), "project_not_found");
  service.with_lock([&](auto&) { service.projects = Error{Errc::shutting_down, "stopping"}; });
  EXPECT_EQ(refused("GET", "/v1/projects"), "shutting_down");
  EXPECT_EQ(refused("PUT", "/v1/projects/shop", R"({"root":"/srv/shop"})"), "shutting_down");
}

TEST_F(HttpProjects, TheDirectoryIsAnAbsolutePath) {
  for (const char* body : {"", "{}", R"({"root":null})"}) {
    EXPECT_EQ(refused("PUT", "/v1/projects/shop", body, "root: is missing"), "invalid_request");
  }
  for (const char* root :
       {R"("")", R"("shop")", R"("./shop")", R"("~/shop")", R"("/srv\u0000/x")"}) {
    EXPECT_EQ(refused("PUT", "/v1/projects/shop", R"({"root":)" + std::string(root) + "}", "root:"),
              "invalid_field")
        << root;
  }
  const std::string too_long = R"({"root":"/)" + std::string(5000, 'a') + "\"}";
  EXPECT_EQ(refused("PUT", "/v1/projects/shop", too_long, "root:"), "invalid_field");
  EXPECT_EQ(refused("PUT", "/v1/projects/shop", R"({"root":7})", "root:"), "invalid_request");
  EXPECT_EQ(added(), 0U);
}

TEST_F(HttpProjects, NothingElseIsTaken) {
  const std::string root = R"({"root":"/srv/shop"})";
  EXPECT_EQ(refused("PUT", "/v1/projects/.shop", root, "project name"), "invalid_name");
  EXPECT_EQ(refused("PUT", "/v1/projects/a%2Fb", root, "project name"), "invalid_name");
  EXPECT_EQ(refused("DELETE", "/v1/projects/a%20b", "", "project name"), "invalid_name");
  EXPECT_EQ(refused("PUT", "/v1/projects/shop", R"({"root":"/a","name":"b"})", "name"),
            "unknown_field");
  EXPECT_EQ(refused("PUT", "/v1/projects/shop", "[]"), "invalid_request");
  EXPECT_EQ(refused("PUT", "/v1/projects/shop?namespace=a", root, "namespace"), "unknown_field");
  EXPECT_EQ(refused("GET", "/v1/projects?namespace=a", "", "namespace"), "unknown_field");
  EXPECT_EQ(refused("GET", "/v1/projects", R"({"a":1})", "a"), "unknown_field");
  EXPECT_EQ(refused("DELETE", "/v1/projects/shop", root, "root"), "unknown_field");
  EXPECT_EQ(refused("GET", "/v1/projects/shop"), "method_not_allowed");
  EXPECT_EQ(added(), 0U);
}

TEST_F(HttpProjects, WithoutWorkersThereAreNone) {
  server.reset();
  start();
  for (const auto& [method, target] : {std::pair{"GET", "/v1/projects"},
                                       {"PUT", "/v1/projects/shop"},
                                       {"DELETE", "/v1/projects/shop"},
                                       {"GET", "/v1/workers"},
                                       {"POST", "/v1/workers/start"},
                                       {"POST", "/v1/workers/stop"},
                                       {"POST", "/v1/workers/restart"},
                                       {"POST", "/v1/workers/resize"},
                                       {"GET", "/v1/workers/shipper/log"},
                                       {"POST", "/v1/queues/bugs/refresh"},
                                       {"POST", "/v1/runs"},
                                       {"GET", "/v1/runs"},
                                       {"GET", "/v1/runs/3K9M2QAX7B4C1"},
                                       {"POST", "/v1/runs/3K9M2QAX7B4C1/cancel"},
                                       {"GET", "/v1/runs/3K9M2QAX7B4C1/log"}}) {
    const HttpReply reply = ask(method, target);
    EXPECT_EQ(reply.status, 503) << target;
    EXPECT_EQ(code_of(reply), "workers_disabled") << target;
  }
}

TEST_F(HttpProjects, TheStatusCountsThem) {
  service.with_lock(
      [&](auto&) { service.metrics_now = {.projects = 2, .workers_running = 3, .active = 4}; });
  EXPECT_THAT(ask("GET", "/v1/status").body,
              HasSubstr(R"("workers":{"projects":2,"running":3,"active":4})"));
  EXPECT_THAT(ask("GET", "/metrics").body, HasSubstr("\nreprise_worker_slots_active 4\n"));
  server.reset();
  start();
  EXPECT_THAT(ask("GET", "/v1/status").body, HasSubstr(R"("workers":null)"));
  EXPECT_THAT(ask("GET", "/metrics").body, HasSubstr("\nreprise_worker_slots_active 0\n"));
}

}  // namespace
}  // namespace reprise::server
