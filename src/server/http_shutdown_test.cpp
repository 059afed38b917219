// Stopping: what is under way is answered, the rest is closed, and nothing hangs.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "support/http_server_fixture.h"

namespace reprise::server {
namespace {

using std::chrono::seconds;
using test::http_request;
using test::HttpProbe;

class HttpShutdown : public test::HttpServerTest {};

const std::string kPush = http_request("POST", "/v1/queues/orders/push", R"({"jobs":[{}]})");

TEST_F(HttpShutdown, IdleConnectionsAreClosedAndNewOnesRefused) {
  start();
  HttpProbe idle(address());
  HttpProbe used(address());
  EXPECT_EQ(used.ask(http_request("GET", "/healthz")).status, 200);
  const std::string where = address();
  server->stop(seconds(10));
  EXPECT_TRUE(idle.closed_by_peer());
  EXPECT_TRUE(used.closed_by_peer());
  EXPECT_FALSE(HttpProbe(where).connected());
}

TEST_F(HttpShutdown, ARequestUnderWayIsAnsweredAndItsConnectionClosed) {
  start();
  HttpProbe probe(address());
  broker.hold_replies();
  probe.send(kPush);
  ASSERT_TRUE(broker.wait_for([](auto& asked) { return asked.pushes.size() == 1; }));
  std::thread stopping([&] { server->stop(seconds(10)); });
  EXPECT_TRUE(eventually([&] { return !HttpProbe(address()).connected(); }));
  broker.let_go();
  const auto reply = probe.reply();
  stopping.join();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
  EXPECT_TRUE(probe.closed_by_peer());
}

TEST_F(HttpShutdown, WhatIsNotAnsweredInTimeIsCutOff) {
  start();
  HttpProbe probe(address());
  broker.hold_replies();
  probe.send(kPush);
  ASSERT_TRUE(broker.wait_for([](auto& asked) { return asked.pushes.size() == 1; }));
  server->stop(std::chrono::milliseconds(10));
  EXPECT_TRUE(probe.closed_by_peer());
  server.reset();
  broker.let_go();  // the late reply finds nobody, and that is fine
}

TEST_F(HttpShutdown, ARequestHalfReadMayStillArrive) {
  start();
  HttpProbe probe(address());
  HttpProbe idle(address());
  probe.send(kPush.substr(0, kPush.size() - 1));
  // Served in turn by one thread: when the second is answered, the first has been read.
  EXPECT_EQ(idle.ask(http_request("GET", "/healthz")).status, 200);
  std::thread stopping([&] { server->stop(seconds(10)); });
  EXPECT_TRUE(idle.closed_by_peer());
  EXPECT_EQ(probe.ask(kPush.substr(kPush.size() - 1)).status, 200);
  stopping.join();
}

TEST_F(HttpShutdown, StoppingTwiceIsFine) {
  start();
  server->stop(seconds(1));
  server->stop(seconds(1));
  server.reset();
}

TEST_F(HttpShutdown, StoppingUnderLoadLeavesNothingBehind) {
  start({.io_threads = 2});
  std::atomic<bool> stopped = false;
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&, where = address()] {
      while (!stopped) {
        HttpProbe probe(where);
        if (!probe.connected()) return;
        while (probe.ask(kPush).status == 200) {
        }
      }
    });
  }
  ASSERT_TRUE(broker.wait_for([](auto& asked) { return asked.pushes.size() > 100; }));
  server->stop(seconds(10));
  EXPECT_EQ(server->connections(), 0U);
  stopped = true;
  for (std::thread& client : clients) client.join();
}

}  // namespace
}  // namespace reprise::server
