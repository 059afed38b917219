#include "server/job_json.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "support/fake_broker.h"

namespace reprise::server {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Timestamp kNoon =
    std::chrono::sys_days(std::chrono::year(2026) / 1 / 31) + std::chrono::hours(12);
const QueueName kOrders{"default", "orders"};

JobView full_job(JobStatus status) {
  JobRecord record;
  record.pushed_at = kNoon;
  record.priority = 10;
  record.key = "k1";
  record.headers = {{"tenant", "a"}};
  record.payload = R"({"id": 1})";
  JobState state;
  state.status = status;
  state.attempts = 1;
  state.failures = 1;
  state.generation = 2;
  state.due = kNoon + seconds(30);
  state.lease_deadline = kNoon + seconds(60);
  state.worker = "host-2";
  state.first_attempt_at = kNoon + seconds(1);
  state.last_error = "timeout";
  state.last_error_type = "Net";
  state.history = {{.number = 1,
                    .generation = 2,
                    .started_at = kNoon + seconds(1),
                    .ended_at = kNoon + seconds(2),
                    .outcome = AttemptOutcome::failed,
                    .worker = "host-1",
                    .error = "timeout",
                    .error_type = "Net"}};
  state.death_reason = DeathReason::max_attempts;
  state.ended_at = kNoon + seconds(3);
  return {.seq = 1,
          .status = status,
          .record = std::make_shared<const JobRecord>(record),
          .state = std::make_shared<const JobState>(state)};
}

std::string job_text(const JobView& view, JobDetail detail) {
  JsonWriter out;
  write_job(out, kOrders, view, detail);
  return out.take();
}

std::string id_of(Seq seq) { return encode_job_id(seq); }

TEST(WriteJob, AFailedJobHasTheDocumentedFields) {
  EXPECT_EQ(
      job_text(full_job(JobStatus::failed), JobDetail::full),
      R"({"id":")" + id_of(1) +
          R"(","queue":"orders","namespace":"default","status":"failed","lane":"retry",)"
          R"("payload":{"id": 1},"headers":{"tenant":"a"},"priority":10,"key":"k1",)"
          R"("attempts":1,"failures":1,"generation":2,"pushed_at":"2026-01-31T12:00:00.000Z",)"
          R"("due_at":"2026-01-31T12:00:30.000Z","expires_at":null,"lease_expires_at":null,)"
          R"("ended_at":null,"worker":null,"last_error":"timeout","last_error_type":"Net",)"
          R"("reason":null,"origin_queue":null,"history":[{"attempt":1,"generation":2,)"
          R"("at":"2026-01-31T12:00:01.000Z","ended_at":"2026-01-31T12:00:02.000Z",)"
          R"("outcome":"failed","worker":"host-1","error":"timeout","error_type":"Net"}]})");
}

TEST(WriteJob, ListsLeaveHistoryAndEnvelopeOut) {
  const std::string text = job_text(full_job(JobStatus::dead), JobDetail::brief);
  EXPECT_EQ(text.find("history"), std::string::npos);
  EXPECT_EQ(text.find("dead_letter"), std::string::npos);
}

TEST(WriteJob, AnActiveJobShowsItsLeaseButNoRetryTime) {
  const std::string text = job_text(full_job(JobStatus::active), JobDetail::brief);
  EXPECT_NE(text.find(R"("due_at":null)"), std::string::npos);
  EXPECT_NE(
      text.find(
          R"("lease_expires_at":"2026-01-31T12:01:00.000Z","ended_at":null,"worker":"host-2")"),
      std::string::npos);
}

TEST(WriteJob, ADeadJobCarriesItsEnvelope) {
  const std::string text = job_text(full_job(JobStatus::dead), JobDetail::full);
  const std::string envelope =
      R"("dead_letter":{"event":{"id":")" + id_of(1) +
      R"(","queue":"orders","namespace":"default","payload":{"id": 1},"headers":{"tenant":"a"},)"
      R"("priority":10,"key":"k1","pushed_at":"2026-01-31T12:00:00.000Z"},"meta":{"attempts":1,)"
      R"("generation":2,"lastError":"timeout","lastErrorType":"Net",)"
      R"("firstAttemptAt":"2026-01-31T12:00:01.000Z",)"
      R"("deadLetteredAt":"2026-01-31T12:00:03.000Z","reason":"max_attempts","decidedBy":"policy",)"
      R"("history":[{"at":"2026-01-31T12:00:01.000Z","worker":"host-1","error":"timeout",)"
      R"("errorType":"Net","outcome":"failed"}]}})";
  EXPECT_NE(text.find(envelope), std::string::npos) << text;
}

TEST(WriteJob, AFreshJobHasNoStateAndNullsForIt) {
  const JobView view{.seq = 2, .status = JobStatus::pending, .record = test::record_of("7")};
  const std::string text = job_text(view, JobDetail::full);
  EXPECT_NE(text.find(R"("lane":"fresh")"), std::string::npos);
  EXPECT_NE(text.find(R"("key":null,"attempts":0,"failures":0,"generation":1)"), std::string::npos);
  EXPECT_NE(text.find(R"("last_error":null,"last_error_type":null,"reason":null,)"
                      R"("origin_queue":null,"history":[])"),
            std::string::npos);
}

TEST(WriteJob, AnEndedJobTellsWhen) {
  const std::string ended = R"("ended_at":"2026-01-31T12:00:03.000Z","worker":null)";
  const std::string dead = job_text(full_job(JobStatus::dead), JobDetail::brief);
  EXPECT_NE(dead.find(ended), std::string::npos) << dead;
  EXPECT_NE(dead.find(R"("reason":"max_attempts")"), std::string::npos);
  const std::string completed = job_text(full_job(JobStatus::completed), JobDetail::full);
  EXPECT_NE(completed.find(ended), std::string::npos) << completed;
  EXPECT_NE(completed.find(R"("reason":null)"), std::string::npos);
  EXPECT_EQ(completed.find("dead_letter"), std::string::npos);
}

TEST(WriteJob, AJobOfADeadLetterQueueTellsWhereItDied) {
  JobView view = full_job(JobStatus::pending);
  JobState state = *view.state;
  state.origin_queue = "orders";
  view.state = std::make_shared<const JobState>(state);
  EXPECT_NE(job_text(view, JobDetail::brief).find(R"("reason":null,"origin_queue":"orders"})"),
            std::string::npos);
}

TEST(ClaimResponse, HoldsTheJobsAndRemembersTheirLeases) {
  ClaimedJob job = test::claimed_job(3, R"({"id": 1})");
  job.lease_deadline = kNoon;
  const Response response = claim_response({{job}});
  EXPECT_EQ(response.http_status, 200);
  EXPECT_EQ(response.leases, std::vector{job.token});
  EXPECT_EQ(response.body,
            R"({"jobs":[{"id":")" + id_of(3) + R"(","token":")" + encode_lease_token(job.token) +
                R"(","payload":{"id": 1},"headers":{},"priority":1000,"attempts":1,"failures":0,)"
                R"("pushed_at":"1970-01-01T00:00:00.000Z",)"
                R"("lease_expires_at":"2026-01-31T12:00:00.000Z"}]})");
}

TEST(ClaimResponse, BytesComeAsBase64AndPastErrorsAreTold) {
  JobRecord record;
  record.payload_kind = PayloadKind::bytes;
  record.payload = std::string("\0\x01", 2);
  ClaimedJob job = test::claimed_job(3);
  job.record = std::make_shared<const JobRecord>(record);
  job.failures = 1;
  job.last_error = "timeout";
  const std::string body = claim_response({{job}}).body;
  EXPECT_NE(body.find(R"("payload_base64":"AAE=")"), std::string::npos);
  EXPECT_EQ(body.find(R"("payload":)"), std::string::npos);
  EXPECT_NE(body.find(R"("last_error":"timeout")"), std::string::npos);
}

TEST(ItemsResponse, TellsEachItemsFate) {
  PushReply reply;
  reply.results.emplace_back(PushedJob{.seq = 1});
  reply.results.emplace_back(PushedJob{.seq = 2, .duplicate = true});
  reply.results.emplace_back(Error{Errc::key_too_long, "too long"});
  const Response response = push_response(reply);
  EXPECT_EQ(response.http_status, 200);
  EXPECT_EQ(response.body,
            R"({"results":[{"index":0,"status":"pushed","id":")" + id_of(1) +
                R"("},{"index":1,"status":"duplicate","id":")" + id_of(2) +
                R"("},{"index":2,"status":"rejected","error":{"code":"key_too_long",)"
                R"("message":"too long"}}]})");
}

TEST(ItemsResponse, HasTheStatusOfTheFirstErrorWhenAllFailed) {
  PushReply reply;
  reply.results.emplace_back(Error{Errc::queue_full, "full"});
  reply.results.emplace_back(Error{Errc::key_too_long, "too long"});
  const Response response = push_response(reply);
  EXPECT_EQ(response.http_status, 429);
  EXPECT_EQ(response.extra_headers, "Retry-After: 1\r\n");
  EXPECT_EQ(push_response({}).http_status, 200);
}

TEST(ItemsResponse, FailTellsWhatBecomesOfTheJob) {
  ItemResults<Failed> results;
  results.emplace_back(Failed{{1, 1}, JobStatus::failed, kNoon, DeathReason::none});
  results.emplace_back(Failed{{1, 2}, JobStatus::dead, {}, DeathReason::final});
  EXPECT_EQ(fail_response(results).body,
            R"({"results":[{"index":0,"status":"retrying","id":")" + id_of(1) +
                R"(","retry_at":"2026-01-31T12:00:00.000Z"},{"index":1,"status":"dead","id":")" +
                id_of(2) + R"(","reason":"final"}]})");
}

TEST(WriteQueue, HasTheDocumentedFields) {
  QueueStats stats = test::stats_of(kOrders);
  stats.queue.created_at = kNoon;
  stats.queue.config.key_window = std::chrono::hours(5);
  stats.by_status = {1, 2, 3, 4, 5, 6};
  stats.oldest_pending_age = milliseconds(1250);
  stats.push_rate = 0.25;
  stats.totals.pushed = 20;
  stats.totals.completed_now = 7;
  stats.totals.moved_in = 1;
  stats.totals.moved_out = 2;
  stats.totals.claimed_retry = 3;
  stats.totals.retried = 4;
  stats.totals.purged = 5;
  stats.totals.dead_expired = 6;
  stats.totals.dead_evicted = 7;
  stats.lanes = {.fresh = 1, .retry = 2, .retry_in_flight = 3, .retry_credit = 0.4};
  stats.lanes.retries_by_failures.front() = 5;
  stats.lanes.retries_by_failures.back() = 6;
  JsonWriter out;
  write_queue(out, stats);
  EXPECT_EQ(out.take(),
            R"({"name":"orders","namespace":"default","paused":false,)"
            R"("created_at":"2026-01-31T12:00:00.000Z","config":{"lease":"30s","ttl":null,)"
            R"("retry":{"attempts":0,"cooldown":"0s"},)"
            R"("fetch":{"retry_share":0.2,"retry_in_flight":null},"max_jobs":null,)"
            R"("max_bytes":null,"key_window":"5h","dead_letter_queue":null,"keep_dead":null,)"
            R"("max_dead":null,"keep_completed":null,"on_dead_webhook":null},)"
            R"("stats":{"scheduled":1,"pending":2,"active":3,"failed":4,)"
            R"("dead":5,"completed":6,"bytes":0,"oldest_pending_age":1.25,"waiting_claims":0,)"
            R"("completed_kept":7,"lanes":{"fresh":1,"retry":2,"retry_in_flight":3,)"
            R"("retry_credit":0.4,"retries_by_failures":{"1":5,"2":0,"3":0,"4":0,"5":0,"6":0,)"
            R"("7":0,"8":0,"9":0,"10+":6}},)"
            R"("rates":{"push":0.25,"claim":0,"completion":0,"failure":0},"totals":{"pushed":20,)"
            R"("duplicates":0,"claimed":0,"completed":0,"failed":0,"released":0,)"
            R"("lease_expired":0,"expired":0,"died":0,"dropped":0,"corrupt":0,"moved_in":1,)"
            R"("moved_out":2,"claimed_retry":3,"retried":4,"purged":5,"dead_expired":6,)"
            R"("dead_evicted":7}}})");
}

std::string event_text(EventType type, Event event = {}) {
  event.type = type;
  event.at = kNoon;
  event.queue = std::make_shared<const QueueName>(kOrders);
  event.seq = 1;
  event.attempts = 2;
  event.reason = DeathReason::final;
  event.error = std::make_shared<const std::string>("time\nout");
  JsonWriter out;
  write_event(out, event);
  return out.take();
}

TEST(WriteEvent, TellsWhatBelongsToItsType) {
  const std::string common = R"("at":"2026-01-31T12:00:00.000Z","namespace":"default",)"
                             R"("queue":"orders","id":")" +
                             id_of(1) + "\"";
  EXPECT_EQ(event_text(EventType::pushed), R"({"type":"queue:pushed",)" + common + "}");
  EXPECT_EQ(event_text(EventType::taken),
            R"({"type":"queue:taken",)" + common + R"(,"attempts":2})");
  EXPECT_EQ(event_text(EventType::failed),
            R"({"type":"queue:failed",)" + common +
                R"(,"attempts":2,"error":"time\nout","retry_at":null})");
  EXPECT_EQ(event_text(EventType::dead),
            R"({"type":"queue:dead",)" + common +
                R"(,"attempts":2,"reason":"final","dead_letter_queue":null,"error":"time\nout"})");
  for (const auto& [type, name] : {std::pair{EventType::completed, "completed"},
                                   {EventType::released, "released"},
                                   {EventType::dropped, "dropped"}}) {
    EXPECT_EQ(event_text(type), std::string(R"({"type":"queue:)") + name + "\"," + common + "}");
  }
}

TEST(WriteEvent, ADeathTellsWhereTheJobWent) {
  const auto graves = std::make_shared<const QueueName>(QueueName{"default", "graves"});
  EXPECT_NE(event_text(EventType::dead, {.dead_letter_queue = graves})
                .find(R"("reason":"final","dead_letter_queue":"graves","error":)"),
            std::string::npos);
}

TEST(WriteEvent, ARetryTellsItsGenerationAndAPurgeItsCause) {
  EXPECT_TRUE(event_text(EventType::retry, {.generation = 3})
                  .ends_with("\"" + id_of(1) + R"(","generation":3})"));
  for (const auto& [cause, name] : {std::pair{PurgeCause::purge, "purge"},
                                    {PurgeCause::keep_dead, "keep_dead"},
                                    {PurgeCause::max_dead, "max_dead"}}) {
    EXPECT_TRUE(event_text(EventType::purged, {.cause = cause})
                    .ends_with("\"" + id_of(1) + R"(","cause":")" + name + "\"}"));
  }
}

}  // namespace
}  // namespace reprise::server
