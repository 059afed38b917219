// From a request's text to the broker's command, and from its reply to text, route by route.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "embedded/openapi.h"
#include "support/http_server_fixture.h"

namespace reprise::server {
namespace {

using std::chrono::seconds;
using test::claimed_job;
using test::HttpReply;
using test::stats_of;
using ::testing::HasSubstr;

class HttpApi : public test::HttpServerTest {
 protected:
  void SetUp() override { start(); }

  std::string refused(std::string_view method, std::string_view target,
                      std::string_view body = {}) {
    const HttpReply reply = ask(method, target, body);
    EXPECT_GE(reply.status, 400) << method << " " << target << " " << body;
    return reply.status == 0 ? "" : code_of(reply);
  }
  std::string token() const { return encode_lease_token(claimed_job(5).token); }
  std::string leases(const std::string& fields) const {
    return R"({"leases":[{"token":")" + token() + "\"" + fields + "}]}";
  }
};

TEST_F(HttpApi, PutMakesAQueue) {
  const HttpReply reply = ask("PUT", "/v1/queues/orders?namespace=shop", R"({"lease":"5s"})");
  EXPECT_EQ(reply.status, 201);
  EXPECT_EQ(json_of(reply)["config"]["lease"].string_or(""), "5s");
  const auto put = broker.with_lock([](auto& asked) { return asked.puts.front(); });
  EXPECT_EQ(put.queue, (QueueName{"shop", "orders"}));
  EXPECT_EQ(put.config.lease, seconds(5));
  EXPECT_FALSE(put.only_if_absent);
}

TEST_F(HttpApi, PutTakesAnEmptyBodyAndACondition) {
  broker.created = false;
  EXPECT_EQ(ask("PUT", "/v1/queues/orders", "", "If-None-Match: *\r\n").status, 200);
  EXPECT_TRUE(broker.with_lock([](auto& asked) { return asked.puts.front().only_if_absent; }));
  EXPECT_EQ(code_of(ask("PUT", "/v1/queues/orders", "", "If-None-Match: \"x\"\r\n")),
            "invalid_field");
}

TEST_F(HttpApi, PatchChangesTheFieldsNamed) {
  EXPECT_EQ(ask("PATCH", "/v1/queues/orders", R"({"max_jobs":9})").status, 200);
  const auto config = broker.with_lock([](auto& asked) { return asked.edited.front(); });
  EXPECT_EQ(config.max_jobs, 9U);
  EXPECT_EQ(config.lease, QueueConfig().lease);
  EXPECT_EQ(refused("PATCH", "/v1/queues/orders", R"({"leese":1})"), "unknown_field");
}

TEST_F(HttpApi, QueuesAreShownPausedResumedAndListed) {
  EXPECT_EQ(json_of(ask("GET", "/v1/queues/orders"))["name"].string_or(""), "orders");
  EXPECT_EQ(ask("POST", "/v1/queues/orders/pause").status, 200);
  EXPECT_EQ(ask("POST", "/v1/queues/orders/resume", "{}").status, 200);
  EXPECT_EQ(broker.with_lock([](auto& asked) { return asked.pauses; }), (std::vector{true, false}));
  EXPECT_EQ(ask("GET", "/v1/queues").body, R"({"queues":[],"external":[]})");
  EXPECT_EQ(ask("GET", "/v1/queues?namespace=*").status, 200);
  EXPECT_EQ(broker.with_lock([](auto& asked) { return asked.listed; }),
            (std::vector<std::string>{"default", ""}));
}

TEST_F(HttpApi, DeletingTellsHowManyJobsWentWithIt) {
  QueueStats last = stats_of({"default", "orders"});
  last.by_status = {1, 2, 3, 4, 5, 100};
  broker.stats = last;
  EXPECT_EQ(ask("DELETE", "/v1/queues/orders").body,
            R"({"deleted":true,"name":"orders","namespace":"default","jobs":15})");
}

TEST_F(HttpApi, PushHandsOverJobsAndTellsTheirResults) {
  const HttpReply reply = ask("POST", "/v1/queues/orders/push",
                              R"({"jobs":[{"payload":{"id": 1}},{"priority":-1}],"create":true})");
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, HasSubstr(R"({"index":0,"status":"pushed","id":")"));
  EXPECT_THAT(reply.body,
              HasSubstr(R"({"index":1,"status":"rejected","error":{"code":"invalid_field")"));
  broker.with_lock([](auto& asked) {
    const PushCommand& command = asked.pushes.front();
    EXPECT_TRUE(command.create);
    EXPECT_EQ(command.jobs.front()->payload, R"({"id": 1})");
  });
}

TEST_F(HttpApi, APushThatFailsAsAWholeIsItsError) {
  broker.on_push = [](const PushCommand&) -> Result<PushReply> {
    return Error{Errc::queue_not_found, "no queue 'ordres'; did you mean 'orders'?"};
  };
  const HttpReply reply = ask("POST", "/v1/queues/ordres/push", R"({"jobs":[{}]})");
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(code_of(reply), "queue_not_found");
}

TEST_F(HttpApi, OverloadSaysWhenToTryAgain) {
  broker.on_push = [](const PushCommand&) -> Result<PushReply> {
    return Error{Errc::overloaded, "busy"};
  };
  const HttpReply reply = ask("POST", "/v1/queues/orders/push", R"({"jobs":[{}]})");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.headers.at("retry-after"), "1");
}

TEST_F(HttpApi, ClaimReadsItsFields) {
  broker.claim_reply = ClaimReply{{claimed_job(5)}};
  const HttpReply reply = ask("POST", "/v1/queues/orders/claim",
                              R"({"max":10,"lease":"2m","lane":"retry","worker":"host-1"})");
  EXPECT_THAT(reply.body, HasSubstr(token()));
  broker.with_lock([](auto& asked) {
    const ClaimCommand& command = asked.claims.front();
    EXPECT_EQ(command.max, 10U);
    EXPECT_EQ(command.lease, seconds(120));
    EXPECT_EQ(command.lane, LaneChoice::retry);
    EXPECT_EQ(command.worker, "host-1");
    EXPECT_EQ(command.wait, Duration::zero());
  });
  EXPECT_EQ(ask("POST", "/v1/queues/orders/claim").status, 200);
}

TEST_F(HttpApi, AClaimOutOfRangeIsRefused) {
  for (const char* body : {R"({"max":0})", R"({"max":1001})", R"({"wait":"11m"})",
                           R"({"lease":"99ms"})", R"({"lease":"8d"})", R"({"lane":"middle"})"}) {
    EXPECT_EQ(refused("POST", "/v1/queues/orders/claim", body), "invalid_field") << body;
  }
  EXPECT_EQ(
      refused("POST", "/v1/queues/orders/claim", R"({"worker":")" + std::string(201, 'w') + "\"}"),
      "invalid_field");
  EXPECT_EQ(refused("POST", "/v1/queues/orders/claim", R"({"maxx":1})"), "unknown_field");
}

TEST_F(HttpApi, LeasesAreEnded) {
  EXPECT_EQ(ask("POST", "/v1/ack", leases("")).body,
            R"({"results":[{"index":0,"status":"acked","id":")" + encode_job_id(5) + "\"}]}");
  EXPECT_THAT(
      ask("POST", "/v1/fail", leases(R"(,"error":"timeout","delay":"1m","final":true)")).body,
      HasSubstr(R"("status":"retrying")"));
  EXPECT_THAT(ask("POST", "/v1/release", leases(R"(,"delay":10)")).body,
              HasSubstr(R"("status":"released")"));
  EXPECT_THAT(ask("POST", "/v1/extend", leases(R"(,"lease":"2m")")).body,
              HasSubstr(R"("status":"extended")"));
  broker.with_lock([](auto& asked) {
    EXPECT_EQ(asked.acks.front().token->job.seq, 5U);
    EXPECT_EQ(asked.fails.front().error, "timeout");
    EXPECT_EQ(asked.fails.front().delay, seconds(60));
    EXPECT_TRUE(asked.fails.front().final);
    EXPECT_EQ(asked.releases.front().delay, seconds(10));
    EXPECT_EQ(asked.extensions.front().lease, seconds(120));
  });
}

TEST_F(HttpApi, AFailureTellsItsTypeAndWhetherTheWorkerWasLost) {
  const std::string longest(200, 't');
  for (const std::string& fields :
       {std::string(), std::string(R"(,"error_type":"Net","outcome":"worker_lost")"),
        R"(,"error_type":")" + longest + R"(","outcome":"failed")",
        std::string(R"(,"error_type":null,"outcome":null)")}) {
    EXPECT_EQ(ask("POST", "/v1/fail", leases(fields)).status, 200) << fields;
  }
  broker.with_lock([&](auto& asked) {
    EXPECT_EQ(asked.fails[0].error_type, "");
    EXPECT_EQ(asked.fails[0].outcome, AttemptOutcome::failed);
    EXPECT_EQ(asked.fails[1].error_type, "Net");
    EXPECT_EQ(asked.fails[1].outcome, AttemptOutcome::worker_lost);
    EXPECT_EQ(asked.fails[2].error_type, longest);
    EXPECT_EQ(asked.fails[2].outcome, AttemptOutcome::failed);
    EXPECT_EQ(asked.fails[3].error_type, "");
  });
  for (const std::string& fields :
       {R"(,"error_type":")" + longest + "t\"", std::string(R"(,"outcome":"lease_expired")"),
        std::string(R"(,"outcome":"completed")"), std::string(R"(,"outcome":"")")}) {
    EXPECT_EQ(refused("POST", "/v1/fail", leases(fields)), "invalid_field") << fields;
  }
  EXPECT_EQ(refused("POST", "/v1/fail", leases(R"(,"error_type":7)")), "invalid_request");
  EXPECT_EQ(refused("POST", "/v1/ack", leases(R"(,"error_type":"Net")")), "unknown_field");
}

TEST_F(HttpApi, ABadTokenIsRejectedInItsPlace) {
  const HttpReply alone = ask("POST", "/v1/ack", R"({"leases":[{"token":"junk"}]})");
  EXPECT_EQ(alone.status, 400);
  EXPECT_THAT(alone.body, HasSubstr(R"("code":"invalid_lease_token")"));
  const HttpReply mixed =
      ask("POST", "/v1/ack", R"({"leases":[{"token":"junk"},{"token":")" + token() + "\"}]}");
  EXPECT_EQ(mixed.status, 200);
  EXPECT_THAT(mixed.body, HasSubstr(R"({"index":0,"status":"rejected")"));
  EXPECT_THAT(mixed.body, HasSubstr(R"({"index":1,"status":"acked")"));
}

TEST_F(HttpApi, AnErrorTextBeyondTheLimitIsRejected) {
  const HttpReply reply =
      ask("POST", "/v1/fail", leases(",\"error\":\"" + std::string(16385, 'x') + "\""));
  EXPECT_EQ(reply.status, 413);
  EXPECT_THAT(reply.body, HasSubstr("error_too_long"));
}

TEST_F(HttpApi, LeasesThatAreMalformedAreRefusedAsAWhole) {
  for (const char* body : {"{}", R"({"leases":{}})", R"({"leases":["x"]})", R"({"leases":[{}]})",
                           R"({"leases":[{"token":5}]})", R"({"leases":[{"token":null}]})"}) {
    EXPECT_EQ(refused("POST", "/v1/ack", body), "invalid_request") << body;
  }
  EXPECT_EQ(refused("POST", "/v1/ack", leases(R"(,"error":"x")")), "unknown_field");
  EXPECT_EQ(refused("POST", "/v1/extend", leases(R"(,"lease":"8d")")), "invalid_field");
  EXPECT_EQ(refused("POST", "/v1/ack?namespace=a", leases("")), "unknown_field");
  std::string many = R"({"leases":[{"token":"x"})";
  for (int i = 0; i < 1000; ++i) many += R"(,{"token":"x"})";
  EXPECT_EQ(refused("POST", "/v1/ack", many + "]}"), "batch_too_many_jobs");
}

TEST_F(HttpApi, BrowsingReadsItsFilters) {
  broker.page =
      BrowsePage{.jobs = {{.seq = 1, .status = JobStatus::pending, .record = test::record_of("1")}},
                 .cursor = "next"};
  const HttpReply reply =
      ask("GET",
          "/v1/queues/orders/jobs?status=dead&lane=retry&error=time%20out&older_than=7d"
          "&header.tenant=a&header.x=&limit=5&cursor=abc&namespace=shop");
  EXPECT_THAT(reply.body, HasSubstr(R"("cursor":"next"})"));
  broker.with_lock([](auto& asked) {
    const BrowseQuery& query = asked.browses.front();
    EXPECT_EQ(query.queue, (QueueName{"shop", "orders"}));
    EXPECT_EQ(query.filter.status, JobStatus::dead);
    EXPECT_EQ(query.filter.lane, Lane::retry);
    EXPECT_EQ(query.filter.error, "time out");
    EXPECT_EQ(query.filter.older_than, std::chrono::hours(24 * 7));
    EXPECT_EQ(query.filter.headers.size(), 2U);
    EXPECT_EQ(query.limit, 5U);
    EXPECT_EQ(query.cursor, "abc");
  });
  for (const char* query :
       {"status=zombie", "status=", "lane=any", "limit=0", "limit=1001", "older_than=soon"}) {
    EXPECT_EQ(refused("GET", std::string("/v1/queues/orders/jobs?") + query), "invalid_field")
        << query;
  }
  EXPECT_EQ(refused("GET", "/v1/queues/orders/jobs?statuss=dead"), "unknown_field");
}

TEST_F(HttpApi, BrowsingReadsHowJobsFailed) {
  EXPECT_EQ(ask("GET",
                "/v1/queues/orders/jobs?status=dead&error_type=Net&reason=worker_lost"
                "&fingerprint=00000000DEADbeef&newer_than=1h&order=newest")
                .status,
            200);
  EXPECT_EQ(ask("GET", "/v1/queues/orders/jobs?status=completed&order=newest").status, 200);
  EXPECT_EQ(ask("GET", "/v1/queues/orders/jobs?order=push").status, 200);
  broker.with_lock([](auto& asked) {
    const BrowseQuery& query = asked.browses[0];
    EXPECT_EQ(query.filter.error_type, "Net");
    EXPECT_EQ(query.filter.reason, DeathReason::worker_lost);
    EXPECT_EQ(query.filter.fingerprint, 0xDEADBEEFU);
    EXPECT_EQ(query.filter.newer_than, std::chrono::hours(1));
    EXPECT_EQ(query.order, BrowseOrder::newest);
    EXPECT_EQ(asked.browses[1].filter.status, JobStatus::completed);
    EXPECT_EQ(asked.browses[2].order, BrowseOrder::push);
  });
  for (const char* query :
       {"fingerprint=xyz", "fingerprint=", "fingerprint=00000000deadbeef0", "reason=boredom",
        "reason=none", "reason=", "newer_than=soon", "order=oldest", "order=", "order=newest",
        "order=newest&status=failed", "order=newest&status=pending"}) {
    EXPECT_EQ(refused("GET", std::string("/v1/queues/orders/jobs?") + query), "invalid_field")
        << query;
  }
}

TEST_F(HttpApi, JobsAreShownAndDroppedById) {
  EXPECT_EQ(refused("GET", "/v1/queues/orders/jobs/7ZK3"), "job_not_found");
  broker.view = JobView{.seq = 8, .status = JobStatus::pending, .record = test::record_of("1")};
  EXPECT_EQ(json_of(ask("GET", "/v1/queues/orders/jobs/7zk3"))["id"].string_or(""),
            encode_job_id(8));
  EXPECT_EQ(ask("DELETE", "/v1/queues/orders/jobs/7ZK3M9QAX2B4C").body,
            R"({"dropped":true,"id":")" + encode_job_id(8) + R"(","status":"pending"})");
  EXPECT_EQ(broker.with_lock([](auto& asked) { return asked.ids; }),
            (std::vector<std::string>{"7ZK3", "7zk3", "7ZK3M9QAX2B4C"}));
  EXPECT_EQ(refused("GET", "/v1/queues/orders/jobs/7ZK"), "invalid_field");
}

TEST_F(HttpApi, AnAmbiguousPrefixListsItsMatches) {
  broker.view = Error{Errc::ambiguous_id, "two jobs", {"A", "B"}};
  const HttpReply reply = ask("GET", "/v1/queues/orders/jobs/7ZK3");
  EXPECT_EQ(reply.status, 409);
  EXPECT_THAT(reply.body, HasSubstr(R"("matches":["A","B"]})"));
}

TEST_F(HttpApi, NamesAreChecked) {
  for (const char* path : {"/v1/queues/.hidden", "/v1/queues/a%20b", "/v1/queues/a%2Fb",
                           "/v1/queues/%00", "/v1/queues/%FF", "/v1/queues/x?namespace=",
                           "/v1/queues/x?namespace=_x", "/v1/queues?namespace=.x"}) {
    EXPECT_EQ(refused("GET", path), "invalid_name") << path;
  }
  EXPECT_EQ(refused("GET", "/v1/queues/x?nmespace=a"), "unknown_field");
  EXPECT_EQ(refused("GET", "/v1/queues/x?namespace=%zz"), "invalid_request");
}

TEST_F(HttpApi, RoutesWithoutABodyTakeNoFields) {
  EXPECT_EQ(refused("POST", "/v1/queues/orders/pause", R"({"for":"1h"})"), "unknown_field");
  EXPECT_EQ(refused("GET", "/healthz", "x"), "invalid_request");
  EXPECT_EQ(refused("GET", "/v1/status?verbose=1"), "unknown_field");
}

TEST_F(HttpApi, CompressedBodiesAreRefused) {
  EXPECT_EQ(code_of(ask("POST", "/v1/ack", "{}", "Content-Encoding: gzip\r\n")), "invalid_request");
}

TEST_F(HttpApi, StatusAddsUpAllQueues) {
  broker.metrics_now.durability = "sync";
  broker.metrics_now.storage_kind = "memory";
  broker.queues = {stats_of({"a", "x"}), stats_of({"b", "y"})};
  for (QueueStats& stats : broker.queues) {
    stats.by_status = {1, 2, 3, 4, 5, 6};
    stats.waiting_claims = 1;
  }
  const Json status = json_of(ask("GET", "/v1/status"));
  EXPECT_EQ(status["queues"].integer(), 2);
  EXPECT_EQ(status["jobs"]["pending"].integer(), 4);
  EXPECT_EQ(status["jobs"].find("completed"), nullptr);
  EXPECT_EQ(status["waiting_claims"].integer(), 2);
  EXPECT_EQ(status["durability"].string_or(""), "sync");
  EXPECT_EQ(status["storage"].string_or(""), "memory");
  EXPECT_EQ(status["connections"].integer(), 1);
  EXPECT_LT(*status["uptime"].number(), 60.0);
  EXPECT_EQ(status["operations"].dump(), "[]");
  EXPECT_EQ(status["webhooks"].dump(), R"({"pending":0})");
}

TEST_F(HttpApi, StatusShowsTheOperationsThatRun) {
  broker.operation = Operation{.id = 7, .name = {"default", "orders"}};
  const Json status = json_of(ask("GET", "/v1/status"));
  ASSERT_EQ(status["operations"].array()->size(), 1U);
  EXPECT_EQ(status["operations"].array()->front()["id"].integer(), 7);
  broker.operation->state = OperationState::done;
  EXPECT_EQ(json_of(ask("GET", "/v1/status"))["operations"].dump(), "[]");
}

TEST_F(HttpApi, WhoeverSendsWebhooksIsAskedHowManyAreLeft) {
  start({.webhook_stats = [] { return WebhookStats{.delivered = 3, .pending = 2}; }});
  EXPECT_EQ(json_of(ask("GET", "/v1/status"))["webhooks"].dump(), R"({"pending":2})");
  EXPECT_THAT(ask("GET", "/metrics").body,
              HasSubstr("reprise_webhooks_total{result=\"delivered\"} 3\n"));
}

TEST_F(HttpApi, WhoeverSpeaksBeanstalkIsAskedWhatCame) {
  start({.beanstalk_stats = [] {
    BeanstalkStats stats;
    stats.connections = 4;
    stats.commands[static_cast<std::size_t>(BeanstalkVerb::remove)] = 9;
    return stats;
  }});
  const std::string metrics = ask("GET", "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("\nreprise_beanstalk_connections 4\n"));
  EXPECT_THAT(metrics, HasSubstr("reprise_beanstalk_commands_total{command=\"delete\"} 9\n"));
  EXPECT_THAT(metrics, HasSubstr("reprise_beanstalk_commands_total{command=\"put\"} 0\n"));
}

TEST_F(HttpApi, ABackupGoesToAnAbsolutePath) {
  broker.backup_reply =
      BackupReply{.directory = "/copy", .bytes = 7, .took = std::chrono::milliseconds(250)};
  EXPECT_EQ(ask("POST", "/v1/backup", R"({"directory":"/copy"})").body,
            R"({"directory":"/copy","bytes":7,"seconds":0.25})");
  EXPECT_EQ(broker.with_lock([](auto& asked) { return asked.backups.front().directory; }), "/copy");
  EXPECT_EQ(refused("POST", "/v1/backup", R"({"directory":"copy"})"), "invalid_field");
  EXPECT_EQ(refused("POST", "/v1/backup", R"({"directory":"/a\nb"})"), "invalid_field");
  EXPECT_EQ(refused("POST", "/v1/backup", R"({"dir":"/copy"})"), "unknown_field");
  EXPECT_EQ(refused("POST", "/v1/backup"), "invalid_request");
  broker.backup_reply = Error{Errc::backup_running, "another"};
  EXPECT_EQ(refused("POST", "/v1/backup", R"({"directory":"/copy"})"), "backup_running");
}

TEST_F(HttpApi, ReadinessFollowsDiskAndShutdown) {
  EXPECT_EQ(ask("GET", "/readyz").body, R"({"status":"ready"})");
  broker.disk_is_low = true;
  EXPECT_EQ(ask("GET", "/readyz").status, 507);
  broker.disk_is_low = false;
  server->begin_shutdown();
  EXPECT_EQ(code_of(ask("GET", "/readyz")), "shutting_down");
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
}

TEST_F(HttpApi, TheDescriptionsAreServed) {
  EXPECT_EQ(ask("GET", "/openapi.json").body, embedded::openapi);
  const HttpReply metrics = ask("GET", "/metrics");
  EXPECT_EQ(metrics.headers.at("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(metrics.body, HasSubstr("reprise_connections "));
  EXPECT_THAT(ask("GET", "/").body, HasSubstr("/openapi.json"));
}

}  // namespace
}  // namespace reprise::server
