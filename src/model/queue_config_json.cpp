#include "model/queue_config_json.h"

#include <cmath>

#include "base/duration.h"
#include "base/json_fields.h"
#include "model/limits.h"
#include "model/webhook.h"

namespace reprise {
namespace {

constexpr Duration kShortestLease = std::chrono::milliseconds(100);
constexpr Duration kLongestLease = std::chrono::hours(24 * 7);

// A text that is empty when there is none.
void read_text_or_none(JsonFields& fields, std::string_view name, std::string& text) {
  if (fields.read(name, text) && text.empty()) fields.fail(name, "is empty (null for none)");
  if (const Json* found = fields.peek(name); found != nullptr && found->is_null()) text.clear();
}

Status apply_fetch_json(FetchPolicy& fetch, const Json& json) {
  if (json.is_null()) {
    fetch = {};
    return ok();
  }
  JsonFields fields(json, "fetch");
  double share = static_cast<double>(fetch.retry_share_ppm) / kWholeShare;
  fields.read_or_default("retry_share", share,
                         static_cast<double>(FetchPolicy{}.retry_share_ppm) / kWholeShare);
  if (!(share >= 0 && share <= 1)) fields.fail("retry_share", "must be between 0 and 1");
  fields.read_nullable("retry_in_flight", fetch.retry_in_flight);
  if (fetch.retry_in_flight == 0U) {
    fields.fail("retry_in_flight", "must be at least 1 (null for no limit)");
  }
  REPRISE_TRY(fields.finish());
  fetch.retry_share_ppm = static_cast<std::uint32_t>(std::lround(share * kWholeShare));
  return ok();
}

void check_ranges(JsonFields& fields, const QueueConfig& config) {
  if (config.lease < kShortestLease || config.lease > kLongestLease) {
    fields.fail("lease", "must be between 100ms and 7d");
  }
  if (config.ttl == Duration::zero()) fields.fail("ttl", "must be more than 0 (null for none)");
  if (config.max_jobs == 0U) fields.fail("max_jobs", "must be at least 1 (null for no limit)");
  if (config.max_bytes == 0U) fields.fail("max_bytes", "must be at least 1 (null for no limit)");
  if (config.keep_dead == Duration::zero()) {
    fields.fail("keep_dead", "must be more than 0 (null for ever)");
  }
  if (config.keep_completed == Duration::zero()) {
    fields.fail("keep_completed", "must be more than 0 (null for not at all)");
  }
}

Status check_names(const QueueConfig& config) {
  if (!config.dead_letter_queue.empty()) {
    if (const Status name = check_name("queue", config.dead_letter_queue); !name) {
      return Error{name.error().code, "dead_letter_queue: " + name.error().detail};
    }
  }
  if (!config.on_dead_webhook.empty()) {
    if (const Status url = check_webhook_url(config.on_dead_webhook); !url) {
      return Error{url.error().code, "on_dead_webhook: " + url.error().detail};
    }
  }
  return ok();
}

}  // namespace

Status apply_config_json(QueueConfig& config, const Json& json) {
  const QueueConfig defaults;
  QueueConfig edited = config;
  JsonFields fields(json);
  fields.read_or_default("lease", edited.lease, defaults.lease);
  fields.read_nullable("ttl", edited.ttl);
  fields.read_nullable("max_jobs", edited.max_jobs);
  fields.read_nullable("max_bytes", edited.max_bytes);
  fields.read_or_default("key_window", edited.key_window, defaults.key_window);
  read_text_or_none(fields, "dead_letter_queue", edited.dead_letter_queue);
  fields.read_nullable("keep_dead", edited.keep_dead);
  fields.read_nullable("max_dead", edited.max_dead);
  fields.read_nullable("keep_completed", edited.keep_completed);
  read_text_or_none(fields, "on_dead_webhook", edited.on_dead_webhook);
  const Json* retry = fields.peek("retry");
  const Json* fetch = fields.peek("fetch");
  check_ranges(fields, edited);
  REPRISE_TRY(fields.finish());
  REPRISE_TRY(check_names(edited));
  if (retry != nullptr) REPRISE_TRY(apply_retry_json(edited.retry, *retry));
  if (fetch != nullptr) REPRISE_TRY(apply_fetch_json(edited.fetch, *fetch));
  config = edited;
  return ok();
}

void write_config_json(JsonWriter& out, const QueueConfig& config) {
  const auto optional_number = [&](std::string_view name, const auto& number) {
    out.key(name);
    number ? out.value(*number) : out.null();
  };
  const auto optional_duration = [&](std::string_view name, const auto& duration) {
    out.key(name);
    duration ? out.value(format_duration(*duration)) : out.null();
  };
  const auto optional_text = [&](std::string_view name, std::string_view text) {
    out.key(name);
    text.empty() ? out.null() : out.value(text);
  };
  out.begin_object();
  out.key("lease").value(format_duration(config.lease));
  optional_duration("ttl", config.ttl);
  out.key("retry");
  write_retry_json(out, config.retry);
  out.key("fetch").begin_object();
  out.key("retry_share").value(static_cast<double>(config.fetch.retry_share_ppm) / kWholeShare);
  optional_number("retry_in_flight", config.fetch.retry_in_flight);
  out.end_object();
  optional_number("max_jobs", config.max_jobs);
  optional_number("max_bytes", config.max_bytes);
  out.key("key_window").value(format_duration(config.key_window));
  optional_text("dead_letter_queue", config.dead_letter_queue);
  optional_duration("keep_dead", config.keep_dead);
  optional_number("max_dead", config.max_dead);
  optional_duration("keep_completed", config.keep_completed);
  optional_text("on_dead_webhook", config.on_dead_webhook);
  out.end_object();
}

}  // namespace reprise
