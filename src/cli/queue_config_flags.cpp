#include "cli/queue_config_flags.h"

#include <CLI/CLI.hpp>
#include <string_view>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/breaker_flag.h"
#include "cli/flags.h"
#include "cli/input_file.h"
#include "model/hook_kind.h"

namespace reprise::cli {
namespace {

using Value = std::optional<std::string>;
using Check = std::string (*)(const std::string&);

constexpr std::string_view kUnlimited = "unlimited";
constexpr char kOnEnqueueFile[] = "--on-enqueue-file";
constexpr char kOnFailureFile[] = "--on-failure-file";

bool is_reset(const std::string& text) { return text == "default" || text == "none"; }

std::string check_duration(const std::string& text) {
  return is_reset(text) ? std::string() : duration_problem(text);
}

std::string check_count(const std::string& text) {
  if (is_reset(text) || is_count(text)) return {};
  return "'" + text + "' is no whole number (or default)";
}

std::string check_limit(const std::string& text) {
  if (is_reset(text) || is_count(text) || text == kUnlimited) return {};
  return "'" + text + "' is no whole number (or unlimited, or default)";
}

std::string check_number(const std::string& text) {
  if (is_reset(text) || parse_number(text)) return {};
  return "'" + text + "' is no number (or default)";
}

std::string check_bytes(const std::string& text) {
  if (is_reset(text) || parse_bytes(text)) return {};
  return "'" + text + "' is no size; write 1048576, 64KiB, 16MiB or default";
}

std::string check_text(const std::string& text) {
  return text.empty() ? "must not be empty; none takes it away" : std::string();
}

std::string check_on_hook_error(const std::string& text) {
  if (is_reset(text) || on_hook_error_from_name(text)) return {};
  return "'" + text + "' is none of retry, policy, dlq (or default)";
}

std::string check_breaker(const std::string& text) {
  return is_reset(text) ? std::string() : breaker_problem(text);
}

std::string check_names(const std::string& text) {
  // Split as it is when it is sent, but for an empty name at the end, which nobody would see.
  bool empty = text.empty() || text.ends_with(',');
  for (const std::string& name : CLI::detail::split(text, ',')) empty |= name.empty();
  if (empty) return "'" + text + "' has an empty name; write a,b or none";
  return utf8_problem(text);
}

std::string check_defaults(const std::string& text) {
  if (is_reset(text)) return {};
  const auto parsed = Json::parse(text);
  if (!parsed) return parsed.error().detail;
  if (parsed->object() != nullptr) return {};
  return "must be a JSON object (or none), not " + std::string(parsed->kind_name());
}

CLI::Option* add(CLI::App& command, const std::string& group, const char* flag, Value& target,
                 const char* type, Check check, const char* description) {
  return command.add_option(flag, target, description)->type_name(type)->check(check)->group(group);
}

// Writes members of an object, each only when its flag was given.
class MemberWriter {
 public:
  explicit MemberWriter(JsonWriter& json) : json_(json) {}

  void text(std::string_view name, const Value& value) {
    if (begin(name, value)) json_.value(*value);
  }
  void size(std::string_view name, const Value& value) {
    if (begin(name, value)) json_.value(parse_bytes(*value).value_or(0));
  }
  void number(std::string_view name, const Value& value) {
    if (begin(name, value)) json_.value(parse_number(*value).value_or(0));
  }
  void limit(std::string_view name, const Value& value) {
    value == kUnlimited ? text(name, value) : size(name, value);
  }
  void breaker(std::string_view name, const Value& value) {
    if (begin(name, value)) write_breaker(json_, *value);
  }
  // As it is given: numbers keep their text.
  void json(std::string_view name, const Value& value) {
    if (begin(name, value)) json_.raw(*value);
  }
  void names(std::string_view name, const std::vector<std::string>& lists) {
    if (lists.empty()) return;
    json_.key(name);
    if (lists.size() == 1 && is_reset(lists.front())) {
      json_.null();
      return;
    }
    json_.begin_array();
    for (const std::string& list : lists) {
      for (const std::string& one : CLI::detail::split(list, ',')) json_.value(one);
    }
    json_.end_array();
  }
  void script(std::string_view name, const char* flag, const Value& path) {
    if (begin(name, path)) json_.value(read_script_file(flag, *path));
  }

 private:
  // False when nothing is left to write: not given, or put back to its default.
  bool begin(std::string_view name, const Value& value) {
    if (!value) return false;
    json_.key(name);
    if (!is_reset(*value)) return true;
    json_.null();
    return false;
  }

  JsonWriter& json_;
};

void write_retry(JsonWriter& json, const RetryFlags& flags) {
  MemberWriter members(json);
  json.begin_object();
  members.limit("attempts", flags.attempts);
  members.limit("max_retries", flags.max_retries);
  members.text("cooldown", flags.cooldown);
  if (flags.any_backoff()) {
    json.key("backoff").begin_object();
    members.text("base", flags.backoff_base);
    members.number("factor", flags.backoff_factor);
    members.text("max", flags.backoff_max);
    members.number("jitter", flags.backoff_jitter);
    json.end_object();
  }
  json.end_object();
}

void write_hooks(MemberWriter& members, const HookFlags& flags) {
  check_one_standard_input(
      {flags.on_enqueue_file.value_or(""), flags.on_failure_file.value_or("")});
  members.script("on_enqueue", kOnEnqueueFile, flags.on_enqueue_file);
  members.script("on_failure", kOnFailureFile, flags.on_failure_file);
  members.text("on_hook_error", flags.on_hook_error);
  members.size("hook_timeout_ms", flags.timeout_ms);
  members.size("hook_memory_bytes", flags.memory);
}

void add_hook_flags(CLI::App& command, HookFlags& flags, const std::string& group) {
  add(command, group, kOnEnqueueFile, flags.on_enqueue_file, "FILE", check_text,
      "A Lua hook that is asked for each push; -: standard input [none]");
  add(command, group, kOnFailureFile, flags.on_failure_file, "FILE", check_text,
      "A Lua hook that is asked for each failure; -: standard input [none]");
  add(command, group, "--on-hook-error", flags.on_hook_error, "WHAT", check_on_hook_error,
      "When on_failure gives no answer: retry, policy or dlq [retry]");
  add(command, group, "--hook-timeout-ms", flags.timeout_ms, "N", check_count,
      "Time of one call of a hook [the server's]");
  add(command, group, "--hook-memory", flags.memory, "SIZE", check_bytes,
      "Memory of a hook [the server's]");
}

void add_scheduling_flags(CLI::App& command, ConfigFlags& flags, const std::string& group) {
  add(command, group, "--retry-share", flags.retry_share, "X", check_number,
      "While both lanes wait, this share of the jobs given out are retries [0.2]");
  add(command, group, "--retry-in-flight", flags.retry_in_flight, "N", check_count,
      "At most so many retries leased at once [no limit]");
  add(command, group, "--concurrency", flags.concurrency, "N", check_count,
      "At most so many jobs leased at once [no limit]");
  add(command, group, "--concurrency-per-key", flags.concurrency_per_key, "N", check_count,
      "The same of each fairness key [no limit]");
  add(command, group, "--breaker", flags.breaker, "FIELDS", check_breaker,
      "Give out nothing while nearly all jobs fail; on, or any of "
      "failure_rate=0.5,window=1m,min=20,pause=30s,canaries=1 [none]");
}

void add_dead_letter_flags(CLI::App& command, ConfigFlags& flags, const std::string& group) {
  add(command, group, "--dead-letter-queue", flags.dead_letter_queue, "NAME", check_text,
      "Jobs that die go to this queue [none]");
  add(command, group, "--keep-dead", flags.keep_dead, "DURATION", check_duration,
      "Dead jobs are deleted after this long [never]");
  add(command, group, "--max-dead", flags.max_dead, "N", check_count,
      "The oldest dead jobs beyond this many are deleted [none]");
  add(command, group, "--keep-completed", flags.keep_completed, "DURATION", check_duration,
      "Finished jobs stay visible for this long [not at all]");
  add(command, group, "--on-dead-webhook", flags.on_dead_webhook, "URL", check_text,
      "Tell each death to this address [none]");
}

void add_payload_flags(CLI::App& command, ConfigFlags& flags, const std::string& group) {
  command
      .add_option(
          "--vars", flags.vars,
          "Fields that a payload must have: a,b; may be repeated; none takes them away [none]")
      ->allow_extra_args(false)
      ->type_name("NAMES")
      ->check(check_names)
      ->group(group);
  add(command, group, "--defaults", flags.defaults, "JSON", check_defaults,
      "An object: its fields are added to payloads that do not have them [none]");
}

}  // namespace

void add_retry_flags(CLI::App& command, RetryFlags& flags, const std::string& group) {
  auto* attempts = add(command, group, "--retry-attempts", flags.attempts, "N", check_limit,
                       "Dead at this many failures, or unlimited [0: at the first]");
  add(command, group, "--max-retries", flags.max_retries, "N", check_limit,
      "Instead: this many retries, or unlimited")
      ->excludes(attempts);
  auto* cooldown = add(command, group, "--retry-cooldown", flags.cooldown, "DURATION",
                       check_duration, "Wait before each retry [0s]");
  add(command, group, "--backoff-base", flags.backoff_base, "DURATION", check_duration,
      "Instead: the wait before the first retry [1s]")
      ->excludes(cooldown);
  add(command, group, "--backoff-factor", flags.backoff_factor, "X", check_number,
      "Each wait is so many times the one before [4]")
      ->excludes(cooldown);
  add(command, group, "--backoff-max", flags.backoff_max, "DURATION", check_duration,
      "No wait is longer [1h]")
      ->excludes(cooldown);
  add(command, group, "--backoff-jitter", flags.backoff_jitter, "X", check_number,
      "Each wait is up to this share longer or shorter [0]")
      ->excludes(cooldown);
}

void add_config_flags(CLI::App& command, ConfigFlags& flags) {
  const std::string group = "Queue config (each also takes: default)";
  add(command, group, "--lease", flags.lease, "DURATION", check_duration,
      "How long a claimed job is held [30s]");
  add_retry_flags(command, flags.retry, group);
  add_scheduling_flags(command, flags, group);
  add_dead_letter_flags(command, flags, group);
  add_hook_flags(command, flags.hooks, group);
  add(command, group, "--ttl", flags.ttl, "DURATION", check_duration,
      "A job not finished this long after its push dies [none]");
  add(command, group, "--max-jobs", flags.max_jobs, "N", check_count,
      "Refuse pushes beyond this many jobs [none]");
  add(command, group, "--max-bytes", flags.max_bytes, "SIZE", check_bytes,
      "Refuse pushes beyond this size [none]");
  add(command, group, "--key-window", flags.key_window, "DURATION", check_duration,
      "How long idempotency keys are remembered [1d]");
  add_payload_flags(command, flags, group);
}

std::string retry_json(const RetryFlags& flags) {
  JsonWriter json;
  write_retry(json, flags);
  return json.take();
}

std::string config_json(const ConfigFlags& flags) {
  JsonWriter json;
  MemberWriter members(json);
  json.begin_object();
  members.text("lease", flags.lease);
  members.text("ttl", flags.ttl);
  if (flags.retry.any()) write_retry(json.key("retry"), flags.retry);
  if (flags.retry_share || flags.retry_in_flight) {
    json.key("fetch").begin_object();
    members.number("retry_share", flags.retry_share);
    members.size("retry_in_flight", flags.retry_in_flight);
    json.end_object();
  }
  members.size("concurrency", flags.concurrency);
  members.size("concurrency_per_key", flags.concurrency_per_key);
  members.breaker("breaker", flags.breaker);
  members.text("dead_letter_queue", flags.dead_letter_queue);
  members.text("keep_dead", flags.keep_dead);
  members.size("max_dead", flags.max_dead);
  members.text("keep_completed", flags.keep_completed);
  members.text("on_dead_webhook", flags.on_dead_webhook);
  write_hooks(members, flags.hooks);
  members.size("max_jobs", flags.max_jobs);
  members.size("max_bytes", flags.max_bytes);
  members.text("key_window", flags.key_window);
  members.names("vars", flags.vars);
  members.json("defaults", flags.defaults);
  json.end_object();
  return json.take();
}

}  // namespace reprise::cli
