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
          R"("payload":{"id": 1},"headers":{"tenant":"a"},"priority":10,)"
          R"("fairness_key":"default","weight":1,"throttle_keys":[],"key":"k1",)"
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
      R"("priority":10,"fairness_key":"default","weight":1,"throttle_keys":[],"key":"k1",)"
      R"("pushed_at":"2026-01-31T12:00:00.000Z"},"meta":{"attempts":1,)"
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

// A job that a hook sent to the dead, in its own words or without any.
JobView dead_by_hook(std::string words) {
  JobView view = full_job(JobStatus::dead);
  JobState state = *view.state;
  state.death_reason = DeathReason::hook;
  state.decided_by = DecidedBy::hook;
  state.death_note = std::move(words);
  state.hook_version = "3f9a1c0b22d4";
  view.state = std::make_shared<const JobState>(state);
  return view;
}

TEST(WriteJob, AJobThatAHookGaveUpHasItsReasonAndVersion) {
  const std::string told = job_text(dead_by_hook("too \"late\""), JobDetail::full);
  EXPECT_NE(told.find(R"("last_error_type":"Net","reason":"too \"late\"","origin_queue")"),
            std::string::npos)
      << told;
  EXPECT_NE(told.find(R"("reason":"too \"late\"","decidedBy":"hook:3f9a1c0b22d4","history")"),
            std::string::npos)
      << told;
  const std::string silent = job_text(dead_by_hook(""), JobDetail::full);
  EXPECT_NE(silent.find(R"("reason":"hook","origin_queue")"), std::string::npos) << silent;
  EXPECT_NE(silent.find(R"("reason":"hook","decidedBy":"hook:3f9a1c0b22d4")"), std::string::npos)
      << silent;
}

TEST(WriteJob, AJobGivenUpForLackOfAnAnswerKeepsItsOwnError) {
  JobView view = full_job(JobStatus::dead);
  JobState state = *view.state;
  state.death_reason = DeathReason::hook_error;
  view.state = std::make_shared<const JobState>(state);
  const std::string text = job_text(view, JobDetail::full);
  EXPECT_NE(text.find(R"("last_error":"timeout","last_error_type":"Net","reason":"hook_error")"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("reason":"hook_error","decidedBy":"policy")"), std::string::npos) << text;
}

TEST(WriteJob, ShowsTheAttributesOfItsPush) {
  JobRecord record;
  record.payload = "1";
  record.scheduling = {
      .fairness_key = "acme", .weight = 1000, .throttle_keys = {"api", "customer:7"}};
  const JobView view{
      .seq = 2, .status = JobStatus::pending, .record = std::make_shared<const JobRecord>(record)};
  EXPECT_NE(job_text(view, JobDetail::brief)
                .find(R"("priority":1000,"fairness_key":"acme","weight":1000,)"
                      R"("throttle_keys":["api","customer:7"],"key":null)"),
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

TEST(ItemsResponse, FailTellsTheHooksReason) {
  ItemResults<Failed> results;
  results.emplace_back(Failed{{1, 1}, JobStatus::dead, {}, DeathReason::hook, "permanent"});
  results.emplace_back(Failed{{1, 2}, JobStatus::dead, {}, DeathReason::hook, ""});
  results.emplace_back(Failed{{1, 3}, JobStatus::dead, {}, DeathReason::hook_error, ""});
  EXPECT_EQ(fail_response(results).body,
            R"({"results":[{"index":0,"status":"dead","id":")" + id_of(1) +
                R"(","reason":"permanent"},{"index":1,"status":"dead","id":")" + id_of(2) +
                R"(","reason":"hook"},{"index":2,"status":"dead","id":")" + id_of(3) +
                R"(","reason":"hook_error"}]})");
}

TEST(ItemsResponse, JobsThatAHookRefusedDoNotStopTheOthers) {
  PushReply reply;
  reply.results.emplace_back(Error{Errc::hook_rejected, "an order needs an id"});
  const std::string refused = R"({"results":[{"index":0,"status":"rejected","error":)"
                              R"({"code":"hook_rejected","message":"an order needs an id"}})";
  EXPECT_EQ(push_response(reply).http_status, 422);
  EXPECT_EQ(push_response(reply).body, refused + "]}");
  reply.results.emplace_back(PushedJob{.seq = 1});
  EXPECT_EQ(push_response(reply).http_status, 200);
  EXPECT_EQ(push_response(reply).body,
            refused + R"(,{"index":1,"status":"pushed","id":")" + id_of(1) + R"("}]})");
}

std::string queue_text(const QueueStats& stats) {
  JsonWriter out;
  write_queue(out, stats);
  return out.take();
}

TEST(WriteQueue, ShowsTheHooksOfItsConfig) {
  QueueStats stats = test::stats_of(kOrders);
  stats.queue.config.hooks = {"function on_enqueue() end", "function on_failure()\nend"};
  stats.queue.config.on_hook_error = OnHookError::dlq;
  stats.queue.config.hook_timeout_ms = 1000;
  stats.queue.config.hook_memory_bytes = 67108864;
  EXPECT_NE(
      queue_text(stats).find(
          R"("on_enqueue":"function on_enqueue() end",)"
          R"("on_failure":"function on_failure()\nend","on_hook_error":"dlq",)"
          R"("hook_timeout_ms":1000,"hook_memory_bytes":67108864,"vars":[],"defaults":null})"),
      std::string::npos);
}

TEST(WriteQueue, TellsHowItsHooksDo) {
  QueueStats stats = test::stats_of(kOrders);
  stats.hooks[static_cast<std::size_t>(HookKind::on_failure)] =
      HookStats{.version = "3f9a1c0b22d4",
                .breaker = BreakerState::open,
                .open_until = kNoon + seconds(10),
                .failures_in_a_row = 3,
                .opened = 4,
                .succeeded = 12,
                .remembered = 5,
                .failed = {1, 2, 3, 4, 5, 6},
                .in_flight = 7,
                .last_error = "line 3: no",
                .last_error_at = kNoon};
  EXPECT_NE(
      queue_text(stats).find(
          R"("hooks":{"on_failure":{"version":"3f9a1c0b22d4","breaker":"open",)"
          R"("open_until":"2026-01-31T12:00:10.000Z","failures_in_a_row":3,"opened":4,)"
          R"("in_flight":7,"succeeded":12,"remembered":5,"failed":{"error":1,"timeout":2,"memory":3,)"
          R"("invalid_result":4,"host_lost":5,"breaker_open":6},"last_error":"line 3: no",)"
          R"("last_error_at":"2026-01-31T12:00:00.000Z"}},"breaker":null,"stats":)"),
      std::string::npos)
      << queue_text(stats);
}

TEST(WriteQueue, AHookThatDoesWellHasNoErrorToTell) {
  QueueStats stats = test::stats_of(kOrders);
  stats.hooks[0] = HookStats{.version = "000000000001"};
  // Its time is over: the breaker waits for the answer that decides.
  stats.hooks[1] =
      HookStats{.version = "000000000002", .breaker = BreakerState::trial, .open_until = kNoon};
  const std::string nothing =
      R"("failures_in_a_row":0,"opened":0,"in_flight":0,"succeeded":0,"remembered":0,"failed":{"error":0,)"
      R"("timeout":0,"memory":0,"invalid_result":0,"host_lost":0,"breaker_open":0},)"
      R"("last_error":null,"last_error_at":null})";
  EXPECT_NE(queue_text(stats).find(
                R"("hooks":{"on_enqueue":{"version":"000000000001","breaker":"closed",)"
                R"("open_until":null,)" +
                nothing +
                R"(,"on_failure":{"version":"000000000002","breaker":"trial","open_until":null,)" +
                nothing + R"(},"breaker":null,"stats":)"),
            std::string::npos)
      << queue_text(stats);
}

TEST(WriteQueue, TellsTheStateOfItsBreaker) {
  QueueStats stats = test::stats_of(kOrders);
  stats.queue.config.breaker = OutagePolicy{};
  stats.breaker = OutageStats{.state = BreakerState::open,
                              .open_until = kNoon,
                              .opened = 2,
                              .spared = 7,
                              .failure_rate = 2.0 / 3,
                              .ended = 18,
                              .canaries_out = 0};
  const auto has = [&](const std::string& part) {
    return queue_text(stats).find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(R"("hooks":{},"breaker":{"state":"open","open_until":"2026-01-31T12:00:00.000Z",)"
                  R"("opened":2,"spared":7,"failure_rate":0.667,"ended":18,"canaries_out":0},)"
                  R"("stats":)"))
      << queue_text(stats);
  // Its time is over: what becomes of the canaries decides.
  stats.breaker->state = BreakerState::trial;
  stats.breaker->canaries_out = 1;
  EXPECT_TRUE(has(R"("breaker":{"state":"trial","open_until":null,)"));
  EXPECT_TRUE(has(R"("canaries_out":1},"stats":)"));
  stats.breaker = OutageStats{};
  EXPECT_TRUE(has(R"("breaker":{"state":"closed","open_until":null,"opened":0,"spared":0,)"
                  R"("failure_rate":0,"ended":0,"canaries_out":0},"stats":)"));
}

TEST(WriteQueue, ListsItsTopKeysAndTheSumOfTheOthers) {
  QueueStats stats = test::stats_of(kOrders);
  stats.keys.active = 25;
  stats.keys.top = {{.key = "ac\"me",
                     .pending = 812,
                     .active = 3,
                     .weight = 3,
                     .delivered = 1804,
                     .share = 2.0 / 3},
                    {.key = "gone", .delivered = 1, .share = 0.0004}};
  stats.keys.other = {.pending = 5, .active = 6, .delivered = 7, .share = 0.33333};
  EXPECT_NE(queue_text(stats).find(
                R"("keys":{"active":25,"top":[{"key":"ac\"me","pending":812,"active":3,"weight":3,)"
                R"("delivered":1804,"share":0.667},{"key":"gone","pending":0,"active":0,)"
                R"("weight":null,"delivered":1,"share":0}],)"
                R"("other":{"pending":5,"active":6,"delivered":7,"share":0.333}},"rates":)"),
            std::string::npos)
      << queue_text(stats);
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
            R"("fetch":{"retry_share":0.2,"retry_in_flight":null},"concurrency":null,)"
            R"("concurrency_per_key":null,"breaker":null,"max_jobs":null,)"
            R"("max_bytes":null,"key_window":"5h","dead_letter_queue":null,"keep_dead":null,)"
            R"("max_dead":null,"keep_completed":null,"on_dead_webhook":null,"on_enqueue":null,)"
            R"("on_failure":null,"on_hook_error":"retry","hook_timeout_ms":null,)"
            R"("hook_memory_bytes":null,"vars":[],"defaults":null},"hooks":{},"breaker":null,)"
            R"("stats":{"scheduled":1,"pending":2,"active":3,"failed":4,)"
            R"("dead":5,"completed":6,"bytes":0,"oldest_pending_age":1.25,"waiting_claims":0,)"
            R"("completed_kept":7,"lanes":{"fresh":1,"retry":2,"retry_in_flight":3,)"
            R"("retry_credit":0.4,"retries_by_failures":{"1":5,"2":0,"3":0,"4":0,"5":0,"6":0,)"
            R"("7":0,"8":0,"9":0,"10+":6}},)"
            R"("keys":{"active":0,"top":[],)"
            R"("other":{"pending":0,"active":0,"delivered":0,"share":0}},)"
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

TEST(WriteEvent, ABreakerIsAboutNoJob) {
  const std::string common = R"("at":"2026-01-31T12:00:00.000Z","namespace":"default",)"
                             R"("queue":"orders")";
  EXPECT_EQ(
      event_text(EventType::breaker_open, {.retry_at = kNoon + seconds(30)}),
      R"({"type":"queue:breaker_open",)" + common + R"(,"open_until":"2026-01-31T12:00:30.000Z"})");
  EXPECT_EQ(event_text(EventType::breaker_trial),
            R"({"type":"queue:breaker_trial",)" + common + "}");
  EXPECT_EQ(event_text(EventType::breaker_closed),
            R"({"type":"queue:breaker_closed",)" + common + "}");
}

TEST(WriteEvent, AWorkersEventIsAboutNoJobButMayNameOne) {
  const auto news = std::make_shared<const WorkerNews>(
      WorkerNews{.worker = "shipper", .run = "3K9M", .job = "7ZK3", .status = "failed"});
  const auto text = [&](EventType type) { return event_text(type, {.worker = news}); };
  const std::string common = R"("at":"2026-01-31T12:00:00.000Z","namespace":"default",)"
                             R"("queue":"orders","worker":"shipper")";
  EXPECT_EQ(text(EventType::worker_started), R"({"type":"worker:started",)" + common + "}");
  EXPECT_EQ(text(EventType::worker_stopped), R"({"type":"worker:stopped",)" + common + "}");
  EXPECT_EQ(text(EventType::worker_run_started),
            R"({"type":"worker:run_started",)" + common + R"(,"run":"3K9M","job":"7ZK3"})");
  EXPECT_EQ(text(EventType::worker_run_ended),
            R"({"type":"worker:run_ended",)" + common +
                R"(,"run":"3K9M","job":"7ZK3","status":"failed","error":"time\nout"})");
  EXPECT_EQ(text(EventType::worker_error),
            R"({"type":"worker:error",)" + common + R"(,"error":"time\nout"})");
}

TEST(WriteEvent, AWorkersEventWithoutNewsOrErrorIsStillWhole) {
  Event event{.type = EventType::worker_run_ended, .at = kNoon};
  event.queue = std::make_shared<const QueueName>(kOrders);
  JsonWriter out;
  write_event(out, event);
  EXPECT_TRUE(out.text().ends_with(
      R"("queue":"orders","worker":"","run":"","job":"","status":"","error":null})"));
}

TEST(WriteEvent, ADeathByAHookIsToldInItsWords) {
  const auto words = std::make_shared<const std::string>("too late");
  EXPECT_NE(event_text(EventType::dead, {.death_note = words})
                .find(R"("attempts":2,"reason":"too late","dead_letter_queue":null,"error":)"),
            std::string::npos);
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
