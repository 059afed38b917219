#include "server/hook_samples.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_fields.h"
#include "base/text.h"

namespace reprise::server {
namespace {

void read_payload(JsonFields& fields, JobRecord& job, const Limits& limits) {
  const Json* json = fields.peek("payload");
  std::string_view given_as = "payload";
  std::string base64;
  if (fields.read("payload_base64", base64)) {
    given_as = "payload_base64";
    if (json != nullptr) {
      fields.fail(given_as, "goes without payload: give one of the two", Errc::invalid_request);
    }
    if (auto bytes = base64_decode(base64)) {
      job.payload = std::move(*bytes);
      job.payload_kind = PayloadKind::bytes;
    } else {
      fields.fail(given_as, "is not base64 with padding");
    }
  } else {
    job.payload = json == nullptr ? "null" : json->dump();
  }
  if (job.payload.size() > limits.max_payload_bytes) {
    fields.fail(given_as, fmt::format("is beyond {}", format_bytes(limits.max_payload_bytes)),
                Errc::payload_too_large);
  }
}

void read_headers(JsonFields& fields, JobRecord& job) {
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
    job.headers.emplace_back(name, *value.string());
  }
}

void read_failure(JsonFields& fields, HookMessage& message) {
  message.attempts = 1;
  message.failures = 1;
  fields.read("id", message.id);
  fields.read("error", message.error);
  fields.read("error_type", message.error_type);
  fields.read("attempts", message.attempts);
  fields.read("failures", message.failures);
  std::uint64_t milliseconds = 0;
  if (fields.read("first_attempt_at", milliseconds)) {
    constexpr std::uint64_t kLatest = 253'402'300'799'999;  // the end of the year 9999
    if (milliseconds > kLatest) fields.fail("first_attempt_at", "is beyond the year 9999");
    message.first_attempt_at =
        Timestamp(std::chrono::milliseconds(std::min(milliseconds, kLatest)));
  }
}

void read_throttle_keys(JsonFields& fields, Scheduling& scheduling) {
  const Json* keys = fields.peek("throttle_keys");
  if (keys == nullptr || keys->is_null()) return;
  if (keys->array() == nullptr) {
    fields.fail("throttle_keys", "must be a list of names", Errc::invalid_request);
    return;
  }
  if (keys->array()->size() > kMaxThrottleKeys) {
    fields.fail("throttle_keys", fmt::format("must be at most {}", kMaxThrottleKeys));
    return;
  }
  for (const Json& key : *keys->array()) {
    if (key.string() == nullptr) {
      fields.fail("throttle_keys", "must be a list of names", Errc::invalid_request);
      return;
    }
    if (const std::string problem = scheduling_key_problem(*key.string()); !problem.empty()) {
      fields.fail("throttle_keys", "one " + problem);
      return;
    }
    add_throttle_key(scheduling, *key.string());
  }
}

void read_arrival(JsonFields& fields, JobRecord& job) {
  fields.read("priority", job.priority);
  Scheduling& scheduling = job.scheduling;
  if (fields.read("fairness_key", scheduling.fairness_key)) {
    const std::string problem = scheduling_key_problem(scheduling.fairness_key);
    if (!problem.empty()) fields.fail("fairness_key", problem);
  }
  if (fields.read("weight", scheduling.weight) &&
      (scheduling.weight < 1 || scheduling.weight > kMaxWeight)) {
    fields.fail("weight", fmt::format("must be between 1 and {}", kMaxWeight));
  }
  read_throttle_keys(fields, scheduling);
}

Result<HookMessage> read_sample(const Json& json, std::string path, HookKind hook,
                                const Limits& limits) {
  JsonFields fields(json, std::move(path));
  auto job = std::make_shared<JobRecord>();
  HookMessage message;
  read_payload(fields, *job, limits);
  read_headers(fields, *job);
  if (hook == HookKind::on_failure) {
    read_failure(fields, message);
  } else {
    read_arrival(fields, *job);
  }
  REPRISE_TRY(fields.finish());
  message.job = std::move(job);
  return message;
}

}  // namespace

Result<std::vector<HookMessage>> read_samples(const Json& json, HookKind hook,
                                              const Limits& limits) {
  if (json.array() == nullptr) {
    return Error{Errc::invalid_request, "samples: expected an array of objects"};
  }
  const Json::Array& samples = *json.array();
  if (samples.empty() || samples.size() > kMaxSamples) {
    return Error{Errc::invalid_field,
                 fmt::format("samples: give 1 to {}, not {}", kMaxSamples, samples.size())};
  }
  std::vector<HookMessage> messages;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    auto message = read_sample(samples[i], fmt::format("samples[{}]", i), hook, limits);
    if (!message) return message.error();
    messages.push_back(*std::move(message));
  }
  return messages;
}

}  // namespace reprise::server
