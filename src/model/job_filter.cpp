#include "model/job_filter.h"

#include <algorithm>

#include "base/duration.h"
#include "base/json_fields.h"
#include "model/error_fingerprint.h"

namespace reprise {
namespace {

// What an age counts from.
Timestamp age_begins(const JobRecord& record, const JobState* state) {
  const bool ended = state != nullptr &&
                     (state->status == JobStatus::dead || state->status == JobStatus::completed);
  return ended ? state->ended_at : record.pushed_at;
}

bool matches_error(const JobFilter& filter, const JobState* state) {
  if (filter.error.empty() && filter.error_type.empty() && !filter.fingerprint) return true;
  if (state == nullptr) return false;
  if (state->last_error.find(filter.error) == std::string::npos) return false;
  if (!filter.error_type.empty() && state->last_error_type != filter.error_type) return false;
  return !filter.fingerprint ||
         error_fingerprint(state->last_error, state->last_error_type) == *filter.fingerprint;
}

void read_status(JsonFields& fields, JobFilter& filter) {
  std::string name;
  if (!fields.read("status", name)) return;
  filter.status = status_from_name(name);
  if (filter.status != JobStatus::dead && filter.status != JobStatus::failed) {
    fields.fail("status", "must be dead or failed");
  }
}

void read_fingerprint(JsonFields& fields, JobFilter& filter) {
  std::string text;
  if (!fields.read("fingerprint", text)) return;
  filter.fingerprint = parse_fingerprint(text);
  if (!filter.fingerprint) fields.fail("fingerprint", "must be 16 hexadecimal digits");
}

void read_reason(JsonFields& fields, JobFilter& filter) {
  std::string name;
  if (!fields.read("reason", name)) return;
  filter.reason = death_reason_from_name(name);
  if (!filter.reason) fields.fail("reason", "'" + name + "' is no reason to die of");
}

void read_headers(JsonFields& fields, JobFilter& filter) {
  const Json* headers = fields.peek("headers");
  if (headers == nullptr || headers->is_null()) return;
  if (headers->object() == nullptr) {
    fields.fail("headers", "must be an object of strings", Errc::invalid_request);
    return;
  }
  for (const auto& [name, value] : *headers->object()) {
    if (value.string() == nullptr) {
      fields.fail("headers", "'" + name + "' must be a string", Errc::invalid_request);
      return;
    }
    filter.headers.emplace_back(name, *value.string());
  }
}

}  // namespace

bool matches(const JobFilter& filter, const JobRecord& record, const JobState* state,
             Timestamp now) {
  const Lane lane = state != nullptr ? state->lane() : Lane::fresh;
  if (filter.lane && lane != *filter.lane) return false;
  if (filter.reason && (state == nullptr || state->death_reason != *filter.reason)) return false;
  if (!matches_error(filter, state)) return false;
  const Duration age = now - age_begins(record, state);
  if (filter.older_than && age <= *filter.older_than) return false;
  if (filter.newer_than && age >= *filter.newer_than) return false;
  return std::ranges::all_of(filter.headers, [&](const auto& wanted) {
    return std::ranges::find(record.headers, wanted) != record.headers.end();
  });
}

Result<JobFilter> filter_from_json(const Json& json) {
  JobFilter filter;
  JsonFields fields(json, "filter");
  read_status(fields, filter);
  fields.read("error", filter.error);
  fields.read("error_type", filter.error_type);
  read_fingerprint(fields, filter);
  read_reason(fields, filter);
  fields.read("older_than", filter.older_than);
  fields.read("newer_than", filter.newer_than);
  read_headers(fields, filter);
  REPRISE_TRY(fields.finish());
  return filter;
}

void write_filter_json(JsonWriter& out, const JobFilter& filter) {
  const auto text = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) out.key(name).value(value);
  };
  const auto duration = [&](std::string_view name, const std::optional<Duration>& value) {
    if (value) out.key(name).value(format_duration(*value));
  };
  out.begin_object();
  if (filter.status) text("status", status_name(*filter.status));
  text("error", filter.error);
  text("error_type", filter.error_type);
  if (filter.fingerprint) text("fingerprint", format_fingerprint(*filter.fingerprint));
  if (filter.reason) text("reason", death_reason_name(*filter.reason));
  duration("older_than", filter.older_than);
  duration("newer_than", filter.newer_than);
  if (!filter.headers.empty()) {
    out.key("headers").begin_object();
    for (const auto& [name, value] : filter.headers) out.key(name).value(value);
    out.end_object();
  }
  out.end_object();
}

}  // namespace reprise
