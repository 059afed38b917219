#include "model/queue_config_json.h"

#include "base/duration.h"
#include "base/json_fields.h"

namespace reprise {
namespace {

constexpr Duration kShortestLease = std::chrono::milliseconds(100);
constexpr Duration kLongestLease = std::chrono::hours(24 * 7);

// A field that always has a value: null means its default.
template <class T>
void read_or_default(JsonFields& fields, std::string_view name, T& value, const T& fallback) {
  if (const Json* found = fields.peek(name); found != nullptr && found->is_null()) {
    value = fallback;
  } else {
    fields.read(name, value);
  }
}

Status apply_retry_json(RetryPolicy& policy, const Json& json) {
  if (json.is_null()) {
    policy = {};
    return ok();
  }
  JsonFields fields(json, "retry");
  read_or_default(fields, "attempts", policy.attempts, RetryPolicy{}.attempts);
  read_or_default(fields, "cooldown", policy.cooldown, RetryPolicy{}.cooldown);
  return fields.finish();
}

void check_ranges(JsonFields& fields, const QueueConfig& config) {
  if (config.lease < kShortestLease || config.lease > kLongestLease) {
    fields.fail("lease", "must be between 100ms and 7d");
  }
  if (config.ttl == Duration::zero()) fields.fail("ttl", "must be more than 0 (null for none)");
  if (config.max_jobs == 0U) fields.fail("max_jobs", "must be at least 1 (null for no limit)");
  if (config.max_bytes == 0U) fields.fail("max_bytes", "must be at least 1 (null for no limit)");
}

}  // namespace

Status apply_config_json(QueueConfig& config, const Json& json) {
  const QueueConfig defaults;
  QueueConfig edited = config;
  JsonFields fields(json);
  read_or_default(fields, "lease", edited.lease, defaults.lease);
  fields.read_nullable("ttl", edited.ttl);
  fields.read_nullable("max_jobs", edited.max_jobs);
  fields.read_nullable("max_bytes", edited.max_bytes);
  read_or_default(fields, "key_window", edited.key_window, defaults.key_window);
  const Json* retry = fields.peek("retry");
  check_ranges(fields, edited);
  REPRISE_TRY(fields.finish());
  if (retry != nullptr) REPRISE_TRY(apply_retry_json(edited.retry, *retry));
  config = edited;
  return ok();
}

void write_config_json(JsonWriter& out, const QueueConfig& config) {
  const auto optional_number = [&](std::string_view name, const auto& number) {
    out.key(name);
    number ? out.value(*number) : out.null();
  };
  out.begin_object();
  out.key("lease").value(format_duration(config.lease));
  out.key("ttl");
  config.ttl ? out.value(format_duration(*config.ttl)) : out.null();
  out.key("retry").begin_object();
  out.key("attempts").value(config.retry.attempts);
  out.key("cooldown").value(format_duration(config.retry.cooldown));
  out.end_object();
  optional_number("max_jobs", config.max_jobs);
  optional_number("max_bytes", config.max_bytes);
  out.key("key_window").value(format_duration(config.key_window));
  out.end_object();
}

}  // namespace reprise
