#include "cli/hook_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/json.h"
#include "base/json_problem.h"
#include "base/json_writer.h"
#include "cli/reply_text.h"

namespace reprise::cli {
namespace {

// docs/api.md, "Hooks".
constexpr std::array<std::string_view, 6> kOfFailure = {"id",       "error",    "error_type",
                                                        "attempts", "failures", "first_attempt_at"};
constexpr std::array<std::string_view, 4> kOfEnqueue = {"priority", "fairness_key", "weight",
                                                        "throttle_keys"};
// Fields of jobs that no hook is told.
constexpr std::array<std::string_view, 19> kOfJobsOnly = {
    "queue",      "namespace",    "status", "lane",       "key",
    "generation", "pushed_at",    "due_at", "expires_at", "lease_expires_at",
    "ended_at",   "worker",       "reason", "last_error", "last_error_type",
    "history",    "origin_queue", "token",  "dead_letter"};

template <std::size_t Count>
bool is_one_of(const std::array<std::string_view, Count>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_left_out(std::string_view name, HookKind hook) {
  if (is_one_of(kOfJobsOnly, name)) return true;
  return hook == HookKind::on_failure ? is_one_of(kOfEnqueue, name) : is_one_of(kOfFailure, name);
}

Error refuse(std::string problem) { return {Errc::invalid_request, std::move(problem)}; }

Error not_json(std::string_view text, std::string_view where, const Error& error) {
  const auto found = find_json_problem(text);
  if (!found) return refuse(fmt::format("{}{}", where, error.detail));
  return refuse(fmt::format("{}not valid JSON: {} at {}", where, found->problem,
                            describe_position(text, found->offset)));
}

class SampleReader {
 public:
  explicit SampleReader(HookKind hook) : hook_(hook) {}

  // `text` is valid JSON.
  Status add_document(std::string_view text) {
    const JsonView document(text);
    // A listing of jobs, or the reply to a claim.
    const auto jobs = document["jobs"];
    if (!document.is_array() && !jobs.is_array()) return add(document);
    for (const auto& each : (jobs.is_array() ? jobs : document).elements()) {
      REPRISE_TRY(add(each));
    }
    return ok();
  }

  // One sample in each line; lines without one are skipped.
  Status add_lines(std::string_view text) {
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const auto line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      if (const auto parsed = Json::parse(line); !parsed) {
        return not_json(line, fmt::format("line {}: ", number), parsed.error());
      }
      REPRISE_TRY(add_document(line));
    }
    return ok();
  }

  std::vector<std::string> take() { return std::move(samples_); }

 private:
  Status add(JsonView given) {
    if (!given.is_object()) {
      return refuse(fmt::format("sample {} is no object", samples_.size()));
    }
    samples_.push_back(hook_sample(given, hook_));
    return ok();
  }

  HookKind hook_;
  std::vector<std::string> samples_;
};

// What a hook would be told at the failure that the sample stands for.
struct Counts {
  std::uint64_t attempts = 0;
  std::uint64_t failures = 0;
};

Counts counts_at_failure(JsonView job) {
  const std::string status = text_of(job["status"]);
  const bool leased = job["token"].present() || status == "active";
  const bool waits_for_lease = status == "pending" || status == "scheduled";
  Counts counts{.attempts = job["attempts"].unsigned_integer().value_or(0),
                .failures = job["failures"].unsigned_integer().value_or(0)};
  if (waits_for_lease) ++counts.attempts;
  if (leased || waits_for_lease) ++counts.failures;
  return counts;
}

void write_failure_of_job(JsonWriter& json, JsonView job) {
  const auto counts = counts_at_failure(job);
  json.key("attempts").value(counts.attempts).key("failures").value(counts.failures);
  if (const auto error = job["last_error"]; error.is_string() && !job["error"].present()) {
    json.key("error").raw(error.raw());
  }
  if (const auto type = job["last_error_type"]; type.is_string() && !job["error_type"].present()) {
    json.key("error_type").raw(type.raw());
  }
}

}  // namespace

std::string hook_sample(JsonView given, HookKind hook) {
  // Only the server writes these two; a sample by hand has neither.
  const bool is_job = given["status"].present() || given["token"].present();
  const bool as_failure = is_job && hook == HookKind::on_failure;
  JsonWriter json;
  json.begin_object();
  for (const auto& [name, value] : given.members()) {
    if (is_left_out(name, hook)) continue;
    if (as_failure && (name == "attempts" || name == "failures")) continue;
    json.key(name).raw(value.raw());
  }
  if (as_failure) write_failure_of_job(json, given);
  json.end_object();
  return json.take();
}

Result<std::vector<std::string>> parse_hook_samples(std::string_view text, HookKind hook) {
  SampleReader reader(hook);
  const auto whole = Json::parse(text);
  const auto added = whole ? reader.add_document(text) : reader.add_lines(text);
  if (!added) {
    // Text that begins no line with a whole value is one document with a mistake in it.
    const bool one_document = !whole && !Json::parse(text.substr(0, text.find('\n')));
    return one_document ? not_json(text, "", whole.error()) : added.error();
  }
  auto samples = reader.take();
  if (samples.empty()) return refuse("there is no sample in it");
  return samples;
}

}  // namespace reprise::cli
