#include "server/job_json.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "base/planted_bug.h"
#include "model/dead_letter_json.h"
#include "model/job_fields_json.h"
#include "model/queue_config_json.h"
#include "server/hook_json.h"
#include "server/scheduling_json.h"

namespace reprise::server {
namespace {

void write_history(JsonWriter& out, const JobState& state) {
  out.key("history").begin_array();
  for (const Attempt& attempt : state.history) {
    out.begin_object();
    out.key("attempt").value(attempt.number);
    out.key("generation").value(attempt.generation);
    write_time(out, "at", attempt.started_at);
    write_time(out, "ended_at", attempt.ended_at);
    out.key("outcome").value(outcome_name(attempt.outcome));
    write_text_or_null(out, "worker", attempt.worker);
    write_text_or_null(out, "error", attempt.error);
    write_text_or_null(out, "error_type", attempt.error_type);
    out.end_object();
  }
  out.end_array();
}

// Of a payload of the tests, which ends with the digits of its hash.
JobRecord damaged(JobRecord record) {
  const std::size_t digit = record.payload.find_last_of("0123456789");
  if (digit != std::string::npos) record.payload[digit] ^= 1;
  return record;
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

void write_totals(JsonWriter& out, const QueueTotals& totals) {
  out.key("totals").begin_object();
  out.key("pushed").value(totals.pushed);
  out.key("duplicates").value(totals.duplicates);
  out.key("claimed").value(totals.claimed);
  out.key("completed").value(totals.completed);
  out.key("failed").value(totals.failed);
  out.key("released").value(totals.released);
  out.key("lease_expired").value(totals.lease_expired);
  out.key("expired").value(totals.expired);
  out.key("died").value(totals.died);
  out.key("dropped").value(totals.dropped);
  out.key("corrupt").value(totals.corrupt);
  out.key("moved_in").value(totals.moved_in);
  out.key("moved_out").value(totals.moved_out);
  out.key("claimed_retry").value(totals.claimed_retry);
  out.key("retried").value(totals.retried);
  out.key("purged").value(totals.purged);
  out.key("dead_expired").value(totals.dead_expired);
  out.key("dead_evicted").value(totals.dead_evicted);
  out.end_object();
}

void write_lanes(JsonWriter& out, const LaneStats& lanes) {
  out.key("lanes").begin_object();
  out.key("fresh").value(lanes.fresh).key("retry").value(lanes.retry);
  out.key("retry_in_flight").value(lanes.retry_in_flight);
  out.key("retry_credit").value(lanes.retry_credit);
  out.key("retries_by_failures").begin_object();
  for (std::size_t i = 0; i < kFailureBuckets; ++i) {
    out.key(failure_bucket_name(i)).value(lanes.retries_by_failures[i]);
  }
  out.end_object().end_object();
}

void write_stats(JsonWriter& out, const QueueStats& stats) {
  out.key("stats").begin_object();
  for (std::size_t i = 0; i < kJobStatusCount; ++i) {
    out.key(status_name(static_cast<JobStatus>(i))).value(stats.by_status[i]);
  }
  out.key("bytes").value(stats.bytes);
  out.key("oldest_pending_age");
  stats.oldest_pending_age ? out.value(seconds(*stats.oldest_pending_age)) : out.null();
  out.key("waiting_claims").value(stats.waiting_claims);
  out.key("completed_kept").value(stats.totals.completed_now);
  write_lanes(out, stats.lanes);
  write_keys(out, stats.keys);
  out.key("rates").begin_object();
  out.key("push").value(stats.push_rate);
  out.key("claim").value(stats.claim_rate);
  out.key("completion").value(stats.completion_rate);
  out.key("failure").value(stats.failure_rate);
  out.end_object();
  write_totals(out, stats.totals);
  out.end_object();
}

// `write_success` adds the fields after "index" of an item that succeeded.
template <class T, class WriteSuccess>
Response items_response(const ItemResults<T>& results, WriteSuccess write_success) {
  JsonWriter out;
  out.reserve(32 + results.size() * 64);
  out.begin_object().key("results").begin_array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    out.begin_object().key("index").value(i);
    if (results[i]) {
      write_success(out, *results[i]);
    } else {
      out.key("status").value("rejected").key("error");
      write_error(out, results[i].error());
    }
    out.end_object();
  }
  out.end_array().end_object();

  const bool none_succeeded =
      !results.empty() &&
      std::ranges::none_of(results, [](const Result<T>& result) { return result.has_value(); });
  const int http_status =
      none_succeeded ? errc_info(results.front().error().code).http_status : 200;
  return json_response(std::move(out), http_status);
}

void write_item(JsonWriter& out, std::string_view status, Seq seq) {
  out.key("status").value(status).key("id").value(encode_job_id(seq));
}

// What a worker's event has beyond the queue it works on.
void write_worker_news(JsonWriter& out, const Event& event) {
  static const WorkerNews kNothing;
  const WorkerNews& news = event.worker ? *event.worker : kNothing;
  const bool ended = event.type == EventType::worker_run_ended;
  const bool about_a_run = ended || event.type == EventType::worker_run_started;
  out.key("worker").value(news.worker);
  if (about_a_run) {
    out.key("run").value(news.run);
    out.key("job").value(news.job);
  }
  if (ended) out.key("status").value(news.status);
  if (ended || event.type == EventType::worker_error) {
    write_text_or_null(out, "error", event.error ? *event.error : std::string_view());
  }
}

}  // namespace

void write_job(JsonWriter& out, const QueueName& queue, const JobView& view, JobDetail detail) {
  static const JobState kNeverLeased;
  const JobRecord& record = *view.record;
  const JobState& state = view.state ? *view.state : kNeverLeased;
  const bool waits = view.status == JobStatus::scheduled || view.status == JobStatus::failed;
  const bool active = view.status == JobStatus::active;
  const bool has_ended = view.status == JobStatus::dead || view.status == JobStatus::completed;
  out.begin_object();
  out.key("id").value(encode_job_id(view.seq));
  out.key("queue").value(queue.name).key("namespace").value(queue.ns);
  out.key("status").value(status_name(view.status));
  out.key("lane").value(lane_name(state.lane()));
  write_payload(out, record);
  write_headers(out, record.headers);
  out.key("priority").value(record.priority);
  write_scheduling(out, record.scheduling);
  write_text_or_null(out, "key", record.key);
  out.key("attempts").value(state.attempts).key("failures").value(state.failures);
  out.key("generation").value(state.generation);
  write_time(out, "pushed_at", record.pushed_at);
  write_time_or_null(out, "due_at", state.due, waits);
  write_time_or_null(out, "expires_at", record.expires_at, record.expires_at != kNever);
  write_time_or_null(out, "lease_expires_at", state.lease_deadline, active);
  write_time_or_null(out, "ended_at", state.ended_at, has_ended);
  write_text_or_null(out, "worker", active ? state.worker : std::string_view());
  write_text_or_null(out, "last_error", state.last_error);
  write_text_or_null(out, "last_error_type", state.last_error_type);
  out.key("reason");
  const bool has_reason = view.status == JobStatus::dead && state.death_reason != DeathReason::none;
  has_reason ? out.value(death_reason_text(state)) : out.null();
  write_text_or_null(out, "origin_queue", state.origin_queue);
  if (detail == JobDetail::full) {
    write_history(out, state);
    if (view.status == JobStatus::dead) {
      out.key("dead_letter");
      write_dead_letter(out, queue, view.seq, record, state);
    }
  }
  out.end_object();
}

void write_claimed_job(JsonWriter& out, const ClaimedJob& job) {
  const JobRecord& record = *job.record;
  out.begin_object();
  out.key("id").value(encode_job_id(job.token.job.seq));
  out.key("token").value(encode_lease_token(job.token));
  if (planted(PlantedBug::corrupted, job.token.job.seq)) {
    write_payload(out, damaged(record));
  } else {
    write_payload(out, record);
  }
  write_headers(out, record.headers);
  out.key("priority").value(record.priority);
  out.key("attempts").value(job.attempts).key("failures").value(job.failures);
  write_time(out, "pushed_at", record.pushed_at);
  write_time(out, "lease_expires_at", job.lease_deadline);
  if (job.failures > 0 || !job.last_error.empty()) out.key("last_error").value(job.last_error);
  out.end_object();
}

void write_queue(JsonWriter& out, const QueueStats& stats) {
  const QueueRecord& queue = stats.queue;
  out.begin_object();
  out.key("name").value(queue.name.name).key("namespace").value(queue.name.ns);
  out.key("paused").value(queue.paused);
  write_time(out, "created_at", queue.created_at);
  out.key("config");
  write_config_json(out, queue.config);
  write_hooks(out, stats);
  write_breaker(out, stats);
  write_stats(out, stats);
  out.end_object();
}

void write_event(JsonWriter& out, const Event& event) {
  const bool tells_error = event.type == EventType::failed || event.type == EventType::dead;
  out.begin_object();
  out.key("type").value(event_type_name(event.type));
  write_time(out, "at", event.at);
  out.key("namespace").value(event.queue->ns).key("queue").value(event.queue->name);
  if (is_about_a_job(event.type)) out.key("id").value(encode_job_id(event.seq));
  if (tells_error || event.type == EventType::taken) out.key("attempts").value(event.attempts);
  if (event.type == EventType::dead) {
    out.key("reason").value(event.death_note ? *event.death_note : death_reason_name(event.reason));
    out.key("dead_letter_queue");
    event.dead_letter_queue ? out.value(event.dead_letter_queue->name) : out.null();
  }
  if (event.type == EventType::retry) out.key("generation").value(event.generation);
  if (event.type == EventType::purged) out.key("cause").value(purge_cause_name(event.cause));
  if (tells_error) {
    write_text_or_null(out, "error", event.error ? *event.error : std::string_view());
  }
  if (event.type == EventType::failed) {
    write_time_or_null(out, "retry_at", event.retry_at, event.retry_at != kNever);
  }
  if (event.type == EventType::breaker_open) write_time(out, "open_until", event.retry_at);
  if (is_about_a_worker(event.type)) write_worker_news(out, event);
  out.end_object();
}

Response push_response(const PushReply& reply) {
  return items_response(reply.results, [](JsonWriter& out, const PushedJob& job) {
    write_item(out, job.duplicate ? "duplicate" : "pushed", job.seq);
  });
}

Response ack_response(const ItemResults<Acked>& results) {
  return items_response(
      results, [](JsonWriter& out, const Acked& item) { write_item(out, "acked", item.job.seq); });
}

Response fail_response(const ItemResults<Failed>& results) {
  return items_response(results, [](JsonWriter& out, const Failed& item) {
    if (item.status == JobStatus::dead) {
      write_item(out, "dead", item.job.seq);
      out.key("reason").value(item.death_note.empty() ? death_reason_name(item.reason)
                                                      : std::string_view(item.death_note));
    } else {
      write_item(out, "retrying", item.job.seq);
      write_time(out, "retry_at", item.retry_at);
    }
  });
}

Response release_response(const ItemResults<Released>& results) {
  return items_response(results, [](JsonWriter& out, const Released& item) {
    write_item(out, "released", item.job.seq);
  });
}

Response extend_response(const ItemResults<Extended>& results) {
  return items_response(results, [](JsonWriter& out, const Extended& item) {
    write_item(out, "extended", item.job.seq);
    write_time(out, "lease_expires_at", item.lease_deadline);
  });
}

Response claim_response(const ClaimReply& reply) {
  std::size_t bytes = 32;
  for (const ClaimedJob& job : reply.jobs) bytes += job.record->byte_size() + 320;
  JsonWriter out;
  out.reserve(bytes);
  out.begin_object().key("jobs").begin_array();
  for (const ClaimedJob& job : reply.jobs) write_claimed_job(out, job);
  out.end_array().end_object();
  Response response = json_response(std::move(out));
  response.leases.reserve(reply.jobs.size());
  for (const ClaimedJob& job : reply.jobs) response.leases.push_back(job.token);
  return response;
}

}  // namespace reprise::server
