// A running HttpServer over a FakeBroker, for tests that talk to it over a real socket.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/json.h"
#include "server/http_server.h"
#include "support/fake_broker.h"
#include "support/http_probe.h"

namespace reprise::test {

class HttpServerTest : public ::testing::Test {
 protected:
  void start(server::HttpServerOptions options = {}) {
    options.listen = "127.0.0.1:0";
    auto started = server::HttpServer::start(broker, std::move(options));
    ASSERT_TRUE(started) << started.error().detail;
    server = std::move(*started);
  }

  std::string address() const { return server->address(); }

  // One request on a connection of its own.
  HttpReply ask(std::string_view method, std::string_view target, std::string_view body = {},
                std::string_view headers = {}) {
    HttpProbe probe(address());
    return probe.ask(http_request(method, target, body, headers));
  }

  static Json json_of(const HttpReply& reply) {
    auto json = Json::parse(reply.body);
    EXPECT_TRUE(json) << reply.status << " " << reply.body;
    return json ? std::move(*json) : Json();
  }
  // The code of a refusal; empty when it was none.
  static std::string code_of(const HttpReply& reply) {
    return json_of(reply)["error"]["code"].string_or("");
  }

  // For what the server counts but tells nobody about. False after ten seconds.
  template <class Condition>
  static bool eventually(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (std::chrono::steady_clock::now() < end) {
      if (condition()) return true;
      std::this_thread::yield();
    }
    return false;
  }

  FakeBroker broker;
  std::unique_ptr<server::HttpServer> server;
};

}  // namespace reprise::test
