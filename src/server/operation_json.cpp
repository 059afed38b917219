#include "server/operation_json.h"

#include "base/rate.h"
#include "model/error_fingerprint.h"
#include "model/job_fields_json.h"

namespace reprise::server {
namespace {

constexpr int kAccepted = 202;

// What was done to jobs: "retried" or "purged".
std::string_view done_word(OperationKind kind) {
  return kind == OperationKind::retry ? "retried" : "purged";
}

void write_skipped(JsonWriter& out, const std::vector<SkippedJob>& skipped) {
  out.key("skipped").begin_array();
  for (const SkippedJob& job : skipped) {
    out.begin_object().key("id").value(job.id);
    out.key("status");
    job.status ? out.value(status_name(*job.status)) : out.null();
    out.key("code").value(errc_info(job.code).wire_name);
    out.key("reason").value(job.reason).end_object();
  }
  out.end_array();
}

void write_not_found(JsonWriter& out, const std::vector<std::string>& ids) {
  out.key("not_found").begin_array();
  for (const std::string& id : ids) out.value(id);
  out.end_array();
}

void write_number_or_null(JsonWriter& out, std::string_view name,
                          const std::optional<std::uint64_t>& number) {
  out.key(name);
  number ? out.value(*number) : out.null();
}

void write_audit_record(JsonWriter& out, const AuditRecord& record) {
  out.begin_object();
  out.key("number").value(record.number);
  write_time(out, "at", record.at);
  out.key("action").value(audit_action_name(record.action));
  out.key("namespace").value(record.queue.ns).key("queue").value(record.queue.name);
  write_text_or_null(out, "by", record.asked_by);
  out.key("ids").begin_array();
  for (const std::string& id : record.ids) out.value(id);
  out.end_array();
  out.key("filter");
  if (record.filter) {
    write_filter_json(out, *record.filter);
  } else {
    out.null();
  }
  out.key("done").value(record.done).key("skipped").value(record.skipped);
  out.key("not_found").value(record.not_found);
  out.key("operation");
  record.operation != 0 ? out.value(record.operation) : out.null();
  out.end_object();
}

}  // namespace

void write_operation(JsonWriter& out, const Operation& operation) {
  out.begin_object();
  out.key("id").value(operation.id);
  out.key("kind").value(operation_kind_name(operation.kind));
  out.key("namespace").value(operation.name.ns).key("queue").value(operation.name.name);
  out.key("state").value(operation_state_name(operation.state));
  out.key("filter");
  write_filter_json(out, operation.filter);
  write_number_or_null(out, "limit", operation.limit);
  out.key("rate");
  operation.rate ? out.value(format_rate(*operation.rate)) : out.null();
  write_number_or_null(out, "total", operation.total);
  out.key("done").value(operation.done).key("skipped").value(operation.skipped);
  write_text_or_null(out, "by", operation.asked_by);
  write_time(out, "started_at", operation.started_at);
  write_time_or_null(out, "ended_at", operation.ended_at, operation.ended_at != Timestamp{});
  write_text_or_null(out, "error", operation.error);
  out.end_object();
}

Response selection_response(OperationKind kind, const SelectionReply& reply) {
  JsonWriter out;
  out.begin_object();
  out.key(done_word(kind)).value(reply.done);
  write_skipped(out, reply.skipped);
  write_not_found(out, reply.not_found);
  out.key("operation").null();
  const bool refused = reply.done == 0 && reply.first_refusal.has_value();
  if (refused) {
    out.key("error");
    write_error(out, *reply.first_refusal);
  }
  out.end_object();
  return json_response(std::move(out),
                       refused ? errc_info(reply.first_refusal->code).http_status : 200);
}

Response operation_started_response(const Operation& operation) {
  JsonWriter out;
  out.begin_object();
  out.key(done_word(operation.kind)).value(operation.done);
  write_skipped(out, operation.first_skipped);
  write_not_found(out, {});
  out.key("operation");
  write_operation(out, operation);
  out.end_object();
  return json_response(std::move(out),
                       operation.state == OperationState::running ? kAccepted : 200);
}

Response preview_response(OperationKind kind, const SelectionPreview& preview) {
  JsonWriter out;
  out.begin_object();
  out.key(done_word(kind)).value(0);
  out.key("matched").value(preview.matched);
  out.key("examples").begin_array();
  for (const JobView& job : preview.examples) {
    const bool has_ended = job.status == JobStatus::dead;
    out.begin_object().key("id").value(encode_job_id(job.seq));
    write_time_or_null(out, "ended_at", job.state ? job.state->ended_at : Timestamp{}, has_ended);
    write_text_or_null(out, "error", job.state ? job.state->last_error : std::string_view());
    out.end_object();
  }
  out.end_array();
  out.key("dry_run").value(true);
  write_skipped(out, {});
  write_not_found(out, {});
  out.key("operation").null();
  out.end_object();
  return json_response(std::move(out));
}

Response error_groups_response(const ErrorGroups& groups) {
  JsonWriter out;
  out.begin_object().key("groups").begin_array();
  for (const ErrorGroup& group : groups.groups) {
    out.begin_object();
    out.key("fingerprint").value(format_fingerprint(group.fingerprint));
    out.key("count").value(group.count());
    out.key("dead").value(group.dead).key("failed").value(group.failed);
    out.key("error").value(group.error);
    write_text_or_null(out, "error_type", group.error_type);
    write_time(out, "first_seen", group.first_seen);
    write_time(out, "last_seen", group.last_seen);
    out.key("example").value(encode_job_id(group.example));
    out.end_object();
  }
  out.end_array().key("other").value(groups.other).end_object();
  return json_response(std::move(out));
}

Response audit_response(const AuditPage& page) {
  JsonWriter out;
  out.begin_object().key("records").begin_array();
  for (const AuditRecord& record : page.records) write_audit_record(out, record);
  out.end_array();
  write_number_or_null(out, "before", page.before);
  out.end_object();
  return json_response(std::move(out));
}

}  // namespace reprise::server
