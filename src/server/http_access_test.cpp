// Who may talk to the server: tokens, Host, Origin, the connection limit, where it listens.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/http_server_fixture.h"

namespace reprise::server {
namespace {

using test::http_request;
using test::HttpProbe;
using test::HttpReply;

class HttpAccess : public test::HttpServerTest {
 protected:
  HttpServerOptions with_tokens() const {
    return {.tokens = {{"alice", "wonderland"}, {"default", "bare"}}};
  }
};

std::string bearer(const std::string& token) { return "Authorization: Bearer " + token + "\r\n"; }

std::string get_of_host(const std::string& host, const std::string& extra = {}) {
  return "GET /v1/queues HTTP/1.1\r\nHost: " + host + "\r\n" + extra + "\r\n";
}

TEST_F(HttpAccess, EachTokenOpensTheDoor) {
  start(with_tokens());
  for (const char* token : {"wonderland", "bare"}) {
    EXPECT_EQ(ask("GET", "/v1/queues", "", bearer(token)).status, 200) << token;
  }
}

TEST_F(HttpAccess, WithoutATokenNothingButHealthIsTold) {
  start(with_tokens());
  for (const std::string& header :
       {std::string(), bearer("wrong"), bearer("alice"), std::string("Authorization: bare\r\n")}) {
    for (const char* path : {"/v1/queues", "/metrics", "/", "/openapi.json", "/nowhere",
                             "/v1/queues/%zz", "/v1/events"}) {
      const HttpReply reply = ask("GET", path, "", header);
      EXPECT_EQ(reply.status, 401) << path;
      EXPECT_EQ(code_of(reply), "unauthorized");
      EXPECT_EQ(reply.headers.at("www-authenticate"), "Bearer");
    }
    EXPECT_EQ(ask("POST", "/healthz", "", header).status, 401);
  }
  for (const char* path : {"/healthz", "/readyz"}) EXPECT_EQ(ask("GET", path).status, 200);
}

TEST_F(HttpAccess, GuessingIsSlowAndStopsNobodyWhoIsIn) {
  start(with_tokens());
  HttpProbe proven(address());
  const std::string right = http_request("GET", "/v1/queues", "", bearer("bare"));
  EXPECT_EQ(proven.ask(right).status, 200);
  HttpProbe guessing(address());
  const std::string guess = http_request("GET", "/v1/queues", "", bearer("guess"));
  // One is given back each second, so a slow machine needs a few more.
  HttpReply reply;
  for (int tries = 0; tries < 1000 && reply.status != 429; ++tries) reply = guessing.ask(guess);
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(code_of(reply), "too_many_wrong_tokens");
  EXPECT_EQ(reply.headers.at("retry-after"), "1");
  EXPECT_EQ(proven.ask(right).status, 200);
  EXPECT_EQ(ask("GET", "/v1/queues").status, 401);
  EXPECT_EQ(ask("GET", "/healthz", "", bearer("guess")).status, 200);
}

TEST_F(HttpAccess, AnUnauthorizedBodyIsNotRead) {
  start(with_tokens());
  HttpProbe probe(address());
  const HttpReply reply =
      probe.ask(http_request("POST", "/v1/ack", "", "Content-Length: 10000000\r\n"));
  EXPECT_EQ(reply.status, 401);
  EXPECT_TRUE(probe.closed_by_peer());
}

TEST_F(HttpAccess, WithoutTokensOnlyNamesOfThisMachineAreAnswered) {
  start({.allowed_hosts = {"queue.example"}});
  for (const std::string& host : {std::string("localhost"), std::string("[::1]:1"), address(),
                                  std::string("queue.example:80")}) {
    EXPECT_EQ(HttpProbe(address()).ask(get_of_host(host)).status, 200) << host;
  }
  for (const char* host : {"evil.example", "127.0.0.2", "localhost.evil.example"}) {
    const HttpReply reply = HttpProbe(address()).ask(get_of_host(host));
    EXPECT_EQ(reply.status, 403) << host;
    EXPECT_EQ(code_of(reply), "forbidden_host");
  }
  EXPECT_EQ(HttpProbe(address()).ask("GET / HTTP/1.0\r\n\r\n").status, 403);
}

TEST_F(HttpAccess, WithTokensAnyNameIsAnswered) {
  start(with_tokens());
  EXPECT_EQ(HttpProbe(address()).ask(get_of_host("queue.example", bearer("bare"))).status, 200);
}

TEST_F(HttpAccess, AWebPageOfAnotherOriginIsRefused) {
  start();
  for (const char* origin : {"https://evil.example", "null", "http://localhost:1"}) {
    const HttpReply reply = ask("GET", "/v1/queues", "", std::string("Origin: ") + origin + "\r\n");
    EXPECT_EQ(reply.status, 403) << origin;
    EXPECT_EQ(code_of(reply), "forbidden_origin");
  }
  EXPECT_EQ(ask("GET", "/v1/queues", "", "Origin: http://localhost\r\n").status, 200);
}

TEST_F(HttpAccess, BeyondTheLimitAConnectionIsToldAndClosed) {
  start({.max_connections = 2});
  HttpProbe first(address());
  auto second = std::make_unique<HttpProbe>(address());
  EXPECT_EQ(first.ask(http_request("GET", "/healthz")).status, 200);
  EXPECT_EQ(second->ask(http_request("GET", "/healthz")).status, 200);
  {
    HttpProbe third(address());
    const auto reply = third.reply();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 503);
    EXPECT_EQ(code_of(*reply), "too_many_connections");
    EXPECT_TRUE(third.closed_by_peer());
  }
  EXPECT_EQ(first.ask(http_request("GET", "/healthz")).status, 200);
  second.reset();
  ASSERT_TRUE(eventually([&] { return server->connections() == 1; }));
  HttpProbe fourth(address());
  EXPECT_EQ(fourth.ask(http_request("GET", "/healthz")).status, 200);
  EXPECT_NE(fourth.ask(http_request("GET", "/metrics"))
                .body.find("reprise_connections_refused_total 1\n"),
            std::string::npos);
}

TEST(HttpListen, BeyondLoopbackATokenIsNeeded) {
  test::FakeBroker broker;
  for (const char* listen : {"0.0.0.0:0", "[::]:0"}) {
    const auto server = HttpServer::start(broker, {.listen = listen});
    ASSERT_FALSE(server) << listen;
    EXPECT_EQ(server.error().code, Errc::invalid_field);
    EXPECT_NE(server.error().detail.find("token"), std::string::npos);
  }
  const auto server =
      HttpServer::start(broker, {.listen = "0.0.0.0:0", .tokens = {{"default", "bare"}}});
  ASSERT_TRUE(server);
}

TEST(HttpListen, SaysWhenAnAddressIsTakenOrNone) {
  test::FakeBroker broker;
  const auto first = HttpServer::start(broker, {.listen = "127.0.0.1:0"});
  ASSERT_TRUE(first);
  const auto second = HttpServer::start(broker, {.listen = (*first)->address()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::io);
  EXPECT_NE(second.error().detail.find((*first)->address()), std::string::npos);
  EXPECT_EQ(HttpServer::start(broker, {.listen = "nowhere"}).error().code, Errc::invalid_field);
}

}  // namespace
}  // namespace reprise::server
