#include "model/dead_letter_json.h"

#include "model/job_fields_json.h"

namespace reprise {
namespace {

void write_event(JsonWriter& out, const QueueName& queue, Seq seq, const JobRecord& record) {
  out.key("event").begin_object();
  out.key("id").value(encode_job_id(seq));
  out.key("queue").value(queue.name).key("namespace").value(queue.ns);
  write_payload(out, record);
  write_headers(out, record.headers);
  out.key("priority").value(record.priority);
  write_scheduling(out, record.scheduling);
  write_text_or_null(out, "key", record.key);
  write_time(out, "pushed_at", record.pushed_at);
  out.end_object();
}

void write_history(JsonWriter& out, const AttemptHistory& history) {
  out.key("history").begin_array();
  for (const Attempt& attempt : history) {
    out.begin_object();
    write_time(out, "at", attempt.started_at);
    write_text_or_null(out, "worker", attempt.worker);
    write_text_or_null(out, "error", attempt.error);
    write_text_or_null(out, "errorType", attempt.error_type);
    out.key("outcome").value(outcome_name(attempt.outcome));
    out.end_object();
  }
  out.end_array();
}

void write_meta(JsonWriter& out, const JobState& state) {
  out.key("meta").begin_object();
  out.key("attempts").value(state.attempts);
  out.key("generation").value(state.generation);
  write_text_or_null(out, "lastError", state.last_error);
  write_text_or_null(out, "lastErrorType", state.last_error_type);
  write_time_or_null(out, "firstAttemptAt", state.first_attempt_at, state.attempts > 0);
  write_time(out, "deadLetteredAt", state.ended_at);
  out.key("reason").value(death_reason_text(state));
  out.key("decidedBy").value(decided_by_text(state));
  write_history(out, state.history);
  out.end_object();
}

}  // namespace

void write_dead_letter(JsonWriter& out, const QueueName& queue, Seq seq, const JobRecord& record,
                       const JobState& state) {
  out.begin_object();
  write_event(out, queue, seq, record);
  write_meta(out, state);
  out.end_object();
}

void write_dead_event(JsonWriter& out, const DeadEvent& dead) {
  out.begin_object();
  out.key("event").raw(dead.event.empty() ? "null" : dead.event);
  out.key("meta").begin_object();
  out.key("attempts").value(dead.attempts);
  write_text_or_null(out, "lastError", dead.last_error);
  write_text_or_null(out, "firstAttemptAt", dead.first_attempt_at);
  write_time(out, "deadLetteredAt", dead.dead_lettered_at);
  out.key("queueFile").value(dead.queue_file);
  out.key("reason").value(dead.reason);
  out.key("decidedBy").value("policy");
  out.key("history").begin_array().end_array();
  if (!dead.raw_file.empty()) out.key("rawFile").value(dead.raw_file);
  out.end_object();
  out.end_object();
}

}  // namespace reprise
