// Operations and audit records: framed like every record, with JSON inside, as they are few and
// made for reading.
#include <string>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/rate.h"
#include "storage/record_frame.h"
#include "storage/records.h"

namespace reprise::storage {
namespace {

void write_time(JsonWriter& out, std::string_view name, Timestamp time) {
  out.key(name).value(time.time_since_epoch().count());
}

Timestamp time_of(const Json& json) { return Timestamp(Duration(json.integer().value_or(0))); }

std::uint64_t count_of(const Json& json) { return json.unsigned_integer().value_or(0); }

void write_filter(JsonWriter& out, const std::optional<JobFilter>& filter) {
  out.key("filter");
  if (filter) {
    write_filter_json(out, *filter);
  } else {
    out.null();
  }
}

void write_queue_name(JsonWriter& out, const QueueName& name) {
  out.key("namespace").value(name.ns).key("name").value(name.name);
}

QueueName queue_name_of(const Json& json) {
  return {.ns = json["namespace"].string_or(""), .name = json["name"].string_or("")};
}

void write_skipped(JsonWriter& out, const std::vector<SkippedJob>& skipped) {
  out.key("first_skipped").begin_array();
  for (const SkippedJob& job : skipped) {
    out.begin_object().key("id").value(job.id);
    out.key("status");
    job.status ? out.value(status_name(*job.status)) : out.null();
    out.key("code").value(errc_info(job.code).wire_name);
    out.key("reason").value(job.reason).end_object();
  }
  out.end_array();
}

std::vector<SkippedJob> skipped_of(const Json& json) {
  std::vector<SkippedJob> skipped;
  if (json.array() == nullptr) return skipped;
  for (const Json& job : *json.array()) {
    skipped.push_back({.id = job["id"].string_or(""),
                       .status = status_from_name(job["status"].string_or("")),
                       .code = errc_from_wire_name(job["code"].string_or("")),
                       .reason = job["reason"].string_or("")});
  }
  return skipped;
}

void write_optional(JsonWriter& out, std::string_view name, std::optional<std::uint64_t> number) {
  out.key(name);
  number ? out.value(*number) : out.null();
}

std::string framed(JsonWriter& json) {
  const std::string_view text = json.text();
  RecordWriter out(text.size() + 16);
  out.bytes(text);
  return out.finish();
}

Result<Json> unframed(std::string_view kind, std::string_view bytes) {
  auto in = RecordReader::open(kind, bytes);
  if (!in) return in.error();
  const std::string_view text = in->bytes();
  REPRISE_TRY(in->finish());
  auto json = Json::parse(text);
  if (!json) return corrupt_record(kind, json.error().detail);
  return json;
}

}  // namespace

std::string encode_operation(const Operation& operation) {
  JsonWriter out;
  out.begin_object();
  out.key("id").value(operation.id);
  out.key("kind").value(static_cast<std::uint32_t>(operation.kind));
  out.key("queue").value(operation.queue);
  write_queue_name(out, operation.name);
  write_filter(out, operation.filter);
  write_optional(out, "limit", operation.limit);
  out.key("rate");
  operation.rate ? out.value(format_rate(*operation.rate)) : out.null();
  write_optional(out, "total", operation.total);
  out.key("asked_by").value(operation.asked_by);
  out.key("audit_number").value(operation.audit_number);
  write_time(out, "started_at", operation.started_at);
  out.key("state").value(static_cast<std::uint32_t>(operation.state));
  out.key("done").value(operation.done).key("skipped").value(operation.skipped);
  write_skipped(out, operation.first_skipped);
  out.key("cursor").value(operation.cursor);
  write_time(out, "ended_at", operation.ended_at);
  out.key("error").value(operation.error);
  out.end_object();
  return framed(out);
}

Result<Operation> decode_operation(std::string_view bytes) {
  const auto json = unframed("operation", bytes);
  if (!json) return json.error();
  auto filter = filter_from_json((*json)["filter"]);
  if (!filter) return corrupt_record("operation", filter.error().detail);
  if (count_of((*json)["kind"]) > static_cast<std::uint64_t>(OperationKind::purge) ||
      count_of((*json)["state"]) > static_cast<std::uint64_t>(OperationState::failed)) {
    return corrupt_record("operation", "it is of no known kind or state");
  }
  Operation operation{.id = count_of((*json)["id"]),
                      .kind = static_cast<OperationKind>(count_of((*json)["kind"])),
                      .queue = static_cast<QueueNumber>(count_of((*json)["queue"])),
                      .name = queue_name_of(*json),
                      .filter = *std::move(filter),
                      .limit = (*json)["limit"].unsigned_integer(),
                      .total = (*json)["total"].unsigned_integer(),
                      .asked_by = (*json)["asked_by"].string_or(""),
                      .audit_number = count_of((*json)["audit_number"]),
                      .started_at = time_of((*json)["started_at"]),
                      .state = static_cast<OperationState>(count_of((*json)["state"])),
                      .done = count_of((*json)["done"]),
                      .skipped = count_of((*json)["skipped"]),
                      .first_skipped = skipped_of((*json)["first_skipped"]),
                      .cursor = (*json)["cursor"].string_or(""),
                      .ended_at = time_of((*json)["ended_at"]),
                      .error = (*json)["error"].string_or("")};
  if (const auto* rate = (*json)["rate"].string()) {
    const auto parsed = parse_rate(*rate);
    if (!parsed) return corrupt_record("operation", parsed.error().detail);
    operation.rate = *parsed;
  }
  return operation;
}

std::string encode_audit(const AuditRecord& record) {
  JsonWriter out;
  out.begin_object();
  out.key("number").value(record.number);
  write_time(out, "at", record.at);
  out.key("action").value(static_cast<std::uint32_t>(record.action));
  write_queue_name(out, record.queue);
  out.key("asked_by").value(record.asked_by);
  out.key("ids").begin_array();
  for (const std::string& id : record.ids) out.value(id);
  out.end_array();
  write_filter(out, record.filter);
  out.key("done").value(record.done).key("skipped").value(record.skipped);
  out.key("not_found").value(record.not_found);
  out.key("operation").value(record.operation);
  out.end_object();
  return framed(out);
}

Result<AuditRecord> decode_audit(std::string_view bytes) {
  const auto json = unframed("audit", bytes);
  if (!json) return json.error();
  if (count_of((*json)["action"]) > static_cast<std::uint64_t>(AuditAction::cancel)) {
    return corrupt_record("audit", "it is of no known action");
  }
  AuditRecord record{.number = count_of((*json)["number"]),
                     .at = time_of((*json)["at"]),
                     .action = static_cast<AuditAction>(count_of((*json)["action"])),
                     .queue = queue_name_of(*json),
                     .asked_by = (*json)["asked_by"].string_or(""),
                     .done = count_of((*json)["done"]),
                     .skipped = count_of((*json)["skipped"]),
                     .not_found = count_of((*json)["not_found"]),
                     .operation = count_of((*json)["operation"])};
  if (const auto* ids = (*json)["ids"].array()) {
    for (const Json& id : *ids) record.ids.push_back(id.string_or(""));
  }
  if (!(*json)["filter"].is_null()) {
    auto filter = filter_from_json((*json)["filter"]);
    if (!filter) return corrupt_record("audit", filter.error().detail);
    record.filter = *std::move(filter);
  }
  return record;
}

}  // namespace reprise::storage
