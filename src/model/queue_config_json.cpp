#include "model/queue_config_json.h"

#include <algorithm>
#include <cmath>

#include "base/duration.h"
#include "base/json_fields.h"
#include "base/json_view.h"
#include "model/limits.h"
#include "model/payload_vars.h"
#include "model/webhook.h"

namespace reprise {
namespace {

constexpr Duration kShortestLease = std::chrono::milliseconds(100);
constexpr Duration kLongestLease = std::chrono::hours(24 * 7);

// A text that is empty when there is none.
void read_text_or_none(JsonFields& fields, std::string_view name, std::string& text,
                       Errc if_empty = Errc::invalid_field) {
  if (fields.read(name, text) && text.empty()) {
    fields.fail(name, "is empty (null for none)", if_empty);
  }
  if (const Json* found = fields.peek(name); found != nullptr && found->is_null()) text.clear();
}

// Of the whole, 0 to 1.
double as_part(std::uint32_t ppm) { return static_cast<double>(ppm) / kWholeShare; }

Status apply_fetch_json(FetchPolicy& fetch, const Json& json) {
  if (json.is_null()) {
    fetch = {};
    return ok();
  }
  JsonFields fields(json, "fetch");
  double share = as_part(fetch.retry_share_ppm);
  fields.read_or_default("retry_share", share, as_part(FetchPolicy{}.retry_share_ppm));
  if (!(share >= 0 && share <= 1)) fields.fail("retry_share", "must be between 0 and 1");
  fields.read_nullable("retry_in_flight", fetch.retry_in_flight);
  if (fetch.retry_in_flight == 0U) {
    fields.fail("retry_in_flight", "must be at least 1 (null for no limit)");
  }
  REPRISE_TRY(fields.finish());
  fetch.retry_share_ppm = static_cast<std::uint32_t>(std::lround(share * kWholeShare));
  return ok();
}

// Told as a whole: what it does not name has its default, whatever the queue had before.
Status apply_breaker_json(std::optional<OutagePolicy>& breaker, const Json& json) {
  if (json.is_null()) {
    breaker.reset();
    return ok();
  }
  JsonFields fields(json, "breaker");
  const OutagePolicy usual;
  OutagePolicy policy;
  double rate = as_part(policy.failure_rate_ppm);
  fields.read_or_default("failure_rate", rate, as_part(usual.failure_rate_ppm));
  if (!(rate > 0 && rate <= 1)) fields.fail("failure_rate", "must be more than 0 and at most 1");
  fields.read_or_default("window", policy.window, usual.window);
  if (policy.window < OutagePolicy::kShortestWindow ||
      policy.window > OutagePolicy::kLongestWindow) {
    fields.fail("window", "must be between 1s and 1h");
  }
  fields.read_or_default("min", policy.min, usual.min);
  if (policy.min < 1 || policy.min > OutagePolicy::kMostMin) {
    fields.fail("min", "must be between 1 and 1000000");
  }
  fields.read_or_default("pause", policy.pause, usual.pause);
  if (policy.pause < OutagePolicy::kShortestPause || policy.pause > OutagePolicy::kLongestPause) {
    fields.fail("pause", "must be between 100ms and 1d");
  }
  fields.read_or_default("canaries", policy.canaries, usual.canaries);
  if (policy.canaries < 1 || policy.canaries > OutagePolicy::kMostCanaries) {
    fields.fail("canaries", "must be between 1 and 1000");
  }
  REPRISE_TRY(fields.finish());
  // Above 0 stays above 0.
  policy.failure_rate_ppm =
      std::max(1U, static_cast<std::uint32_t>(std::lround(rate * kWholeShare)));
  breaker = policy;
  return ok();
}

void write_breaker_json(JsonWriter& out, const std::optional<OutagePolicy>& breaker) {
  out.key("breaker");
  if (!breaker) {
    out.null();
    return;
  }
  out.begin_object();
  out.key("failure_rate").value(as_part(breaker->failure_rate_ppm));
  out.key("window").value(format_duration(breaker->window));
  out.key("min").value(breaker->min);
  out.key("pause").value(format_duration(breaker->pause));
  out.key("canaries").value(breaker->canaries);
  out.end_object();
}

void read_hooks(JsonFields& fields, QueueConfig& config) {
  for (std::size_t kind = 0; kind < kHookKindCount; ++kind) {
    const std::string_view name = hook_name(static_cast<HookKind>(kind));
    read_text_or_none(fields, name, config.hooks[kind], Errc::invalid_script);
    if (config.hooks[kind].size() > kMaxScriptBytes) {
      fields.fail(name,
                  "the script has " + std::to_string(config.hooks[kind].size()) +
                      " bytes; at most " + std::to_string(kMaxScriptBytes) + " are taken",
                  Errc::script_too_large);
    }
  }
  std::string what(on_hook_error_name(config.on_hook_error));
  fields.read_or_default("on_hook_error", what, std::string(on_hook_error_name({})));
  if (const auto known = on_hook_error_from_name(what)) {
    config.on_hook_error = *known;
  } else {
    fields.fail("on_hook_error", "must be retry, policy or dlq");
  }
  fields.read_nullable("hook_timeout_ms", config.hook_timeout_ms);
  if (config.hook_timeout_ms &&
      (*config.hook_timeout_ms < 1 || *config.hook_timeout_ms > kLongestHookTimeoutMs)) {
    fields.fail("hook_timeout_ms", "must be between 1 and 1000 (null for the server's)");
  }
  fields.read_nullable("hook_memory_bytes", config.hook_memory_bytes);
  if (config.hook_memory_bytes && (*config.hook_memory_bytes < kLeastHookMemoryBytes ||
                                   *config.hook_memory_bytes > kMostHookMemoryBytes)) {
    fields.fail("hook_memory_bytes", "must be between 131072 and 67108864 (null for the server's)");
  }
}

void read_vars(JsonFields& fields, std::vector<std::string>& vars) {
  const Json* found = fields.peek("vars");
  if (found == nullptr) return;
  vars.clear();
  if (found->is_null()) return;
  const auto fail = [&](const std::string& problem, Errc code = Errc::invalid_field) {
    fields.fail("vars", problem, code);
  };
  const Json::Array* names = found->array();
  if (names == nullptr) {
    return fail("expected an array of names, got " + std::string(found->kind_name()),
                Errc::invalid_request);
  }
  if (names->size() > kMaxVars) {
    return fail("has " + std::to_string(names->size()) + " names; at most " +
                std::to_string(kMaxVars) + " are taken");
  }
  for (const Json& element : *names) {
    const std::string* name = element.string();
    if (name == nullptr) {
      return fail("expected names, got " + std::string(element.kind_name()), Errc::invalid_request);
    }
    if (name->empty()) return fail("has an empty name");
    if (name->size() > kMaxVarBytes) {
      return fail("has a name of " + std::to_string(name->size()) + " bytes; at most " +
                  std::to_string(kMaxVarBytes) + " are taken");
    }
    if (std::ranges::find(vars, *name) != vars.end()) return fail("has '" + *name + "' twice");
    vars.push_back(*name);
  }
}

// Valid JSON without the blanks between its tokens.
std::string compact(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (!in_string && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) continue;
    out.push_back(c);
    if (c == '"') in_string = !in_string;
    if (c == '\\' && i + 1 < json.size()) out.push_back(json[++i]);
  }
  return out;
}

void read_defaults(JsonFields& fields, std::string_view text, std::string& defaults) {
  const Json* found = fields.peek("defaults");
  if (found == nullptr) return;
  defaults.clear();
  if (found->is_null()) return;
  if (found->object() == nullptr) {
    return fields.fail("defaults", "expected an object, got " + std::string(found->kind_name()),
                       Errc::invalid_request);
  }
  if (found->object()->empty()) return;
  const JsonView written = JsonView(text)["defaults"];
  defaults = written.is_object() ? compact(written.raw()) : found->dump();
  if (defaults.size() > kMaxDefaultsBytes) {
    fields.fail("defaults", "has " + std::to_string(defaults.size()) + " bytes; at most " +
                                std::to_string(kMaxDefaultsBytes) + " are taken");
  }
}

void check_ranges(JsonFields& fields, const QueueConfig& config) {
  if (config.lease < kShortestLease || config.lease > kLongestLease) {
    fields.fail("lease", "must be between 100ms and 7d");
  }
  if (config.ttl == Duration::zero()) fields.fail("ttl", "must be more than 0 (null for none)");
  if (config.concurrency == 0U) {
    fields.fail("concurrency", "must be at least 1 (null for no limit)");
  }
  if (config.concurrency_per_key == 0U) {
    fields.fail("concurrency_per_key", "must be at least 1 (null for no limit)");
  }
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

Status apply_config_json(QueueConfig& config, const Json& json, std::string_view text) {
  const QueueConfig defaults;
  QueueConfig edited = config;
  JsonFields fields(json);
  fields.read_or_default("lease", edited.lease, defaults.lease);
  fields.read_nullable("ttl", edited.ttl);
  fields.read_nullable("concurrency", edited.concurrency);
  fields.read_nullable("concurrency_per_key", edited.concurrency_per_key);
  fields.read_nullable("max_jobs", edited.max_jobs);
  fields.read_nullable("max_bytes", edited.max_bytes);
  fields.read_or_default("key_window", edited.key_window, defaults.key_window);
  read_text_or_none(fields, "dead_letter_queue", edited.dead_letter_queue);
  fields.read_nullable("keep_dead", edited.keep_dead);
  fields.read_nullable("max_dead", edited.max_dead);
  fields.read_nullable("keep_completed", edited.keep_completed);
  read_text_or_none(fields, "on_dead_webhook", edited.on_dead_webhook);
  read_hooks(fields, edited);
  read_vars(fields, edited.vars);
  read_defaults(fields, text, edited.defaults);
  const Json* retry = fields.peek("retry");
  const Json* fetch = fields.peek("fetch");
  const Json* breaker = fields.peek("breaker");
  check_ranges(fields, edited);
  REPRISE_TRY(fields.finish());
  REPRISE_TRY(check_names(edited));
  if (retry != nullptr) REPRISE_TRY(apply_retry_json(edited.retry, *retry));
  if (fetch != nullptr) REPRISE_TRY(apply_fetch_json(edited.fetch, *fetch));
  if (breaker != nullptr) REPRISE_TRY(apply_breaker_json(edited.breaker, *breaker));
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
  out.key("retry_share").value(as_part(config.fetch.retry_share_ppm));
  optional_number("retry_in_flight", config.fetch.retry_in_flight);
  out.end_object();
  optional_number("concurrency", config.concurrency);
  optional_number("concurrency_per_key", config.concurrency_per_key);
  write_breaker_json(out, config.breaker);
  optional_number("max_jobs", config.max_jobs);
  optional_number("max_bytes", config.max_bytes);
  out.key("key_window").value(format_duration(config.key_window));
  optional_text("dead_letter_queue", config.dead_letter_queue);
  optional_duration("keep_dead", config.keep_dead);
  optional_number("max_dead", config.max_dead);
  optional_duration("keep_completed", config.keep_completed);
  optional_text("on_dead_webhook", config.on_dead_webhook);
  for (std::size_t kind = 0; kind < kHookKindCount; ++kind) {
    optional_text(hook_name(static_cast<HookKind>(kind)), config.hooks[kind]);
  }
  out.key("on_hook_error").value(on_hook_error_name(config.on_hook_error));
  optional_number("hook_timeout_ms", config.hook_timeout_ms);
  optional_number("hook_memory_bytes", config.hook_memory_bytes);
  out.key("vars").begin_array();
  for (const std::string& name : config.vars) out.value(name);
  out.end_array();
  out.key("defaults");
  config.defaults.empty() ? out.null() : out.raw(config.defaults);
  out.end_object();
}

}  // namespace reprise
