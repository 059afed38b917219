// Runs and logs over HTTP: what is read, what is refused, what is answered, and what waits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "server/waiting_room.h"
#include "support/worker_http_fixture.h"

namespace reprise::server {
namespace {

using namespace std::chrono_literals;
using test::http_request;
using test::HttpProbe;
using test::HttpReply;
using test::kNoon;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using worker::LogPart;
using worker::LogQuery;
using worker::RunStatus;
using worker::RunView;

constexpr const char* kId = "3K9M2QAX7B4C1";

RunView failed_run() {
  RunView run{.id = kId,
              .ns = "shop",
              .pipeline = "ship",
              .worker = "shipper",
              .queue = "orders",
              .job = "7ZK3M9QAX2B4C",
              .status = RunStatus::failed,
              .started_at = kNoon,
              .ended_at = kNoon + 1s,
              .error = "step pick: exit code 3",
              .error_type = "exit_3"};
  run.steps = {{.name = "pick",
                .visit = 1,
                .status = RunStatus::failed,
                .exit_code = 3,
                .error = "exit code 3",
                .started_at = kNoon,
                .ended_at = kNoon + 1s}};
  run.log_bytes = 120;
  run.log_left_out = 7;
  return run;
}
constexpr const char* kFailedRun =
    R"({"id":"3K9M2QAX7B4C1","namespace":"shop","pipeline":"ship","worker":"shipper",)"
    R"("queue":"orders","type":"persisted","job":"7ZK3M9QAX2B4C","status":"failed",)"
    R"("started_at":"2026-01-31T12:00:00.000Z","ended_at":"2026-01-31T12:00:01.000Z",)"
    R"("error":"step pick: exit code 3","error_type":"exit_3","log_bytes":120,"log_left_out":7,)"
    R"("steps":[{"name":"pick","visit":1,"status":"failed","exit_code":3,"error":"exit code 3",)"
    R"("started_at":"2026-01-31T12:00:00.000Z","ended_at":"2026-01-31T12:00:01.000Z"}]})";

RunView trial() {
  RunView run{.id = kId, .ns = "shop", .pipeline = "ship", .started_at = kNoon};
  run.steps = {{.name = "pick", .started_at = kNoon}};
  return run;
}
constexpr const char* kTrial =
    R"({"id":"3K9M2QAX7B4C1","namespace":"shop","pipeline":"ship","worker":null,"queue":null,)"
    R"("type":null,"job":null,"status":"running","started_at":"2026-01-31T12:00:00.000Z",)"
    R"("ended_at":null,"error":null,"error_type":null,"log_bytes":0,"log_left_out":0,)"
    R"("steps":[{"name":"pick","visit":1,"status":"running","exit_code":null,"error":null,)"
    R"("started_at":"2026-01-31T12:00:00.000Z","ended_at":null}]})";

class HttpRuns : public test::WorkerHttpTest {
 protected:
  worker::StartRunCommand last_start() {
    return service.with_lock([](auto& asked) { return asked.started.back(); });
  }
  LogQuery last_log() {
    return service.with_lock([](auto& asked) { return asked.logs.back().second; });
  }
};

TEST_F(HttpRuns, ATrialIsStarted) {
  service.one_run = trial();
  const HttpReply reply =
      ask("POST", "/v1/runs?namespace=shop",
          R"({"pipeline":"ship", "item" : {"id": 7.0, "b":[1 ,2]} ,"root":"/srv/shop"})");
  EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(reply.body, kTrial);
  EXPECT_EQ(last_start().ns, "shop");
  EXPECT_EQ(last_start().pipeline, "ship");
  EXPECT_EQ(last_start().item, R"({"id": 7.0, "b":[1 ,2]})");
  EXPECT_EQ(last_start().root, "/srv/shop");
  EXPECT_EQ(ask("POST", "/v1/runs", R"({"pipeline":"ship"})").status, 201);
  EXPECT_EQ(last_start().ns, "default");
  EXPECT_EQ(last_start().item, "");
  EXPECT_EQ(last_start().root, "");
  EXPECT_EQ(ask("POST", "/v1/runs", R"({"pipeline":"ship","\u0069tem":"text"})").status, 201);
  EXPECT_EQ(last_start().item, R"("text")");
}

TEST_F(HttpRuns, ATrialThatCannotBeIsRefused) {
  for (const char* body : {"", "{}", R"({"pipeline":""})", R"({"item":{}})"}) {
    EXPECT_EQ(refused("POST", "/v1/runs", body, "pipeline: is missing"), "invalid_request") << body;
  }
  EXPECT_EQ(refused("POST", "/v1/runs", R"({"pipeline":7})", "pipeline:"), "invalid_request");
  EXPECT_EQ(refused("POST", "/v1/runs", R"({"pipeline":"a b"})", "pipeline name"), "invalid_name");
  EXPECT_EQ(refused("POST", "/v1/runs", R"({"pipeline":"a","root":"b"})", "root:"),
            "invalid_field");
  EXPECT_EQ(refused("POST", "/v1/runs", R"({"pipeline":"a","items":{}})", "'item'"),
            "unknown_field");
  EXPECT_EQ(refused("POST", "/v1/runs", R"({"pipeline":"a","item":{},"item":{}})", "item"),
            "invalid_request");
  EXPECT_EQ(refused("POST", "/v1/runs", R"({"pipeline":"a","item":{x}})"), "invalid_request");
  EXPECT_EQ(refused("POST", "/v1/runs?namespace=*", R"({"pipeline":"a"})"), "invalid_name");
  const std::string large = R"({"pipeline":"a","item":")" + std::string((1 << 20) + 1, 'x') + "\"}";
  EXPECT_EQ(refused("POST", "/v1/runs", large, "item:"), "payload_too_large");
  service.with_lock([&](auto& asked) {
    EXPECT_THAT(asked.started, IsEmpty());
    service.one_run = Error{Errc::too_many_runs, "16 trials run"};
  });
  EXPECT_EQ(ask("POST", "/v1/runs", R"({"pipeline":"ship"})").status, 429);
}

TEST_F(HttpRuns, OneIsShown) {
  service.one_run = failed_run();
  const HttpReply reply = ask("GET", std::string("/v1/runs/") + kId);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, kFailedRun);
  EXPECT_EQ(ask("GET", "/v1/runs/3k9m").status, 200);
  service.with_lock([](auto& asked) {
    EXPECT_THAT(asked.shown, ElementsAre(Pair(kId, Duration::zero()), Pair("3k9m", 0s)));
  });
  RunView external = failed_run();
  external.external = true;
  service.with_lock([&](auto&) { service.one_run = external; });
  EXPECT_THAT(ask("GET", "/v1/runs/3k9m").body, HasSubstr(R"("type":"external")"));
  const Error ambiguous{Errc::ambiguous_id, "fits two", {"3K9M2QAX7B4C1", "3K9M2QAX7B4C2"}};
  service.with_lock([&](auto&) { service.one_run = ambiguous; });
  EXPECT_EQ(refused("GET", "/v1/runs/3K9M"), "ambiguous_id");
}

TEST_F(HttpRuns, AnIdIsNothingButAnId) {
  const std::string too_long(14, 'A');
  for (const std::string& id : {std::string("..%2F..%2Fetc"), std::string("3K9M%00"),
                                std::string("3K9M-"), std::string("%C3%A4%C3%A4"), too_long}) {
    EXPECT_EQ(refused("GET", "/v1/runs/" + id, "", "no run"), "run_not_found") << id;
    EXPECT_EQ(refused("GET", "/v1/runs/" + id + "/log"), "run_not_found") << id;
    EXPECT_EQ(refused("POST", "/v1/runs/" + id + "/cancel"), "run_not_found") << id;
  }
  EXPECT_EQ(refused("GET", "/v1/runs/3K9", "", "at least 4"), "invalid_field");
  EXPECT_EQ(refused("GET", "/v1/runs/3K9/log", "", "at least 4"), "invalid_field");
  EXPECT_EQ(refused("POST", "/v1/runs/3K9/cancel", "", "at least 4"), "invalid_field");
  service.with_lock([](auto& asked) {
    EXPECT_THAT(asked.shown, IsEmpty());
    EXPECT_THAT(asked.logs, IsEmpty());
    EXPECT_THAT(asked.cancelled, IsEmpty());
  });
}

TEST_F(HttpRuns, OneIsCancelled) {
  service.one_run = trial();
  const HttpReply reply = ask("POST", "/v1/runs/3K9M2QAX7B4C1/cancel");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, kTrial);
  service.with_lock([&](auto& asked) {
    EXPECT_THAT(asked.cancelled, ElementsAre(kId));
    service.one_run = Error{Errc::wrong_status, "run has failed"};
  });
  EXPECT_EQ(ask("POST", "/v1/runs/3K9M/cancel", "{}").status, 409);
  EXPECT_EQ(refused("POST", "/v1/runs/3K9M/cancel", R"({"now":true})", "now"), "unknown_field");
  EXPECT_EQ(refused("POST", "/v1/runs/3K9M/cancel?wait=1s", "", "wait"), "unknown_field");
}

TEST_F(HttpRuns, TheyAreListed) {
  EXPECT_EQ(ask("GET", "/v1/runs").body, R"({"runs":[]})");
  service.with_lock([&](auto&) { service.runs = std::vector{trial(), failed_run()}; });
  const HttpReply reply = ask("GET",
                              "/v1/runs?namespace=shop&worker=shipper&queue=orders&pipeline=ship"
                              "&status=failed&limit=1000");
  EXPECT_EQ(reply.body,
            R"({"runs":[)" + std::string(kTrial) + "," + std::string(kFailedRun) + "]}");
  ask("GET", "/v1/runs?namespace=*");
  service.with_lock([](auto& asked) {
    ASSERT_EQ(asked.run_queries.size(), 3U);
    EXPECT_EQ(asked.run_queries[0].ns, "default");
    EXPECT_EQ(asked.run_queries[0].limit, 50U);
    EXPECT_FALSE(asked.run_queries[0].status);
    const worker::RunQuery& query = asked.run_queries[1];
    EXPECT_EQ(query.ns, "shop");
    EXPECT_EQ(query.worker, "shipper");
    EXPECT_EQ(query.queue, "orders");
    EXPECT_EQ(query.pipeline, "ship");
    EXPECT_EQ(query.status, RunStatus::failed);
    EXPECT_EQ(query.limit, 1000U);
    EXPECT_EQ(asked.run_queries[2].ns, "");
  });
  for (const char* limit : {"0", "1001", "-1", "many"}) {
    EXPECT_EQ(refused("GET", std::string("/v1/runs?limit=") + limit, "", "limit"), "invalid_field");
  }
  EXPECT_EQ(refused("GET", "/v1/runs?status=done", "", "succeeded"), "invalid_field");
  EXPECT_EQ(refused("GET", "/v1/runs?worker=a%20b", "", "worker"), "invalid_name");
  EXPECT_EQ(refused("GET", "/v1/runs?queue=", "", "queue"), "invalid_name");
  EXPECT_EQ(refused("GET", "/v1/runs?job=a", "", "job"), "unknown_field");
  EXPECT_EQ(refused("GET", "/v1/runs", R"({"limit":1})", "limit"), "unknown_field");
}

TEST_F(HttpRuns, ALogIsReadInParts) {
  service.on_log = [](const LogQuery&) { return LogPart{.text = "a\n\x1b[1m\"", .next = 120}; };
  const HttpReply reply = ask("GET", "/v1/runs/3K9M/log?offset=100&limit=20");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"text":"a\n\u001b[1m\"","next":120,"ended":false})");
  EXPECT_EQ(last_log().offset, 100U);
  EXPECT_EQ(last_log().limit, 20U);
  EXPECT_FALSE(last_log().tail);
  ask("GET", "/v1/workers/shipper/log?namespace=shop&tail=0");
  EXPECT_EQ(last_log().tail, 0U);
  EXPECT_EQ(last_log().limit, 256U << 10);
  EXPECT_EQ(last_log().offset, 0U);
  ask("GET", "/v1/workers/shipper/log");
  service.with_lock([](auto& asked) {
    EXPECT_THAT(asked.logs, ElementsAre(Pair("3K9M", testing::_), Pair("shop/shipper", testing::_),
                                        Pair("default/shipper", testing::_)));
  });
}

TEST_F(HttpRuns, ALogIsTextWhateverIsInIt) {
  service.on_log = [](const LogQuery&) {
    return LogPart{.text = "a\xff\xc3", .next = 3, .ended = true};
  };
  EXPECT_EQ(ask("GET", "/v1/runs/3K9M/log").body,
            "{\"text\":\"a\xEF\xBF\xBD\xEF\xBF\xBD\",\"next\":3,\"ended\":true}");
  service.with_lock([&](auto&) {
    service.on_log = [](const LogQuery&) { return LogPart{.text = "a\xe2\x82", .next = 3}; };
  });
  EXPECT_EQ(ask("GET", "/v1/runs/3K9M/log").body, R"({"text":"a","next":1,"ended":false})");
}

TEST_F(HttpRuns, WhatALogDoesNotTakeIsRefused) {
  for (const std::string log : {"/v1/runs/3K9M/log", "/v1/workers/shipper/log"}) {
    for (const char* query : {"limit=3", "limit=262145", "offset=-1", "tail=x", "wait=61s",
                              "wait=soon", "offset=1&tail=1"}) {
      EXPECT_EQ(refused("GET", log + "?" + query), "invalid_field") << log << query;
    }
    EXPECT_EQ(refused("GET", log + "?follow=true", "", "follow"), "unknown_field");
    EXPECT_EQ(refused("GET", log, R"({"tail":1})", "tail"), "unknown_field");
    EXPECT_EQ(refused("POST", log), "method_not_allowed");
  }
  EXPECT_EQ(refused("GET", "/v1/runs/3K9M/log?namespace=shop", "", "namespace"), "unknown_field");
  EXPECT_EQ(refused("GET", "/v1/workers/a%20b/log", "", "worker name"), "invalid_name");
  EXPECT_EQ(refused("GET", "/v1/workers/shipper/log?namespace=*"), "invalid_name");
  service.with_lock([&](auto&) {
    service.on_log = [](const LogQuery&) {
      return Result<LogPart>(Error{Errc::worker_not_found, "no worker"});
    };
  });
  EXPECT_EQ(refused("GET", "/v1/workers/shipper/log"), "worker_not_found");
}

TEST_F(HttpRuns, ARunMayBeWaitedFor) {
  service.one_run = failed_run();
  HttpProbe probe(address());
  probe.send(http_request("GET", "/v1/runs/3K9M?wait=30s"));
  ASSERT_TRUE(service.wait_for_waiting(1));
  service.answer_waiting();
  const auto reply = probe.reply();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->body, kFailedRun);
  // The connection goes on.
  EXPECT_EQ(probe.ask(http_request("GET", "/healthz")).status, 200);
  service.with_lock([](auto& asked) { EXPECT_EQ(asked.shown.front().second, 30s); });
  for (const char* wait : {"61s", "-1s", "soon"}) {
    EXPECT_EQ(refused("GET", std::string("/v1/runs/3K9M?wait=") + wait, "", "wait"),
              "invalid_field");
  }
}

TEST_F(HttpRuns, AClientThatHangsUpIsNoticedAtOnce) {
  for (const char* target :
       {"/v1/runs/3K9M?wait=1m", "/v1/runs/3K9M/log?wait=1m", "/v1/workers/shipper/log?wait=1m"}) {
    HttpProbe probe(address());
    probe.send(http_request("GET", target));
    ASSERT_TRUE(service.wait_for_waiting(1)) << target;
    EXPECT_EQ(server->connections(), 1U);
    probe.close();
    EXPECT_TRUE(eventually([&] { return server->connections() == 0; })) << target;
    service.answer_waiting();  // nobody is there to hear it
  }
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
}

TEST_F(HttpRuns, AStopDoesNotWaitForWhoWaits) {
  HttpProbe run(address());
  HttpProbe log(address());
  run.send(http_request("GET", "/v1/runs/3K9M?wait=1m"));
  log.send(http_request("GET", "/v1/runs/3K9M/log?wait=1m"));
  ASSERT_TRUE(service.wait_for_waiting(2));
  const auto began = std::chrono::steady_clock::now();
  server->stop(20s);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 15s);
  EXPECT_EQ(server->connections(), 0U);
  for (HttpProbe* probe : {&run, &log}) {
    const auto reply = probe->reply();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 200);
    EXPECT_TRUE(probe->closed_by_peer());
  }
  service.with_lock([](auto& asked) { EXPECT_GE(asked.stop_waitings, 1); });
}

TEST_F(HttpRuns, OnlySoManyWait) {
  WaitingRoom room(2);
  auto first = room.enter();
  {
    const auto second = room.enter();
    ASSERT_TRUE(first && second);
    const auto third = room.enter();
    ASSERT_FALSE(third);
    EXPECT_EQ(third.error().code, Errc::too_many_waiting);
    EXPECT_EQ(room.size(), 2U);
  }
  EXPECT_EQ(room.size(), 1U);
  EXPECT_TRUE(room.enter());
  const WaitingRoom::Place moved = std::move(*first);
  EXPECT_EQ(room.size(), 1U);
}

}  // namespace
}  // namespace reprise::server
