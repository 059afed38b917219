// The flags of a queue's config (docs/cli.md, "queue create, update") and the JSON they become.
// Values are kept as typed: text that no server could accept is a usage error that names the flag,
// ranges and rules are the server's. What is not given is not sent.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace reprise::cli {

struct RetryFlags {
  std::optional<std::string> attempts;
  std::optional<std::string> max_retries;
  std::optional<std::string> cooldown;
  std::optional<std::string> backoff_base;
  std::optional<std::string> backoff_factor;
  std::optional<std::string> backoff_max;
  std::optional<std::string> backoff_jitter;

  bool any_backoff() const {
    return backoff_base || backoff_factor || backoff_max || backoff_jitter;
  }
  bool any() const { return attempts || max_retries || cooldown || any_backoff(); }
};

struct HookFlags {
  std::optional<std::string> on_enqueue_file;
  std::optional<std::string> on_failure_file;
  std::optional<std::string> on_hook_error;
  std::optional<std::string> timeout_ms;
  std::optional<std::string> memory;
};

struct ConfigFlags {
  RetryFlags retry;
  HookFlags hooks;
  std::optional<std::string> lease;
  std::optional<std::string> retry_share;
  std::optional<std::string> retry_in_flight;
  std::optional<std::string> concurrency;
  std::optional<std::string> concurrency_per_key;
  std::optional<std::string> breaker;
  std::optional<std::string> dead_letter_queue;
  std::optional<std::string> keep_dead;
  std::optional<std::string> max_dead;
  std::optional<std::string> keep_completed;
  std::optional<std::string> on_dead_webhook;
  std::optional<std::string> ttl;
  std::optional<std::string> max_jobs;
  std::optional<std::string> max_bytes;
  std::optional<std::string> key_window;
  std::vector<std::string> vars;  // each one name or several, with commas between them
  std::optional<std::string> defaults;
};

// Of a pair that excludes each other (attempts and max retries, cooldown and backoff) the parser
// takes only one.
void add_retry_flags(CLI::App& command, RetryFlags& flags, const std::string& group);
void add_config_flags(CLI::App& command, ConfigFlags& flags);

// The object of the API's field `retry`. The values have passed the flags' checks.
std::string retry_json(const RetryFlags& flags);
// "{}" when no flag was given. Reads the files of hooks: CLI::ValidationError when one cannot be.
std::string config_json(const ConfigFlags& flags);

}  // namespace reprise::cli
