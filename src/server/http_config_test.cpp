// Runtime values over HTTP: what is read, what is refused, and what is answered.
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

class HttpConfig : public test::HttpServerTest {
 protected:
  void SetUp() override { start(); }

  void store(std::string ns, std::string key, std::string value) {
    broker.config[{ns, key}] = {
        .ns = ns, .key = key, .value = std::move(value), .updated_at = kNoon};
  }

  // The code of a refusal that never came to the broker, whose message has `named` in it.
  std::string refused(std::string_view method, std::string_view target, std::string_view body,
                      std::string_view named = {}) {
    const HttpReply reply = ask(method, target, body);
    EXPECT_GE(reply.status, 400) << method << target << " " << body;
    const Json json = json_of(reply);
    EXPECT_THAT(json["error"]["message"].string_or(""), HasSubstr(std::string(named))) << body;
    broker.with_lock([&](auto& asked) { EXPECT_EQ(asked.config_sets.size(), 0U) << body; });
    return json["error"]["code"].string_or("");
  }
};

TEST_F(HttpConfig, AValueIsSetInItsNamespace) {
  const HttpReply reply =
      ask("PUT", "/v1/config/card.retry_ms?namespace=shop", R"({"value":"5000"})");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"key":"card.retry_ms","value":"5000","namespace":"shop",)"
                        R"("updated_at":"1970-01-01T00:00:00.000Z"})");
  EXPECT_EQ(ask("PUT", "/v1/config/a", R"({"value":""})").status, 200);
  broker.with_lock([](auto& asked) {
    EXPECT_EQ(asked.config_sets.at(0),
              (ConfigEntry{.ns = "shop", .key = "card.retry_ms", .value = "5000"}));
    EXPECT_EQ(asked.config_sets.at(1), (ConfigEntry{.ns = "default", .key = "a", .value = ""}));
  });
}

TEST_F(HttpConfig, AValueIsAnyText) {
  EXPECT_EQ(ask("PUT", "/v1/config/a", R"({"value":"{\"at\": \"9 €\"}\n\u0001"})").status, 200);
  broker.with_lock([](auto& asked) {
    EXPECT_EQ(asked.config_sets.at(0).value, "{\"at\": \"9 \xE2\x82\xAC\"}\n\x01");
  });
  EXPECT_EQ(json_of(ask("GET", "/v1/config/a"))["value"].string_or(""),
            "{\"at\": \"9 \xE2\x82\xAC\"}\n\x01");
}

TEST_F(HttpConfig, AValueIsShown) {
  store("default", "a", "1");
  const HttpReply reply = ask("GET", "/v1/config/a");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"key":"a","value":"1","namespace":"default",)"
                        R"("updated_at":"2026-01-31T12:00:00.000Z"})");
  const HttpReply elsewhere = ask("GET", "/v1/config/a?namespace=shop");
  EXPECT_EQ(elsewhere.status, 404);
  EXPECT_EQ(code_of(elsewhere), "config_not_found");
}

TEST_F(HttpConfig, AValueIsUnset) {
  store("shop", "a", "1");
  const HttpReply reply = ask("DELETE", "/v1/config/a?namespace=shop");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"key":"a","namespace":"shop","deleted":true})");
  const HttpReply again = ask("DELETE", "/v1/config/a?namespace=shop");
  EXPECT_EQ(again.status, 404);
  EXPECT_EQ(code_of(again), "config_not_found");
}

TEST_F(HttpConfig, TheValuesOfANamespaceAreListedByKey) {
  EXPECT_EQ(ask("GET", "/v1/config").body, R"({"config":[]})");
  store("default", "b", "2");
  store("default", "a", "1");
  store("shop", "c", "3");
  const HttpReply reply = ask("GET", "/v1/config");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"config":[{"key":"a","value":"1","namespace":"default",)"
                        R"("updated_at":"2026-01-31T12:00:00.000Z"},)"
                        R"({"key":"b","value":"2","namespace":"default",)"
                        R"("updated_at":"2026-01-31T12:00:00.000Z"}]})");
  EXPECT_EQ(json_of(ask("GET", "/v1/config?namespace=shop"))["config"].array()->size(), 1U);
}

TEST_F(HttpConfig, WhatTheBrokerRefusesIsTold) {
  broker.config_refusal = Error{Errc::value_too_large, "the value has 4097 bytes"};
  EXPECT_EQ(ask("PUT", "/v1/config/a", R"({"value":"x"})").status, 413);
  broker.config_refusal = Error{Errc::too_many_keys, "namespace 'default' has its 1000 keys"};
  const HttpReply reply = ask("PUT", "/v1/config/a", R"({"value":"x"})");
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(code_of(reply), "too_many_keys");
}

TEST_F(HttpConfig, AValueMustBeText) {
  for (const char* body : {"", "{}", R"({"value":null})"}) {
    EXPECT_EQ(refused("PUT", "/v1/config/a", body, "value: is missing"), "invalid_request") << body;
  }
  for (const char* value : {"5000", "true", "[]", "{}"}) {
    EXPECT_EQ(refused("PUT", "/v1/config/a", std::string(R"({"value":)") + value + "}", "value:"),
              "invalid_request")
        << value;
  }
  EXPECT_EQ(refused("PUT", "/v1/config/a", R"({"value":"a\u0000b"})", "value:"), "invalid_field");
  EXPECT_EQ(refused("PUT", "/v1/config/a", R"({"value":"x","ttl":"1h"})", "ttl"), "unknown_field");
  EXPECT_EQ(refused("PUT", "/v1/config/a", R"({"valeu":"x"})", "value"), "unknown_field");
  EXPECT_EQ(refused("PUT", "/v1/config/a", R"({"value":"x","value":"y"})", "value"),
            "invalid_request");
  EXPECT_EQ(refused("PUT", "/v1/config/a", R"("x")", "object"), "invalid_request");
  EXPECT_EQ(refused("PUT", "/v1/config/a", "{", ""), "invalid_request");
}

TEST_F(HttpConfig, NamesAreThoseOfQueues) {
  const std::string longest(200, 'k');
  EXPECT_EQ(ask("GET", "/v1/config/" + longest).status, 404);
  for (const std::string& key : {std::string(".a"), std::string("a%20b"), std::string("a%2Fb"),
                                 std::string("a%00"), longest + "k"}) {
    EXPECT_EQ(refused("GET", "/v1/config/" + key, "", "config key"), "invalid_name") << key;
    EXPECT_EQ(refused("PUT", "/v1/config/" + key, R"({"value":"x"})", "config key"), "invalid_name")
        << key;
    EXPECT_EQ(refused("DELETE", "/v1/config/" + key, "", "config key"), "invalid_name") << key;
  }
  for (const char* ns : {"", ".x", "*", "a%20b"}) {
    const std::string query = std::string("?namespace=") + ns;
    EXPECT_EQ(refused("GET", "/v1/config" + query, "", "namespace"), "invalid_name") << ns;
    EXPECT_EQ(refused("GET", "/v1/config/a" + query, "", "namespace"), "invalid_name") << ns;
    EXPECT_EQ(refused("PUT", "/v1/config/a" + query, R"({"value":"x"})", "namespace"),
              "invalid_name")
        << ns;
    EXPECT_EQ(refused("DELETE", "/v1/config/a" + query, "", "namespace"), "invalid_name") << ns;
  }
}

TEST_F(HttpConfig, NothingElseIsTaken) {
  for (const char* target : {"/v1/config?prefix=a", "/v1/config/a?prefix=a"}) {
    EXPECT_EQ(refused("GET", target, "", "prefix"), "unknown_field") << target;
  }
  EXPECT_EQ(refused("PUT", "/v1/config/a?prefix=a", R"({"value":"x"})", "prefix"), "unknown_field");
  EXPECT_EQ(refused("GET", "/v1/config", R"({"key":"a"})", "key"), "unknown_field");
  EXPECT_EQ(refused("GET", "/v1/config/a", R"({"value":"a"})", "value"), "unknown_field");
  store("default", "a", "1");
  EXPECT_EQ(refused("DELETE", "/v1/config/a", R"({"value":"a"})", "value"), "unknown_field");
  EXPECT_EQ(ask("GET", "/v1/config/a").status, 200);
  EXPECT_EQ(refused("POST", "/v1/config/a", ""), "method_not_allowed");
  EXPECT_EQ(refused("DELETE", "/v1/config", ""), "method_not_allowed");
}

}  // namespace
}  // namespace reprise::server
