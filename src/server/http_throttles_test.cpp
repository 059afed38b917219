// Throttles over HTTP: what is read, what is refused, and what is answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "support/http_server_fixture.h"

namespace reprise::server {
namespace {

using test::HttpReply;
using ::testing::HasSubstr;

const Timestamp kNoon =
    std::chrono::sys_days(std::chrono::year(2026) / 1 / 31) + std::chrono::hours(12);
const Rate kTenInHalfAMinute{.count = 10, .per = std::chrono::seconds(30)};

class HttpThrottles : public test::HttpServerTest {
 protected:
  void SetUp() override { start(); }

  void store(const std::string& ns, const std::string& key, double tokens = 1,
             std::uint64_t waiting = 0) {
    broker.throttles[{ns, key}] = {.throttle = {.ns = ns,
                                                .key = key,
                                                .rate = kTenInHalfAMinute,
                                                .burst = 4,
                                                .updated_at = kNoon},
                                   .tokens = tokens,
                                   .waiting = waiting};
  }

  // What the broker was asked to set last.
  Throttle last_set() {
    return broker.with_lock([](auto& asked) { return asked.throttle_sets.back(); });
  }

  // The code of a refusal that never came to the broker, whose message has `named` in it.
  std::string refused(std::string_view method, std::string_view target, std::string_view body,
                      std::string_view named = {}) {
    const HttpReply reply = ask(method, target, body);
    EXPECT_GE(reply.status, 400) << method << target << " " << body;
    const Json json = json_of(reply);
    EXPECT_THAT(json["error"]["message"].string_or(""), HasSubstr(std::string(named))) << body;
    broker.with_lock([&](auto& asked) { EXPECT_EQ(asked.throttle_sets.size(), 0U) << body; });
    return json["error"]["code"].string_or("");
  }
};

TEST_F(HttpThrottles, OneIsSetInItsNamespace) {
  const HttpReply reply =
      ask("PUT", "/v1/throttles/api?namespace=shop", R"({"rate":"100/s","burst":20})");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"key":"api","namespace":"shop","rate":"100/s","burst":20,)"
                        R"("tokens":20,"waiting":0,"updated_at":"1970-01-01T00:00:00.000Z"})");
  EXPECT_EQ(last_set(),
            (Throttle{.ns = "shop", .key = "api", .rate = {.count = 100}, .burst = 20}));
  EXPECT_EQ(ask("PUT", "/v1/throttles/api", R"({"rate":"10 / 30s","burst":1000000})").status, 200);
  EXPECT_EQ(
      last_set(),
      (Throttle{.ns = "default", .key = "api", .rate = kTenInHalfAMinute, .burst = 1'000'000}));
}

TEST_F(HttpThrottles, WithoutABurstItHoldsWhatComesInASecond) {
  for (const auto& [rate, burst] :
       {std::pair{"100/s", 100U}, {"90/m", 2U}, {"1/h", 1U}, {"1000000/s", 1'000'000U}}) {
    for (const char* rest : {"}", R"(,"burst":null})"}) {
      const std::string body = R"({"rate":")" + std::string(rate) + "\"" + rest;
      EXPECT_EQ(ask("PUT", "/v1/throttles/a", body).status, 200) << body;
      EXPECT_EQ(last_set().burst, burst) << body;
    }
  }
}

TEST_F(HttpThrottles, OneIsShown) {
  store("default", "a", 2.0 / 3, 7);
  const HttpReply reply = ask("GET", "/v1/throttles/a");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"key":"a","namespace":"default","rate":"10/30s","burst":4,)"
                        R"("tokens":0.667,"waiting":7,"updated_at":"2026-01-31T12:00:00.000Z"})");
  const HttpReply elsewhere = ask("GET", "/v1/throttles/a?namespace=shop");
  EXPECT_EQ(elsewhere.status, 404);
  EXPECT_EQ(code_of(elsewhere), "throttle_not_found");
}

TEST_F(HttpThrottles, OneIsUnset) {
  store("shop", "a");
  const HttpReply reply = ask("DELETE", "/v1/throttles/a?namespace=shop");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"key":"a","namespace":"shop","deleted":true})");
  const HttpReply again = ask("DELETE", "/v1/throttles/a?namespace=shop");
  EXPECT_EQ(again.status, 404);
  EXPECT_EQ(code_of(again), "throttle_not_found");
}

TEST_F(HttpThrottles, ThoseOfANamespaceAreListedByKey) {
  EXPECT_EQ(ask("GET", "/v1/throttles").body, R"({"throttles":[]})");
  store("default", "b");
  store("default", "a");
  store("shop", "c");
  const HttpReply reply = ask("GET", "/v1/throttles");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"throttles":[{"key":"a","namespace":"default","rate":"10/30s",)"
                        R"("burst":4,"tokens":1,"waiting":0,)"
                        R"("updated_at":"2026-01-31T12:00:00.000Z"},)"
                        R"({"key":"b","namespace":"default","rate":"10/30s",)"
                        R"("burst":4,"tokens":1,"waiting":0,)"
                        R"("updated_at":"2026-01-31T12:00:00.000Z"}]})");
  EXPECT_EQ(json_of(ask("GET", "/v1/throttles?namespace=shop"))["throttles"].array()->size(), 1U);
}

TEST_F(HttpThrottles, WhatTheBrokerRefusesIsTold) {
  broker.throttle_refusal = Error{Errc::too_many_throttles, "namespace 'default' has its 1000"};
  const HttpReply reply = ask("PUT", "/v1/throttles/a", R"({"rate":"1/s"})");
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(code_of(reply), "too_many_throttles");
}

TEST_F(HttpThrottles, ARateIsRequired) {
  for (const char* body : {"", "{}", R"({"rate":null})", R"({"burst":5})"}) {
    EXPECT_EQ(refused("PUT", "/v1/throttles/a", body, "rate: is missing"), "invalid_request")
        << body;
  }
  for (const char* rate : {"100", "true", "[]", "{}"}) {
    EXPECT_EQ(refused("PUT", "/v1/throttles/a", std::string(R"({"rate":)") + rate + "}", "rate:"),
              "invalid_request")
        << rate;
  }
  for (const char* rate :
       {"", "NaN/s", "-1/s", "0/s", "inf/s", "1.5/s", "1e3/s", "100", "100/", "/s", "1/0s", "1/-1s",
        "1/fortnight", "1000001/s", "s/1", "99999999999999999999/s"}) {
    EXPECT_EQ(
        refused("PUT", "/v1/throttles/a", R"({"rate":")" + std::string(rate) + "\"}", "rate:"),
        "invalid_field")
        << rate;
  }
}

TEST_F(HttpThrottles, ABurstIsAWholeNumberWithinItsRange) {
  for (const char* burst : {"0", "-1", "1.5", "1000001", "4294967297", "1e30"}) {
    EXPECT_EQ(refused("PUT", "/v1/throttles/a",
                      R"({"rate":"1/s","burst":)" + std::string(burst) + "}", "burst:"),
              "invalid_field")
        << burst;
  }
  for (const char* burst : {R"("5")", R"("NaN")", "true", "[]"}) {
    EXPECT_EQ(refused("PUT", "/v1/throttles/a",
                      R"({"rate":"1/s","burst":)" + std::string(burst) + "}", "burst:"),
              "invalid_request")
        << burst;
  }
  EXPECT_EQ(refused("PUT", "/v1/throttles/a", R"({"rate":"1/s","burst":NaN})"), "invalid_request");
}

TEST_F(HttpThrottles, NothingElseIsTaken) {
  EXPECT_EQ(refused("PUT", "/v1/throttles/a", R"({"rate":"1/s","tokens":5})", "tokens"),
            "unknown_field");
  EXPECT_EQ(refused("PUT", "/v1/throttles/a", R"({"rat":"1/s"})", "'rate'"), "unknown_field");
  EXPECT_EQ(refused("PUT", "/v1/throttles/a", R"({"rate":"1/s","rate":"2/s"})", "rate"),
            "invalid_request");
  EXPECT_EQ(refused("PUT", "/v1/throttles/a", R"("1/s")", "object"), "invalid_request");
  EXPECT_EQ(refused("PUT", "/v1/throttles/a", "{"), "invalid_request");
  EXPECT_EQ(refused("PUT", "/v1/throttles/a?burst=5", R"({"rate":"1/s"})", "burst"),
            "unknown_field");
  EXPECT_EQ(refused("GET", "/v1/throttles?prefix=a", "", "prefix"), "unknown_field");
  EXPECT_EQ(refused("GET", "/v1/throttles", R"({"key":"a"})", "key"), "unknown_field");
  EXPECT_EQ(refused("GET", "/v1/throttles/a", R"({"rate":"1/s"})", "rate"), "unknown_field");
  store("default", "a");
  EXPECT_EQ(refused("DELETE", "/v1/throttles/a", R"({"rate":"1/s"})", "rate"), "unknown_field");
  EXPECT_EQ(ask("GET", "/v1/throttles/a").status, 200);
  EXPECT_EQ(refused("POST", "/v1/throttles/a", ""), "method_not_allowed");
  EXPECT_EQ(refused("DELETE", "/v1/throttles", ""), "method_not_allowed");
}

TEST_F(HttpThrottles, AKeyIsAnyTextThatAJobMayName) {
  const std::string longest(200, 'k');
  for (const auto& [path, key] : {std::pair<std::string, std::string>{"customer:7", "customer:7"},
                                  {"a%2Fb%20c", "a/b c"},
                                  {"%E2%82%AC", "\xE2\x82\xAC"},
                                  {".a", ".a"},
                                  {"100%25", "100%"},
                                  {longest, longest}}) {
    const HttpReply reply = ask("PUT", "/v1/throttles/" + path, R"({"rate":"1/s"})");
    EXPECT_EQ(reply.status, 200) << path;
    EXPECT_EQ(last_set().key, key);
    EXPECT_EQ(json_of(ask("GET", "/v1/throttles/" + path))["key"].string_or(""), key);
    EXPECT_EQ(ask("DELETE", "/v1/throttles/" + path).status, 200) << path;
  }
}

TEST_F(HttpThrottles, AKeyThatNoJobMayNameIsRefused) {
  for (const std::string& key :
       {std::string(201, 'k'), std::string("%FF"), std::string("a%00"), std::string("a%0A"),
        std::string("%1B%5B2J"), std::string("%7F")}) {
    const std::string target = "/v1/throttles/" + key;
    EXPECT_EQ(refused("PUT", target, R"({"rate":"1/s"})", "throttle key:"), "invalid_field") << key;
    EXPECT_EQ(refused("GET", target, "", "throttle key:"), "invalid_field") << key;
    EXPECT_EQ(refused("DELETE", target, "", "throttle key:"), "invalid_field") << key;
  }
  EXPECT_EQ(refused("GET", "/v1/throttles/a%2", "", "escape"), "invalid_request");
  EXPECT_EQ(refused("GET", "/v1/throttles/", ""), "not_found");
}

TEST_F(HttpThrottles, NamespacesAreThoseOfQueues) {
  for (const char* ns : {"", ".x", "*", "a%20b"}) {
    const std::string query = std::string("?namespace=") + ns;
    EXPECT_EQ(refused("GET", "/v1/throttles" + query, "", "namespace"), "invalid_name") << ns;
    EXPECT_EQ(refused("GET", "/v1/throttles/a" + query, "", "namespace"), "invalid_name") << ns;
    EXPECT_EQ(refused("PUT", "/v1/throttles/a" + query, R"({"rate":"1/s"})", "namespace"),
              "invalid_name")
        << ns;
    EXPECT_EQ(refused("DELETE", "/v1/throttles/a" + query, "", "namespace"), "invalid_name") << ns;
  }
}

}  // namespace
}  // namespace reprise::server
