// Claims over a connection that may go away: nothing stays leased for nobody.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "support/http_server_fixture.h"

namespace reprise::server {
namespace {

using test::claimed_job;
using test::http_request;
using test::HttpProbe;
using test::HttpReply;

class HttpClaim : public test::HttpServerTest {
 protected:
  bool wait_for_release(Seq seq) {
    return broker.wait_for([&](const auto& asked) {
      return asked.releases.size() == 1 && asked.releases.front().token->job.seq == seq;
    });
  }
};

std::string claim_request(std::string_view body = R"({"wait":"60s"})") {
  return http_request("POST", "/v1/queues/orders/claim", body);
}

TEST_F(HttpClaim, AWaitingClaimIsAnsweredWhenThereIsAJob) {
  start();
  HttpProbe probe(address());
  probe.send(claim_request());
  ASSERT_TRUE(broker.wait_for_waiting_claims(1));
  broker.answer_claim(ClaimReply{{claimed_job(7)}});
  const auto reply = probe.reply();
  ASSERT_TRUE(reply);
  EXPECT_EQ(json_of(*reply)["jobs"].array()->front()["id"].string_or(""), encode_job_id(7));
  EXPECT_EQ(probe.ask(http_request("GET", "/healthz")).status, 200);
  EXPECT_TRUE(broker.with_lock([](auto& asked) { return asked.releases.empty(); }));
}

TEST_F(HttpClaim, ClosingTheConnectionWithdrawsTheClaim) {
  start();
  HttpProbe probe(address());
  probe.send(claim_request());
  ASSERT_TRUE(broker.wait_for_waiting_claims(1));
  probe.close();
  EXPECT_TRUE(broker.wait_for_waiting_claims(0));
  EXPECT_TRUE(broker.wait_for([](auto& asked) { return asked.cancelled.size() == 1; }));
  EXPECT_TRUE(eventually([&] { return server->connections() == 0; }));
}

TEST_F(HttpClaim, ResettingTheConnectionWithdrawsTheClaim) {
  start();
  HttpProbe probe(address());
  probe.send(claim_request());
  ASSERT_TRUE(broker.wait_for_waiting_claims(1));
  probe.abort();
  EXPECT_TRUE(broker.wait_for_waiting_claims(0));
}

TEST_F(HttpClaim, APipelinedRequestDoesNotHideThatTheClientIsGone) {
  start();
  HttpProbe probe(address());
  probe.send(claim_request());
  ASSERT_TRUE(broker.wait_for_waiting_claims(1));
  probe.send(http_request("GET", "/healthz"));
  probe.close();
  EXPECT_TRUE(broker.wait_for_waiting_claims(0));
}

TEST_F(HttpClaim, APipelinedRequestWaitsForTheClaimBeforeIt) {
  start();
  HttpProbe probe(address());
  probe.send(claim_request() + http_request("GET", "/healthz"));
  ASSERT_TRUE(broker.wait_for_waiting_claims(1));
  broker.answer_claim(ClaimReply{{claimed_job(7)}});
  EXPECT_NE(probe.reply()->body.find(encode_job_id(7)), std::string::npos);
  EXPECT_EQ(probe.reply()->body, R"({"status":"ok"})");
}

TEST_F(HttpClaim, JobsForAClientThatHasGoneAreReleased) {
  start();
  HttpProbe probe(address());
  broker.claim_reply = ClaimReply{{claimed_job(9)}};
  broker.hold_replies();
  probe.send(claim_request("{}"));
  ASSERT_TRUE(broker.wait_for([](auto& asked) { return asked.claims.size() == 1; }));
  probe.close();
  broker.let_go();
  EXPECT_TRUE(wait_for_release(9));
}

TEST_F(HttpClaim, JobsOfAReplyThatDoesNotLeaveWholeAreReleased) {
  std::string payload(1 << 20, 'x');
  payload.front() = payload.back() = '"';
  ClaimReply large;
  large.jobs.assign(16, claimed_job(9, payload));
  broker.claim_reply = large;
  start({.write_timeout = std::chrono::milliseconds(100)});
  HttpProbe probe(address(), 4096);
  probe.send(claim_request("{}"));
  EXPECT_TRUE(broker.wait_for([](auto& asked) { return asked.releases.size() == 16; }));
}

TEST_F(HttpClaim, JobsThatArriveAfterTheServerHasStoppedAreReleased) {
  start();
  HttpProbe probe(address());
  broker.claim_reply = ClaimReply{{claimed_job(9)}};
  broker.hold_replies();
  probe.send(claim_request("{}"));
  ASSERT_TRUE(broker.wait_for([](auto& asked) { return asked.claims.size() == 1; }));
  server->stop(Duration::zero());
  server.reset();
  broker.let_go();
  EXPECT_TRUE(wait_for_release(9));
}

TEST_F(HttpClaim, StoppingEndsWaitingClaimsWithAnEmptyReply) {
  start();
  HttpProbe probe(address());
  probe.send(claim_request());
  ASSERT_TRUE(broker.wait_for_waiting_claims(1));
  server->stop(std::chrono::seconds(10));
  const auto reply = probe.reply();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, R"({"jobs":[]})");
  EXPECT_EQ(reply->headers.at("connection"), "close");
  EXPECT_TRUE(probe.closed_by_peer());
}

TEST_F(HttpClaim, AnErrorOfAWaitingClaimIsTold) {
  start();
  HttpProbe probe(address());
  probe.send(claim_request());
  ASSERT_TRUE(broker.wait_for_waiting_claims(1));
  broker.answer_claim(Error{Errc::queue_not_found, "deleted"});
  EXPECT_EQ(probe.reply()->status, 404);
}

TEST_F(HttpClaim, IdleTimeoutsDoNotEndAWaitingClaim) {
  start({.header_timeout = std::chrono::milliseconds(20),
         .body_timeout = std::chrono::milliseconds(20),
         .idle_timeout = std::chrono::milliseconds(20)});
  HttpProbe idle(address());
  HttpProbe probe(address());
  probe.send(claim_request());
  ASSERT_TRUE(broker.wait_for_waiting_claims(1));
  EXPECT_TRUE(idle.closed_by_peer());  // so that much time has passed
  broker.answer_claim(ClaimReply{});
  EXPECT_EQ(probe.reply()->body, R"({"jobs":[]})");
}

}  // namespace
}  // namespace reprise::server
