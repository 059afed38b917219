// HTTP on the wire: framing, pipelining, limits and timeouts, over real sockets.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "support/http_server_fixture.h"

namespace reprise::server {
namespace {

using std::chrono::milliseconds;
using test::http_request;
using test::HttpProbe;
using test::HttpReply;

class HttpProtocol : public test::HttpServerTest {};

const std::string kPush = R"({"jobs":[{"payload":{"id": 1}}]})";

std::string push_request() { return http_request("POST", "/v1/queues/orders/push", kPush); }

TEST_F(HttpProtocol, RepliesCarryTheHeadersOfEveryReply) {
  start();
  const HttpReply reply = ask("GET", "/healthz");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"status":"ok"})");
  EXPECT_EQ(reply.headers.at("content-type"), "application/json");
  EXPECT_EQ(reply.headers.at("x-content-type-options"), "nosniff");
  EXPECT_EQ(reply.headers.at("cache-control"), "no-store");
  EXPECT_TRUE(reply.headers.at("date").ends_with(" GMT"));
  EXPECT_FALSE(reply.headers.contains("access-control-allow-origin"));
}

TEST_F(HttpProtocol, AConnectionTakesManyRequests) {
  start();
  HttpProbe probe(address());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(probe.ask(push_request()).status, 200);
  EXPECT_EQ(broker.with_lock([](auto& asked) { return asked.pushes.size(); }), 100U);
}

TEST_F(HttpProtocol, PipelinedRequestsAreAnsweredInOrder) {
  start();
  HttpProbe probe(address());
  std::string all;
  for (int i = 0; i < 50; ++i) {
    all += push_request() + http_request("GET", "/healthz") +
           http_request("GET", "/v1/nowhere" + std::to_string(i));
  }
  probe.send(all);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(probe.reply()->body.substr(0, 36), R"({"results":[{"index":0,"status":"pus)");
    EXPECT_EQ(probe.reply()->body, R"({"status":"ok"})");
    EXPECT_NE(probe.reply()->body.find("nowhere" + std::to_string(i)), std::string::npos);
  }
}

TEST_F(HttpProtocol, ARequestMayBeSplitAnywhere) {
  start();
  const std::string chunked =
      http_request("POST", "/v1/queues/orders/push", "", "Transfer-Encoding: chunked\r\n") +
      "5;x\r\n{\"job\r\n1B\r\ns\":[{\"payload\":[1,2,3]}]}  \r\n0\r\nT: u\r\n\r\n";
  for (const std::string& request : {push_request(), chunked}) {
    HttpProbe probe(address());
    for (std::size_t cut = 1; cut < request.size(); ++cut) {
      probe.send(request.substr(0, cut));
      std::this_thread::yield();
      EXPECT_EQ(probe.ask(request.substr(cut)).status, 200) << cut;
    }
    HttpProbe dripping(address());
    for (const char byte : request) dripping.send({&byte, 1});
    EXPECT_EQ(dripping.reply()->status, 200);
  }
}

TEST_F(HttpProtocol, EmptyLinesBeforeARequestAreOverlooked) {
  start();
  HttpProbe probe(address());
  EXPECT_EQ(probe.ask("\r\n" + http_request("GET", "/healthz")).status, 200);
  EXPECT_EQ(probe.ask("\r\n\r\n" + http_request("GET", "/healthz")).status, 200);
}

TEST_F(HttpProtocol, EmptyLinesBeforeARequestAreOverlookedInPiecesToo) {
  start();
  // Bytes may arrive together after all, so more than once.
  for (int round = 0; round < 50; ++round) {
    for (const std::string lines : {"\r\n", "\r\n\r\n"}) {
      HttpProbe probe(address());
      EXPECT_EQ(probe.ask(http_request("GET", "/healthz")).status, 200);
      for (const char byte : lines) {
        probe.send({&byte, 1});
        std::this_thread::yield();
      }
      EXPECT_EQ(probe.ask(http_request("GET", "/healthz")).status, 200);
    }
  }
}

TEST_F(HttpProtocol, AMalformedRequestIsRefusedAndNothingBehindItIsRead) {
  start();
  HttpProbe probe(address());
  probe.send(
      "POST /v1/ack HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
      "Transfer-Encoding: chunked\r\n\r\n" +
      push_request());
  const auto reply = probe.reply();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 400);
  EXPECT_EQ(code_of(*reply), "invalid_request");
  EXPECT_EQ(reply->headers.at("connection"), "close");
  EXPECT_TRUE(probe.closed_by_peer());
  EXPECT_TRUE(broker.with_lock([](auto& asked) { return asked.pushes.empty(); }));
}

TEST_F(HttpProtocol, RefusalsOfTheGateHaveTheStatusOfTheStandard) {
  start();
  const std::string host = "Host: localhost\r\n";
  EXPECT_EQ(HttpProbe(address()).ask("GET / HTTP/3.0\r\n" + host + "\r\n").status, 505);
  EXPECT_EQ(HttpProbe(address())
                .ask("POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n")
                .status,
            501);
  EXPECT_EQ(HttpProbe(address()).ask("POST / HTTP/1.1\r\n" + host + "Expect: tea\r\n\r\n").status,
            417);
}

TEST_F(HttpProtocol, AMalformedChunkIsRefused) {
  start();
  HttpProbe probe(address());
  const HttpReply reply =
      probe.ask(http_request("POST", "/v1/ack", "", "Transfer-Encoding: chunked\r\n") +
                "2\n{}\n0\n\n" + push_request());
  EXPECT_EQ(reply.status, 400);
  EXPECT_TRUE(probe.closed_by_peer());
}

TEST_F(HttpProtocol, HeadIsGetWithoutABody) {
  start();
  HttpProbe probe(address());
  probe.send(http_request("HEAD", "/healthz"));
  const auto head = probe.reply(true);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->headers.at("content-length"), "15");
  EXPECT_EQ(probe.ask(http_request("GET", "/healthz")).body, R"({"status":"ok"})");
  probe.send(http_request("HEAD", "/v1/queues"));
  EXPECT_EQ(probe.reply(true)->status, 200);
  EXPECT_EQ(probe.ask(http_request("GET", "/healthz")).status, 200);
}

TEST_F(HttpProtocol, AnotherMethodIsToldWhichThereAre) {
  start();
  const HttpReply reply = ask("DELETE", "/v1/queues/orders/push");
  EXPECT_EQ(reply.status, 405);
  EXPECT_EQ(code_of(reply), "method_not_allowed");
  EXPECT_EQ(reply.headers.at("allow"), "POST");
  EXPECT_EQ(ask("POST", "/healthz").headers.at("allow"), "GET, HEAD");
}

TEST_F(HttpProtocol, AnUnknownPathKeepsTheConnection) {
  start();
  HttpProbe probe(address());
  EXPECT_EQ(code_of(probe.ask(http_request("POST", "/v2/push", kPush))), "not_found");
  EXPECT_EQ(probe.ask(http_request("GET", "/healthz")).status, 200);
}

TEST_F(HttpProtocol, ClosesWhenAskedTo) {
  start();
  HttpProbe probe(address());
  const HttpReply reply = probe.ask(http_request("GET", "/healthz", "", "Connection: close\r\n"));
  EXPECT_EQ(reply.headers.at("connection"), "close");
  EXPECT_TRUE(probe.closed_by_peer());
}

TEST_F(HttpProtocol, Http10ClosesUnlessItAsksToStay) {
  start();
  HttpProbe leaving(address());
  EXPECT_EQ(leaving.ask("GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n").status, 200);
  EXPECT_TRUE(leaving.closed_by_peer());
  HttpProbe staying(address());
  const std::string request =
      "GET /healthz HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n";
  EXPECT_EQ(staying.ask(request).headers.at("connection"), "keep-alive");
  EXPECT_EQ(staying.ask(request).status, 200);
}

TEST_F(HttpProtocol, AClientMayFinishSendingBeforeItReads) {
  start();
  HttpProbe probe(address());
  probe.send(push_request() + http_request("GET", "/healthz"));
  probe.finish_sending();
  EXPECT_EQ(probe.reply()->status, 200);
  EXPECT_EQ(probe.reply()->body, R"({"status":"ok"})");
  EXPECT_TRUE(probe.closed_by_peer());
}

TEST_F(HttpProtocol, ExpectContinueIsAnsweredBeforeTheBody) {
  start();
  HttpProbe probe(address());
  probe.send(
      "POST /v1/queues/orders/push HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
      "Content-Length: " +
      std::to_string(kPush.size()) + "\r\n\r\n");
  EXPECT_EQ(probe.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(probe.ask(kPush).status, 200);
}

TEST_F(HttpProtocol, ExpectContinueOfARefusedRequestIsRefusedAtOnce) {
  start();
  HttpProbe probe(address());
  const HttpReply reply = probe.ask(
      "POST /v1/nowhere HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
      "Content-Length: 5\r\n\r\n");
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.headers.at("connection"), "close");
}

TEST_F(HttpProtocol, ABodyBeyondTheLimitIsRefusedBeforeItIsRead) {
  start({.max_body_bytes = 1000});
  HttpProbe probe(address());
  const HttpReply reply =
      probe.ask(http_request("POST", "/v1/ack", "", "Content-Length: 1001\r\n"));
  EXPECT_EQ(reply.status, 413);
  EXPECT_EQ(code_of(reply), "body_too_large");
  EXPECT_TRUE(probe.closed_by_peer());
}

TEST_F(HttpProtocol, ALargeUploadStillReceivesItsRefusal) {
  start({.max_body_bytes = 1000});
  HttpProbe probe(address());
  EXPECT_EQ(probe.ask(http_request("POST", "/v1/ack", std::string(4 << 20, ' '))).status, 413);
}

TEST_F(HttpProtocol, AChunkedBodyBeyondTheLimitIsRefused) {
  start({.max_body_bytes = 1000});
  HttpProbe probe(address());
  const HttpReply reply =
      probe.ask(http_request("POST", "/v1/ack", "", "Transfer-Encoding: chunked\r\n") + "3E8\r\n" +
                std::string(1000, ' ') + "\r\n1\r\n \r\n");
  EXPECT_EQ(reply.status, 413);
  EXPECT_TRUE(probe.closed_by_peer());
}

TEST_F(HttpProtocol, ABodyOfManyMegabytesIsReadWhole) {
  start();
  std::string body = R"({"jobs":[)";
  for (int i = 0; i < 10; ++i) {
    body += (i == 0 ? "" : ",") +
            ("{\"payload\":\"" + std::string(1 << 20, 'x')).substr(0, 1 << 20) + "\"}";
  }
  body += "]}";
  HttpProbe probe(address());
  EXPECT_EQ(probe.ask(http_request("POST", "/v1/queues/orders/push", body)).status, 200);
  EXPECT_EQ(probe.ask(push_request()).status, 200);
}

TEST_F(HttpProtocol, TooManyLargeRequestsAtOnceAreOverload) {
  start({.max_buffered_bytes = 100'000});
  HttpProbe probe(address());
  const HttpReply reply =
      probe.ask(http_request("POST", "/v1/queues/orders/push", std::string(1 << 20, ' ')));
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(code_of(reply), "overloaded");
  EXPECT_EQ(reply.headers.at("retry-after"), "1");
  EXPECT_EQ(ask("POST", "/v1/queues/orders/push", kPush).status, 200);
}

TEST_F(HttpProtocol, AHeaderBeyondTheLimitIsRefused) {
  start({.max_request_header_bytes = 1000});
  for (const char* end : {"\r\n\r\n", ""}) {  // whole, or not even ended
    HttpProbe probe(address());
    const HttpReply reply =
        probe.ask("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(1000, 'x') + end);
    EXPECT_EQ(reply.status, 431);
    EXPECT_EQ(code_of(reply), "request_header_too_large");
    EXPECT_TRUE(probe.closed_by_peer());
  }
}

TEST_F(HttpProtocol, ARequestThatDoesNotArriveWholeIsGivenUp) {
  start({.header_timeout = milliseconds(50), .body_timeout = milliseconds(50)});
  for (const std::string& begun :
       {std::string("G"), std::string("GET / HTTP/1.1\r\nHost: localhost\r\n"),
        http_request("POST", "/v1/ack", "", "Content-Length: 10\r\n") + "{",
        http_request("POST", "/v1/ack", "", "Transfer-Encoding: chunked\r\n") + "5\r\n{"}) {
    HttpProbe probe(address());
    const HttpReply reply = probe.ask(begun);
    EXPECT_EQ(reply.status, 408) << begun;
    EXPECT_EQ(code_of(reply), "request_timeout");
    EXPECT_TRUE(probe.closed_by_peer());
  }
}

TEST_F(HttpProtocol, AnIdleConnectionIsClosedWithoutAWord) {
  start({.idle_timeout = milliseconds(50)});
  HttpProbe silent(address());
  EXPECT_TRUE(silent.closed_by_peer());
  HttpProbe probe(address());
  EXPECT_EQ(probe.ask(http_request("GET", "/healthz")).status, 200);
  EXPECT_TRUE(probe.closed_by_peer());
}

TEST_F(HttpProtocol, AReaderThatDoesNotReadIsCutOff) {
  JobView view{.seq = 1, .status = JobStatus::pending};
  view.record = test::record_of("\"" + std::string(1 << 20, 'x') + "\"");
  broker.page = BrowsePage{.jobs = std::vector<JobView>(16, view)};
  start({.write_timeout = milliseconds(100)});
  HttpProbe probe(address(), 4096);
  probe.send(http_request("GET", "/v1/queues/orders/jobs"));
  EXPECT_TRUE(eventually([&] { return server->connections() == 0; }));
}

TEST_F(HttpProtocol, AReplyOfManyMegabytesArrivesWhole) {
  JobView view{.seq = 1, .status = JobStatus::pending};
  view.record = test::record_of("\"" + std::string(1 << 20, 'x') + "\"");
  broker.page = BrowsePage{.jobs = std::vector<JobView>(16, view)};
  start();
  HttpProbe probe(address(), 65536);
  const HttpReply reply = probe.ask(http_request("GET", "/v1/queues/orders/jobs"));
  EXPECT_GT(reply.body.size(), 16U << 20);
  EXPECT_TRUE(reply.body.ends_with("}],\"cursor\":null}"));
  EXPECT_EQ(probe.ask(http_request("GET", "/healthz")).status, 200);
}

TEST_F(HttpProtocol, ConnectionsOnSeveralThreadsAreServedAlike) {
  start({.io_threads = 3});
  std::vector<std::thread> clients;
  std::atomic<int> succeeded = 0;
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([&] {
      HttpProbe probe(address());
      for (int i = 0; i < 50; ++i) succeeded += probe.ask(push_request()).status == 200 ? 1 : 0;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(succeeded, 400);
}

}  // namespace
}  // namespace reprise::server
