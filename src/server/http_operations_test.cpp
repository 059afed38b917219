// What is told of dead jobs over HTTP: their errors, the operations on them, and the audit.
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

const QueueName kOrders{"default", "orders"};
const Timestamp kNoon =
    std::chrono::sys_days(std::chrono::year(2026) / 1 / 31) + std::chrono::hours(12);

Operation some_operation() {
  return {.id = 7,
          .kind = OperationKind::retry,
          .name = kOrders,
          .filter = {.error = "timeout"},
          .rate = Rate{.count = 100, .per = 1s},
          .total = 5000,
          .asked_by = "ops",
          .started_at = kNoon,
          .done = 1200};
}

constexpr std::string_view kOperationText =
    R"({"id":7,"kind":"retry","namespace":"default","queue":"orders","state":"running",)"
    R"("filter":{"error":"timeout"},"limit":null,"rate":"100/s","total":5000,"done":1200,)"
    R"("skipped":0,"by":"ops","started_at":"2026-01-31T12:00:00.000Z","ended_at":null,)"
    R"("error":null})";

class HttpOperations : public test::HttpServerTest {
 protected:
  void SetUp() override { start(); }

  // The code of a refusal that never came to the broker, whose message has `named` in it.
  std::string refused(std::string_view method, std::string_view target, std::string_view body,
                      std::string_view named = {}) {
    const HttpReply reply = ask(method, target, body);
    EXPECT_GE(reply.status, 400) << target << " " << body;
    const Json json = json_of(reply);
    EXPECT_THAT(json["error"]["message"].string_or(""), HasSubstr(std::string(named))) << target;
    broker.with_lock([&](auto& asked) {
      EXPECT_EQ(asked.groupings.size() + asked.operation_ids.size() + asked.audits.size(), 0U)
          << target;
    });
    return json["error"]["code"].string_or("");
  }
};

// --- Errors of a queue.

TEST_F(HttpOperations, ErrorsAreGrouped) {
  broker.groups = ErrorGroups{
      .groups =
          {{.fingerprint = 0xDEADBEEF,
            .dead = 800,
            .failed = 12,
            .first_seen = kNoon,
            .last_seen = kNoon + 1s,
            .example = 1,
            .error = "timeout after <n> ms",
            .error_type = "Net"},
           {.fingerprint = 1, .dead = 1, .first_seen = kNoon, .last_seen = kNoon, .example = 2}},
      .other = 3};
  const HttpReply reply = ask("GET", "/v1/queues/orders/errors?namespace=shop");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body,
            R"({"groups":[{"fingerprint":"00000000deadbeef","count":812,"dead":800,"failed":12,)"
            R"("error":"timeout after <n> ms","error_type":"Net",)"
            R"("first_seen":"2026-01-31T12:00:00.000Z","last_seen":"2026-01-31T12:00:01.000Z",)"
            R"("example":")" +
                encode_job_id(1) +
                R"("},{"fingerprint":"0000000000000001","count":1,"dead":1,"failed":0,"error":"",)"
                R"("error_type":null,"first_seen":"2026-01-31T12:00:00.000Z",)"
                R"("last_seen":"2026-01-31T12:00:00.000Z","example":")" +
                encode_job_id(2) + R"("}],"other":3})");
  broker.with_lock([](auto& asked) {
    EXPECT_EQ(asked.groupings.at(0).queue, (QueueName{"shop", "orders"}));
    EXPECT_EQ(asked.groupings.at(0).status, std::nullopt);
    EXPECT_EQ(asked.groupings.at(0).limit, 50U);
  });
}

TEST_F(HttpOperations, GroupsTakeAStatusAndALimit) {
  EXPECT_EQ(ask("GET", "/v1/queues/orders/errors?status=failed&limit=1000").body,
            R"({"groups":[],"other":0})");
  EXPECT_EQ(ask("GET", "/v1/queues/orders/errors?status=dead&limit=1").status, 200);
  broker.with_lock([](auto& asked) {
    EXPECT_EQ(asked.groupings.at(0).status, JobStatus::failed);
    EXPECT_EQ(asked.groupings.at(0).limit, 1000U);
    EXPECT_EQ(asked.groupings.at(1).status, JobStatus::dead);
    EXPECT_EQ(asked.groupings.at(1).limit, 1U);
  });
  broker.groups = Error{Errc::queue_not_found, "no queue 'orders'"};
  EXPECT_EQ(ask("GET", "/v1/queues/orders/errors").status, 404);
}

TEST_F(HttpOperations, GroupsRefuseWhatTheyDoNotKnow) {
  for (const char* query : {"status=pending", "status=completed", "status=", "status=x", "limit=0",
                            "limit=1001", "limit=many"}) {
    EXPECT_EQ(refused("GET", std::string("/v1/queues/orders/errors?") + query, ""), "invalid_field")
        << query;
  }
  EXPECT_EQ(refused("GET", "/v1/queues/orders/errors?cursor=x", "", "cursor"), "unknown_field");
  EXPECT_EQ(refused("GET", "/v1/queues/.x/errors", ""), "invalid_name");
}

// --- Operations.

TEST_F(HttpOperations, OperationsAreListedByState) {
  EXPECT_EQ(ask("GET", "/v1/operations").body, R"({"operations":[]})");
  broker.operation = some_operation();
  const std::string listed = R"({"operations":[)" + std::string(kOperationText) + "]}";
  EXPECT_EQ(ask("GET", "/v1/operations").body, listed);
  EXPECT_EQ(ask("GET", "/v1/operations?state=running").body, listed);
  for (const char* state : {"done", "cancelled", "failed"}) {
    EXPECT_EQ(ask("GET", std::string("/v1/operations?state=") + state).body,
              R"({"operations":[]})");
  }
  for (const char* state : {"ended", "", "Running"}) {
    EXPECT_EQ(refused("GET", std::string("/v1/operations?state=") + state, "", "state"),
              "invalid_field");
  }
  EXPECT_EQ(refused("GET", "/v1/operations?limit=1", "", "limit"), "unknown_field");
}

TEST_F(HttpOperations, AnOperationIsShownAndCancelled) {
  broker.operation = some_operation();
  EXPECT_EQ(ask("GET", "/v1/operations/7").body, kOperationText);
  EXPECT_EQ(ask("DELETE", "/v1/operations/7").body, kOperationText);
  EXPECT_EQ(broker.with_lock([](auto& asked) { return asked.operation_ids; }),
            (std::vector<OperationId>{7, 7}));
  broker.operation = Error{Errc::operation_not_found, "no operation 8"};
  EXPECT_EQ(ask("GET", "/v1/operations/8").status, 404);
  EXPECT_EQ(code_of(ask("DELETE", "/v1/operations/8")), "operation_not_found");
  broker.operation = Error{Errc::wrong_status, "operation 7 is done"};
  EXPECT_EQ(ask("DELETE", "/v1/operations/7").status, 409);
}

TEST_F(HttpOperations, WhatIsNoNumberIsNoOperation) {
  for (const std::string_view method : {"GET", "DELETE"}) {
    for (const char* id :
         {"x", "7x", "-1", "+7", "1.5", "%207", "18446744073709551616", "7ZK3M9QAX2B4C"}) {
      const std::string path = std::string("/v1/operations/") + id;
      EXPECT_EQ(refused(method, path, "", "no operation"), "operation_not_found") << path;
    }
    EXPECT_EQ(refused(method, "/v1/operations/7?force=1", "", "force"), "unknown_field");
    EXPECT_EQ(refused(method, "/v1/operations/7", R"({"force":true})"), "unknown_field");
  }
  EXPECT_EQ(refused("POST", "/v1/operations/7", ""), "method_not_allowed");
}

// --- The audit.

TEST_F(HttpOperations, TheAuditIsTold) {
  broker.audit_page = AuditPage{.records = {{.number = 12,
                                             .at = kNoon,
                                             .action = AuditAction::purge,
                                             .queue = kOrders,
                                             .asked_by = "ops",
                                             .filter = JobFilter{.older_than = 168h},
                                             .done = 40,
                                             .skipped = 1,
                                             .operation = 7},
                                            {.number = 11,
                                             .at = kNoon,
                                             .action = AuditAction::delete_queue,
                                             .queue = kOrders,
                                             .ids = {"7ZK3M9QAX2B4C"},
                                             .not_found = 2}},
                                .before = 11};
  const HttpReply reply = ask("GET", "/v1/audit");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body,
            R"({"records":[{"number":12,"at":"2026-01-31T12:00:00.000Z","action":"purge",)"
            R"("namespace":"default","queue":"orders","by":"ops","ids":[],)"
            R"("filter":{"older_than":"7d"},"done":40,"skipped":1,"not_found":0,"operation":7},)"
            R"({"number":11,"at":"2026-01-31T12:00:00.000Z","action":"delete",)"
            R"("namespace":"default","queue":"orders","by":null,"ids":["7ZK3M9QAX2B4C"],)"
            R"("filter":null,"done":0,"skipped":0,"not_found":2,"operation":null}],"before":11})");
  broker.audit_page = AuditPage{};
  EXPECT_EQ(ask("GET", "/v1/audit").body, R"({"records":[],"before":null})");
}

TEST_F(HttpOperations, TheAuditTakesItsParameters) {
  EXPECT_EQ(ask("GET", "/v1/audit").status, 200);
  EXPECT_EQ(
      ask("GET", "/v1/audit?namespace=shop&queue=orders&action=delete&limit=1000&before=12").status,
      200);
  broker.with_lock([](auto& asked) {
    const AuditQuery& all = asked.audits.at(0);
    EXPECT_EQ(all.ns, "");
    EXPECT_EQ(all.queue, "");
    EXPECT_EQ(all.action, std::nullopt);
    EXPECT_EQ(all.limit, 50U);
    EXPECT_EQ(all.before, std::nullopt);
    const AuditQuery& some = asked.audits.at(1);
    EXPECT_EQ(some.ns, "shop");
    EXPECT_EQ(some.queue, "orders");
    EXPECT_EQ(some.action, AuditAction::delete_queue);
    EXPECT_EQ(some.limit, 1000U);
    EXPECT_EQ(some.before, 12U);
  });
  for (const auto& [name, action] : {std::pair{"retry", AuditAction::retry},
                                     {"purge", AuditAction::purge},
                                     {"drop", AuditAction::drop},
                                     {"cancel", AuditAction::cancel}}) {
    EXPECT_EQ(ask("GET", std::string("/v1/audit?action=") + name).status, 200);
    EXPECT_EQ(broker.with_lock([](auto& asked) { return asked.audits.back().action; }), action);
  }
}

TEST_F(HttpOperations, TheAuditRefusesWhatItDoesNotKnow) {
  for (const char* query : {"action=push", "action=", "limit=0", "limit=1001", "before=0",
                            "before=-1", "before=last"}) {
    EXPECT_EQ(refused("GET", std::string("/v1/audit?") + query, ""), "invalid_field") << query;
  }
  for (const char* query : {"namespace=.x", "queue=.x", "queue=a%20b", "namespace=*"}) {
    EXPECT_EQ(refused("GET", std::string("/v1/audit?") + query, ""), "invalid_name") << query;
  }
  EXPECT_EQ(refused("GET", "/v1/audit?by=ops", "", "by"), "unknown_field");
  EXPECT_EQ(refused("GET", "/v1/audit", R"({"limit":1})"), "unknown_field");
  EXPECT_EQ(refused("DELETE", "/v1/audit", ""), "method_not_allowed");
}

}  // namespace
}  // namespace reprise::server
