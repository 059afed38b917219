#include "server/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "base/errc.h"
#include "base/json.h"
#include "embedded/openapi.h"
#include "reprise_version.h"

namespace reprise::server {
namespace {

using ::testing::HasSubstr;
using Routes = std::set<std::pair<std::string, std::string>>;  // method, pattern

std::string read_api_page() {
  std::ifstream file(REPRISE_SOURCE_DIR "/docs/api.md");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Routes table_routes() {
  Routes found;
  for (const RouteInfo& route : routes()) found.emplace(route.method, route.pattern);
  return found;
}

Routes documented_routes() {
  const std::string page = read_api_page();
  const std::size_t begin = page.find("## Routes");
  const std::string section = page.substr(begin, page.find("### ", begin) - begin);
  const std::regex row(R"(\| `([A-Z]+) (/[^`]*)` \|)");
  Routes found;
  for (std::sregex_iterator match(section.begin(), section.end(), row), end; match != end;
       ++match) {
    found.emplace((*match)[1], (*match)[2]);
  }
  return found;
}

Json openapi() {
  auto document = Json::parse(embedded::openapi);
  EXPECT_TRUE(document);
  return document ? std::move(*document) : Json();
}

Routes openapi_routes() {
  const Json document = openapi();
  Routes found;
  for (const auto& [path, operations] : *document["paths"].object()) {
    for (const auto& [method, operation] : *operations.object()) {
      std::string upper;
      for (const char c : method) upper.push_back(static_cast<char>(std::toupper(c)));
      found.emplace(upper, path);
    }
  }
  return found;
}

TEST(Routes, AreThoseOfTheApiPage) { EXPECT_EQ(table_routes(), documented_routes()); }

TEST(Routes, AreThoseOfOpenApi) { EXPECT_EQ(table_routes(), openapi_routes()); }

TEST(OpenApi, NamesEveryErrorAndThisVersion) {
  const Json document = openapi();
  EXPECT_EQ(document["info"]["version"].string_or(""), kVersion);
  std::set<std::string> named;
  const Json& codes = document["components"]["schemas"]["Error"]["properties"]["code"]["enum"];
  for (const Json& code : *codes.array()) named.insert(code.string_or(""));
  std::set<std::string> known;
  for (const ErrcInfo& info : all_errcs()) known.emplace(info.wire_name);
  EXPECT_EQ(named, known);
}

TEST(ApiPage, ListsEveryErrorWithItsStatus) {
  const std::string page = read_api_page();
  for (const ErrcInfo& info : all_errcs()) {
    EXPECT_THAT(page, HasSubstr("| `" + std::string(info.wire_name) + "` | " +
                                std::to_string(info.http_status) + " |"));
  }
}

TEST(MatchRoute, EveryRouteFindsItself) {
  for (const RouteInfo& route : routes()) {
    const auto match = match_route(route.method, route.pattern);
    ASSERT_TRUE(match) << route.pattern;
    EXPECT_EQ(match->route, &route);
    EXPECT_EQ(&routes()[route_index(route)], &route);
  }
}

TEST(MatchRoute, TakesParametersOutOfThePath) {
  const auto match = match_route("GET", "/v1/queues/%6Aobs/jobs/7ZK3%2F");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->route->pattern, "/v1/queues/{queue}/jobs/{id}");
  EXPECT_EQ(match->queue, "jobs");
  EXPECT_EQ(match->id, "7ZK3/");
}

TEST(MatchRoute, TakesARuntimeKeyOutOfThePath) {
  for (const char* method : {"GET", "PUT", "DELETE"}) {
    const auto match = match_route(method, "/v1/config/card.retry%5Fms");
    ASSERT_TRUE(match) << method;
    ASSERT_NE(match->route, nullptr) << method;
    EXPECT_EQ(match->route->pattern, "/v1/config/{key}");
    EXPECT_EQ(match->route->method, method);
    EXPECT_EQ(match->id, "card.retry_ms");
    EXPECT_EQ(match->queue, "");
  }
  EXPECT_EQ(match_route("GET", "/v1/config")->route->pattern, "/v1/config");
  EXPECT_EQ(match_route("POST", "/v1/config/a")->allow, "GET, HEAD, PUT, DELETE");
  EXPECT_EQ(match_route("PUT", "/v1/config")->allow, "GET, HEAD");
}

TEST(MatchRoute, TakesANameOutOfThePath) {
  const auto project = match_route("PUT", "/v1/projects/%73hop");
  ASSERT_TRUE(project);
  EXPECT_EQ(project->route->pattern, "/v1/projects/{name}");
  EXPECT_EQ(project->id, "shop");
  EXPECT_EQ(match_route("GET", "/v1/projects/shop")->allow, "PUT, DELETE");
  const auto log = match_route("GET", "/v1/workers/start/log");
  ASSERT_TRUE(log);
  EXPECT_EQ(log->route->pattern, "/v1/workers/{name}/log");
  EXPECT_EQ(log->id, "start");
}

TEST(MatchRoute, TheHooksOfAQueueAreOnlyTried) {
  for (const char* pattern : {"/v1/queues/{queue}/hooks/test", "/v1/queues/{queue}/hooks/replay"}) {
    std::string path(pattern);
    path.replace(path.find("{queue}"), 7, "orders");
    const auto match = match_route("POST", path);
    ASSERT_TRUE(match) << path;
    EXPECT_EQ(match->route->pattern, pattern);
    EXPECT_EQ(match->queue, "orders");
    EXPECT_EQ(match_route("GET", path)->allow, "POST") << path;
  }
}

TEST(MatchRoute, HeadFindsTheRouteOfGet) {
  const auto match = match_route("HEAD", "/healthz");
  ASSERT_TRUE(match);
  ASSERT_NE(match->route, nullptr);
  EXPECT_EQ(match->route->method, "GET");
  EXPECT_EQ(match_route("HEAD", "/v1/ack")->route, nullptr);
}

TEST(MatchRoute, TellsWhichMethodsAPathHas) {
  const auto match = match_route("POST", "/v1/queues/orders");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->route, nullptr);
  EXPECT_EQ(match->allow, "PUT, GET, HEAD, PATCH, DELETE");
  EXPECT_EQ(match_route("get", "/healthz")->allow, "GET, HEAD");
}

TEST(MatchRoute, KnowsNoOtherPaths) {
  for (const char* path : {"/v1",
                           "/v1/",
                           "/v2/queues",
                           "/V1/queues",
                           "/v1/queues/",
                           "/v1/queues/x/",
                           "/v1/queues/x/y",
                           "/v1/queues//jobs",
                           "//v1/queues",
                           "/../v1/queues",
                           "/v1/queues/x/jobs/y/z",
                           "/healthz/",
                           "/v1%2Fqueues",
                           "/v1/config/",
                           "/v1/config/a/b",
                           "/v1/queues/x/hooks",
                           "/v1/queues/x/hooks/other",
                           "/v1/projects/",
                           "/v1/projects/a/b",
                           "/v1/workers/a",
                           "/v1/workers//log",
                           "/v1/runs/",
                           "/v1/runs/a/steps"}) {
    const auto match = match_route("GET", path);
    ASSERT_FALSE(match) << path;
    EXPECT_EQ(match.error().code, Errc::not_found) << path;
  }
}

TEST(MatchRoute, RefusesBadEscapes) {
  for (const char* path : {"/v1/queues/a%", "/v1/queues/a%2", "/v1/queues/%zz"}) {
    EXPECT_EQ(match_route("GET", path).error().code, Errc::invalid_request) << path;
  }
}

}  // namespace
}  // namespace reprise::server
