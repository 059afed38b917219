// Retry and purge over HTTP: what is read, what is refused, and what is answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "support/http_server_fixture.h"

namespace reprise::server {
namespace {

using namespace std::chrono_literals;
using test::HttpReply;
using ::testing::HasSubstr;

constexpr std::string_view kRetry = "/v1/queues/orders/retry";
constexpr std::string_view kPurge = "/v1/queues/orders/purge";
const QueueName kOrders{"default", "orders"};
const Timestamp kNoon =
    std::chrono::sys_days(std::chrono::year(2026) / 1 / 31) + std::chrono::hours(12);

Operation some_operation(OperationState state = OperationState::running) {
  return {.id = 7,
          .kind = OperationKind::retry,
          .name = kOrders,
          .filter = {.error = "timeout"},
          .rate = Rate{.count = 100, .per = 1s},
          .total = 5000,
          .asked_by = "ops",
          .started_at = kNoon,
          .state = state,
          .done = 1200};
}

class HttpSelection : public test::HttpServerTest {
 protected:
  void SetUp() override { start(); }

  void start_with_tokens() { start({.tokens = {{"ops", "wonderland"}, {"default", "bare"}}}); }
  HttpReply ask_as(std::string_view token, std::string_view method, std::string_view target,
                   std::string_view body = {}) {
    return ask(method, target, body, "Authorization: Bearer " + std::string(token) + "\r\n");
  }

  // The code of a refusal that never came to the broker, whose message has `named` in it.
  std::string refused(std::string_view method, std::string_view target, std::string_view body,
                      std::string_view named = {}) {
    const HttpReply reply = ask(method, target, body);
    EXPECT_GE(reply.status, 400) << target << " " << body;
    const Json json = json_of(reply);
    EXPECT_THAT(json["error"]["message"].string_or(""), HasSubstr(std::string(named))) << body;
    broker.with_lock([&](auto& asked) {
      EXPECT_EQ(asked.retries.size() + asked.purges.size(), 0U) << body;
      EXPECT_EQ(asked.operations.size() + asked.previews.size(), 0U) << body;
    });
    return json["error"]["code"].string_or("");
  }

  StartOperationCommand only_operation() {
    return broker.with_lock([](auto& asked) {
      EXPECT_EQ(asked.operations.size(), 1U);
      return asked.operations.empty() ? StartOperationCommand{} : asked.operations.front();
    });
  }
  Duration last_wait() {
    return broker.with_lock([](auto& asked) { return asked.waits.back(); });
  }
};

// --- By ids.

TEST_F(HttpSelection, IdsAreRetriedAsTheyWereGiven) {
  broker.selection = SelectionReply{.done = 2};
  const HttpReply reply =
      ask("POST", "/v1/queues/orders/retry?namespace=shop", R"({"ids":["7ZK3M9QAX2B4C","1fq0"]})");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"retried":2,"skipped":[],"not_found":[],"operation":null})");
  broker.with_lock([](auto& asked) {
    ASSERT_EQ(asked.retries.size(), 1U);
    EXPECT_EQ(asked.retries[0].queue, (QueueName{"shop", "orders"}));
    EXPECT_EQ(asked.retries[0].ids, (std::vector<std::string>{"7ZK3M9QAX2B4C", "1fq0"}));
    EXPECT_EQ(asked.retries[0].asked_by, "");
    EXPECT_TRUE(asked.purges.empty());
  });
}

TEST_F(HttpSelection, IdsArePurged) {
  broker.selection = SelectionReply{.done = 1};
  EXPECT_EQ(ask("POST", kPurge, R"({"ids":["7ZK3M9QAX2B4C"]})").body,
            R"({"purged":1,"skipped":[],"not_found":[],"operation":null})");
  broker.with_lock([](auto& asked) {
    ASSERT_EQ(asked.purges.size(), 1U);
    EXPECT_EQ(asked.purges[0].queue, kOrders);
    EXPECT_TRUE(asked.retries.empty());
  });
}

TEST_F(HttpSelection, NoIdsAtAllAreNoError) {
  const HttpReply reply = ask("POST", kRetry, R"({"ids":[]})");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"retried":0,"skipped":[],"not_found":[],"operation":null})");
}

TEST_F(HttpSelection, NullIsAsIfItWereNotThere) {
  EXPECT_EQ(ask("POST", kRetry,
                R"({"ids":["7ZK3"],"filter":null,"dry_run":null,"limit":null,"rate":null,)"
                R"("wait":null})")
                .status,
            200);
  EXPECT_EQ(ask("POST", kRetry,
                R"({"filter":{},"ids":null,"dry_run":null,"limit":null,"rate":null,"wait":null})")
                .status,
            202);
  EXPECT_EQ(broker.with_lock([](auto& asked) { return asked.retries.size(); }), 1U);
  EXPECT_EQ(only_operation().limit, std::nullopt);
  EXPECT_EQ(only_operation().rate, std::nullopt);
  EXPECT_EQ(last_wait(), 10s);
}

TEST_F(HttpSelection, WhatWasNotDoneIsToldBesideWhatWas) {
  broker.selection =
      SelectionReply{.done = 1,
                     .skipped = {{.id = "1FQ0W8C5AAAAA",
                                  .status = JobStatus::pending,
                                  .code = Errc::wrong_status,
                                  .reason = "it is pending"},
                                 {.id = "7ZK3", .code = Errc::ambiguous_id, .reason = "two jobs"}},
                     .not_found = {"9999"},
                     .first_refusal = Error{Errc::wrong_status, "it is pending"}};
  const HttpReply reply = ask("POST", kRetry, R"({"ids":["A","1FQ0","7ZK3","9999"]})");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body,
            R"({"retried":1,"skipped":[{"id":"1FQ0W8C5AAAAA","status":"pending",)"
            R"("code":"wrong_status","reason":"it is pending"},{"id":"7ZK3","status":null,)"
            R"("code":"ambiguous_id","reason":"two jobs"}],"not_found":["9999"],)"
            R"("operation":null})")
      << "one was done, so there is no error";
}

TEST_F(HttpSelection, WhenNothingWasDoneTheFirstRefusalIsTheAnswer) {
  struct Case {
    Errc code;
    int http_status;
  };
  for (const auto& [code, http_status] : {Case{Errc::job_not_found, 404},
                                          {Errc::wrong_status, 409},
                                          {Errc::ambiguous_id, 409},
                                          {Errc::disk_full, 507},
                                          {Errc::invalid_field, 400}}) {
    broker.selection =
        SelectionReply{.not_found = {"7ZK3"}, .first_refusal = Error{code, "because"}};
    for (const auto& [path, word] : {std::pair{kRetry, "retried"}, {kPurge, "purged"}}) {
      const HttpReply reply = ask("POST", path, R"({"ids":["7ZK3"]})");
      EXPECT_EQ(reply.status, http_status);
      EXPECT_EQ(reply.body, std::string("{\"") + word +
                                R"(":0,"skipped":[],"not_found":["7ZK3"],"operation":null,)"
                                R"("error":{"code":")" +
                                std::string(errc_info(code).wire_name) +
                                R"(","message":"because"}})");
    }
  }
}

TEST_F(HttpSelection, ACallThatFailsAsAWholeIsItsError) {
  broker.selection = Error{Errc::queue_not_found, "no queue 'orders'"};
  broker.operation = Error{Errc::queue_not_found, "no queue 'orders'"};
  broker.preview_reply = Error{Errc::queue_not_found, "no queue 'orders'"};
  for (const char* body :
       {R"({"ids":["7ZK3"]})", R"({"filter":{}})", R"({"filter":{},"dry_run":true})"}) {
    const HttpReply reply = ask("POST", kPurge, body);
    EXPECT_EQ(reply.status, 404) << body;
    EXPECT_EQ(reply.body, R"({"error":{"code":"queue_not_found","message":"no queue 'orders'"}})");
  }
}

// --- By filter.

TEST_F(HttpSelection, AFilterStartsAnOperation) {
  broker.operation = some_operation(OperationState::done);
  const HttpReply reply = ask("POST", "/v1/queues/orders/retry?namespace=shop",
                              R"({"filter":{"status":"failed","error":"timeout",)"
                              R"("error_type":"Net","fingerprint":"00000000deadbeef",)"
                              R"("reason":"final","older_than":"7d","newer_than":"8d",)"
                              R"("headers":{"tenant":"a"}},)"
                              R"("limit":1000,"rate":"100/s","wait":"5s","dry_run":false})");
  EXPECT_EQ(reply.status, 200);
  const StartOperationCommand command = only_operation();
  EXPECT_EQ(command.kind, OperationKind::retry);
  EXPECT_EQ(command.queue, (QueueName{"shop", "orders"}));
  EXPECT_EQ(command.filter, (JobFilter{.status = JobStatus::failed,
                                       .error = "timeout",
                                       .error_type = "Net",
                                       .fingerprint = 0xDEADBEEF,
                                       .reason = DeathReason::final,
                                       .older_than = 168h,
                                       .newer_than = 192h,
                                       .headers = {{"tenant", "a"}}}));
  EXPECT_EQ(command.limit, 1000U);
  ASSERT_TRUE(command.rate);
  EXPECT_EQ(command.rate->count, 100U);
  EXPECT_EQ(command.rate->per, 1s);
  EXPECT_EQ(command.asked_by, "");
  EXPECT_EQ(last_wait(), 5s);
}

TEST_F(HttpSelection, AnEmptyFilterSelectsAll) {
  broker.operation = some_operation();
  EXPECT_EQ(ask("POST", kPurge, R"({"filter":{}})").status, 202);
  EXPECT_EQ(only_operation().kind, OperationKind::purge);
  EXPECT_EQ(only_operation().filter, JobFilter{});
  EXPECT_EQ(only_operation().limit, std::nullopt);
  EXPECT_EQ(only_operation().rate, std::nullopt);
}

TEST_F(HttpSelection, ItIsWaitedForUnlessItHasAPace) {
  for (const auto& [body, wait] : {std::pair<const char*, Duration>{R"({"filter":{}})", 10s},
                                   {R"({"filter":{},"rate":"1/s"})", 0s},
                                   {R"({"filter":{},"rate":"1/s","wait":"3s"})", 3s},
                                   {R"({"filter":{},"wait":0})", 0s},
                                   {R"({"filter":{},"wait":"10m"})", 10min}}) {
    EXPECT_LT(ask("POST", kRetry, body).status, 300) << body;
    EXPECT_EQ(last_wait(), wait) << body;
  }
}

TEST_F(HttpSelection, WhatStillRunsIsAccepted) {
  broker.operation = some_operation();
  broker.operation->first_skipped = {{.id = "1FQ0W8C5AAAAA",
                                      .status = JobStatus::active,
                                      .code = Errc::wrong_status,
                                      .reason = "it is active"}};
  const HttpReply reply = ask("POST", kRetry, R"({"filter":{"error":"timeout"}})");
  EXPECT_EQ(reply.status, 202);
  const Json json = json_of(reply);
  EXPECT_EQ(json["retried"].integer(), 1200);
  EXPECT_EQ(json["not_found"].dump(), "[]");
  ASSERT_EQ(json["skipped"].array()->size(), 1U);
  EXPECT_EQ(json["skipped"].array()->front()["status"].string_or(""), "active");
  EXPECT_EQ(json["skipped"].array()->front()["code"].string_or(""), "wrong_status");
  EXPECT_EQ(json["operation"]["id"].integer(), 7);
  EXPECT_EQ(json["operation"]["state"].string_or(""), "running");
}

TEST_F(HttpSelection, WhatHasEndedIsOk) {
  for (const OperationState state :
       {OperationState::done, OperationState::cancelled, OperationState::failed}) {
    broker.operation = some_operation(state);
    broker.operation->kind = OperationKind::purge;
    broker.operation->ended_at = kNoon + 3s;
    broker.operation->error = state == OperationState::failed ? "the queue was deleted" : "";
    const HttpReply reply = ask("POST", kPurge, R"({"filter":{}})");
    EXPECT_EQ(reply.status, 200);
    const Json json = json_of(reply);
    EXPECT_EQ(json["purged"].integer(), 1200);
    EXPECT_EQ(json["operation"]["state"].string_or(""), operation_state_name(state));
    EXPECT_EQ(json["operation"]["ended_at"].string_or(""), "2026-01-31T12:00:03.000Z");
    EXPECT_EQ(json["operation"]["error"].string_or("none"),
              state == OperationState::failed ? "the queue was deleted" : "none");
  }
}

TEST_F(HttpSelection, ADryRunOnlyCounts) {
  JobState state;
  state.status = JobStatus::dead;
  state.ended_at = kNoon;
  state.last_error = "timeout";
  broker.preview_reply =
      SelectionPreview{.matched = 12,
                       .examples = {{.seq = 1,
                                     .status = JobStatus::dead,
                                     .record = test::record_of("1"),
                                     .state = std::make_shared<const JobState>(state)},
                                    {.seq = 2,
                                     .status = JobStatus::failed,
                                     .record = test::record_of("1"),
                                     .state = std::make_shared<const JobState>()}}};
  for (const auto& [path, word] : {std::pair{kRetry, "retried"}, {kPurge, "purged"}}) {
    const HttpReply reply =
        ask("POST", path, R"({"filter":{"reason":"final"},"limit":5,"dry_run":true})");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, std::string("{\"") + word + R"(":0,"matched":12,"examples":[{"id":")" +
                              encode_job_id(1) +
                              R"(","ended_at":"2026-01-31T12:00:00.000Z","error":"timeout"},)"
                              R"({"id":")" +
                              encode_job_id(2) +
                              R"(","ended_at":null,"error":null}],"dry_run":true,"skipped":[],)"
                              R"("not_found":[],"operation":null})");
  }
  broker.with_lock([](auto& asked) {
    ASSERT_EQ(asked.previews.size(), 2U);
    EXPECT_EQ(asked.previews[0].kind, OperationKind::retry);
    EXPECT_EQ(asked.previews[0].queue, kOrders);
    EXPECT_EQ(asked.previews[0].filter.reason, DeathReason::final);
    EXPECT_EQ(asked.previews[0].limit, 5U);
    EXPECT_EQ(asked.previews[1].kind, OperationKind::purge);
    EXPECT_TRUE(asked.operations.empty());
  });
}

TEST_F(HttpSelection, BeyondSoManyOperationsOneIsToldToComeBack) {
  broker.operation = Error{Errc::too_many_operations, "too many"};
  const HttpReply reply = ask("POST", kPurge, R"({"filter":{}})");
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(code_of(reply), "too_many_operations");
  EXPECT_EQ(reply.headers.at("retry-after"), "1");
}

// --- What is refused.

TEST_F(HttpSelection, OneOfIdsAndFilterIsNeeded) {
  for (const std::string_view path : {kRetry, kPurge}) {
    for (const char* body : {"", "{}", R"({"ids":null})", R"({"filter":null})",
                             R"({"ids":null,"filter":null})", R"({"dry_run":true})"}) {
      EXPECT_EQ(refused("POST", path, body, "ids"), "invalid_request") << body;
    }
    EXPECT_EQ(refused("POST", path, R"({"ids":["7ZK3"],"filter":{}})", "filter"),
              "invalid_request");
    EXPECT_EQ(refused("POST", path, R"({"ids":[],"filter":{}})", "filter"), "invalid_request");
  }
}

TEST_F(HttpSelection, WhatBelongsToAFilterIsRefusedBesideIds) {
  for (const char* field : {"dry_run", "limit", "rate", "wait"}) {
    for (const char* value : {"true", "false", "1", R"("1/s")", R"("5s")"}) {
      const std::string body = std::string(R"({"ids":["7ZK3"],")") + field + "\":" + value + "}";
      EXPECT_EQ(refused("POST", kRetry, body, field), "invalid_field") << body;
    }
  }
}

struct Refused {
  std::string_view body;
  std::string_view code;
  std::string_view named;
};

class RefusedSelection : public HttpSelection, public testing::WithParamInterface<Refused> {};

TEST_P(RefusedSelection, NamesTheField) {
  for (const std::string_view path : {kRetry, kPurge}) {
    EXPECT_EQ(refused("POST", path, GetParam().body, GetParam().named), GetParam().code)
        << GetParam().body;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fields, RefusedSelection,
    testing::Values(
        Refused{R"({"ids":"7ZK3"})", "invalid_request", "ids"},
        Refused{R"({"ids":{}})", "invalid_request", "ids"},
        Refused{R"({"ids":["7ZK3",5]})", "invalid_request", "ids[1]"},
        Refused{R"({"ids":[null]})", "invalid_request", "ids[0]"},
        Refused{R"({"ids":["7ZK3"],"idss":1})", "unknown_field", "idss"},
        Refused{R"({"filter":[]})", "invalid_request", "filter"},
        Refused{R"({"filter":"dead"})", "invalid_request", "filter"},
        Refused{R"({"filter":{},"fliter":{}})", "unknown_field", "fliter"},
        Refused{R"({"filter":{"sttaus":"dead"}})", "unknown_field", "filter.sttaus"},
        Refused{R"({"filter":{"lane":"retry"}})", "unknown_field", "filter.lane"},
        Refused{R"({"filter":{"status":"pending"}})", "invalid_field", "filter.status"},
        Refused{R"({"filter":{"status":"completed"}})", "invalid_field", "filter.status"},
        Refused{R"({"filter":{"fingerprint":"xyz"}})", "invalid_field", "filter.fingerprint"},
        Refused{R"({"filter":{"reason":"boredom"}})", "invalid_field", "filter.reason"},
        Refused{R"({"filter":{"older_than":"soon"}})", "invalid_field", "filter.older_than"},
        Refused{R"({"filter":{"newer_than":"-1s"}})", "invalid_field", "filter.newer_than"},
        Refused{R"({"filter":{"headers":{"a":1}}})", "invalid_request", "filter.headers"},
        Refused{R"({"filter":{},"filter":{}})", "invalid_request", "filter"},
        Refused{R"({"filter":{},"limit":0})", "invalid_field", "limit"},
        Refused{R"({"filter":{},"limit":-1})", "invalid_field", "limit"},
        Refused{R"({"filter":{},"limit":"5"})", "invalid_request", "limit"},
        Refused{R"({"filter":{},"rate":"fast"})", "invalid_field", "rate"},
        Refused{R"({"filter":{},"rate":""})", "invalid_field", "rate"},
        Refused{R"({"filter":{},"rate":"0/s"})", "invalid_field", "rate"},
        Refused{R"({"filter":{},"rate":"-1/s"})", "invalid_field", "rate"},
        Refused{R"({"filter":{},"rate":"0.5/s"})", "invalid_field", "rate"},
        Refused{R"({"filter":{},"rate":100})", "invalid_request", "rate"},
        Refused{R"({"filter":{},"wait":"601s"})", "invalid_field", "wait"},
        Refused{R"({"filter":{},"wait":"later"})", "invalid_field", "wait"},
        Refused{R"({"filter":{},"wait":-1})", "invalid_field", "wait"},
        Refused{R"({"filter":{},"dry_run":"yes"})", "invalid_request", "dry_run"},
        Refused{R"({"filter":{})", "invalid_request", ""},
        Refused{R"(["7ZK3"])", "invalid_request", ""}));

TEST_F(HttpSelection, IdsBeyondTheBatchLimitAreRefused) {
  const auto ids = [](int count) {
    std::string body = R"({"ids":["0000")";
    for (int i = 1; i < count; ++i) body += R"(,"0000")";
    return body + "]}";
  };
  const HttpReply reply = ask("POST", kRetry, ids(1001));
  EXPECT_EQ(reply.status, 413);
  EXPECT_EQ(code_of(reply), "batch_too_many_jobs");
  EXPECT_THAT(reply.body, HasSubstr("1000"));
  EXPECT_EQ(ask("POST", kRetry, ids(1000)).status, 200);
  EXPECT_EQ(broker.with_lock([](auto& asked) { return asked.retries.size(); }), 1U);
}

TEST_F(HttpSelection, OnlyTheDeadCanBePurged) {
  EXPECT_EQ(refused("POST", kPurge, R"({"filter":{"status":"failed"}})", "filter.status"),
            "invalid_field");
  EXPECT_EQ(
      refused("POST", kPurge, R"({"filter":{"status":"failed"},"dry_run":true})", "filter.status"),
      "invalid_field");
  EXPECT_LT(ask("POST", kPurge, R"({"filter":{"status":"dead"}})").status, 300);
  EXPECT_EQ(only_operation().filter.status, JobStatus::dead);
}

TEST_F(HttpSelection, ParametersAndNamesAreChecked) {
  EXPECT_EQ(refused("POST", "/v1/queues/orders/retry?limit=5", R"({"filter":{}})", "limit"),
            "unknown_field");
  EXPECT_EQ(refused("POST", "/v1/queues/.orders/purge", R"({"filter":{}})"), "invalid_name");
  EXPECT_EQ(refused("POST", "/v1/queues/orders/purge?namespace=.x", R"({"filter":{}})"),
            "invalid_name");
  EXPECT_EQ(refused("GET", kRetry, ""), "method_not_allowed");
}

// --- Who asked.

TEST_F(HttpSelection, TheTokensNameGoesWithEveryChange) {
  start_with_tokens();
  broker.operation = some_operation();
  broker.view = JobView{.seq = 8, .status = JobStatus::dead, .record = test::record_of("1")};
  ask_as("wonderland", "POST", kRetry, R"({"ids":["7ZK3"]})");
  ask_as("bare", "POST", kPurge, R"({"ids":["7ZK3"]})");
  ask_as("wonderland", "POST", kPurge, R"({"filter":{}})");
  ask_as("wonderland", "DELETE", "/v1/queues/orders/jobs/7ZK3");
  ask_as("bare", "DELETE", "/v1/queues/orders");
  ask_as("wonderland", "DELETE", "/v1/operations/7");
  broker.with_lock([](auto& asked) {
    EXPECT_EQ(asked.retries.at(0).asked_by, "ops");
    EXPECT_EQ(asked.purges.at(0).asked_by, "default");
    EXPECT_EQ(asked.operations.at(0).asked_by, "ops");
    EXPECT_EQ(asked.asked_by, (std::vector<std::string>{"ops", "default", "ops"}));
  });
}

}  // namespace
}  // namespace reprise::server
