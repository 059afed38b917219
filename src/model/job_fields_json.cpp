#include "model/job_fields_json.h"

#include "base/text.h"

namespace reprise {

void write_text_or_null(JsonWriter& out, std::string_view name, std::string_view text) {
  out.key(name);
  text.empty() ? out.null() : out.value(text);
}

void write_time(JsonWriter& out, std::string_view name, Timestamp time) {
  out.key(name).value(format_timestamp(time));
}

void write_time_or_null(JsonWriter& out, std::string_view name, Timestamp time, bool is_set) {
  out.key(name);
  is_set ? out.value(format_timestamp(time)) : out.null();
}

void write_payload(JsonWriter& out, const JobRecord& record) {
  if (record.payload_kind == PayloadKind::json) {
    out.key("payload").raw(record.payload);
  } else {
    out.key("payload_base64").value(base64_encode(record.payload));
  }
}

void write_scheduling(JsonWriter& out, const Scheduling& scheduling) {
  out.key("fairness_key").value(scheduling.fairness_key);
  out.key("weight").value(scheduling.weight);
  out.key("throttle_keys").begin_array();
  for (const std::string& key : scheduling.throttle_keys) out.value(key);
  out.end_array();
}

void write_headers(JsonWriter& out, const Headers& headers) {
  out.key("headers").begin_object();
  for (const auto& [name, value] : headers) out.key(name).value(value);
  out.end_object();
}

}  // namespace reprise
