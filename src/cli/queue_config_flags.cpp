#include "cli/queue_config_flags.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/flags.h"

namespace reprise::cli {
namespace {

using Value = std::optional<std::string>;
using Check = std::string (*)(const std::string&);

constexpr std::string_view kUnlimited = "unlimited";

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

std::optional<double> parse_number(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || !std::isfinite(value)) return std::nullopt;
  return value;
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
  add(command, group, "--retry-share", flags.retry_share, "X", check_number,
      "While both lanes wait, this share of the jobs given out are retries [0.2]");
  add(command, group, "--retry-in-flight", flags.retry_in_flight, "N", check_count,
      "At most so many retries leased at once [no limit]");
  add_dead_letter_flags(command, flags, group);
  add(command, group, "--ttl", flags.ttl, "DURATION", check_duration,
      "A job not finished this long after its push dies [none]");
  add(command, group, "--max-jobs", flags.max_jobs, "N", check_count,
      "Refuse pushes beyond this many jobs [none]");
  add(command, group, "--max-bytes", flags.max_bytes, "SIZE", check_bytes,
      "Refuse pushes beyond this size [none]");
  add(command, group, "--key-window", flags.key_window, "DURATION", check_duration,
      "How long idempotency keys are remembered [1d]");
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
  members.text("dead_letter_queue", flags.dead_letter_queue);
  members.text("keep_dead", flags.keep_dead);
  members.size("max_dead", flags.max_dead);
  members.text("keep_completed", flags.keep_completed);
  members.text("on_dead_webhook", flags.on_dead_webhook);
  members.size("max_jobs", flags.max_jobs);
  members.size("max_bytes", flags.max_bytes);
  members.text("key_window", flags.key_window);
  json.end_object();
  return json.take();
}

}  // namespace reprise::cli
