// Whatever a client puts into the body of a request or behind its '?': it is read within the limits
// or refused with an error that a client can act on, and what was read says the same when it is
// written and read again.
//
// An input is a letter for the kind of body, then the body.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "base/json_problem.h"
#include "base/json_view.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "fuzz/fuzz.h"
#include "model/job_filter.h"
#include "model/payload_vars.h"
#include "model/queue_config_json.h"
#include "server/ingest_body.h"
#include "server/json_scanner.h"
#include "server/push_body.h"
#include "server/query.h"

namespace reprise::server {
namespace {

const Limits kLimits{.max_payload_bytes = 100,
                     .max_batch_jobs = 10,
                     .max_batch_bytes = 300,
                     .max_headers = 3,
                     .max_header_bytes = 40,
                     .max_key_bytes = 20};

// Of everything that stands in a reply: a person must be able to read it.
void check_error(const Error& error) {
  REPRISE_CHECK(!error.detail.empty());
  REPRISE_CHECK(error.code != Errc::internal && error.code != Errc::corrupt);
}

bool is_json(std::string_view text) { return !find_json_problem(text, JsonNumbers::any); }

void check_job(const NewJob& job) {
  REPRISE_CHECK(job.payload.size() <= kLimits.max_payload_bytes);
  REPRISE_CHECK(job.payload_kind == PayloadKind::bytes || is_json(job.payload));
  REPRISE_CHECK(job.headers.size() <= kLimits.max_headers);
  for (const auto& [name, value] : job.headers) {
    REPRISE_CHECK(name.size() + value.size() <= kLimits.max_header_bytes);
    REPRISE_CHECK(is_valid_utf8(name) && is_valid_utf8(value));
  }
  REPRISE_CHECK(job.key.size() <= kLimits.max_key_bytes && is_valid_utf8(job.key));
  REPRISE_CHECK(job.delay >= Duration{} && (!job.ttl || *job.ttl > Duration{}));
  REPRISE_CHECK(scheduling_key_problem(job.scheduling.fairness_key).empty());
  REPRISE_CHECK(job.scheduling.weight >= 1 && job.scheduling.weight <= kMaxWeight);
  REPRISE_CHECK(job.scheduling.throttle_keys.size() <= kMaxThrottleKeys);
  for (const std::string& key : job.scheduling.throttle_keys) {
    REPRISE_CHECK(scheduling_key_problem(key).empty());
  }
}

// A job of a push that was read, written as a client would.
void write_job(JsonWriter& out, const NewJob& job) {
  out.begin_object();
  if (job.payload_kind == PayloadKind::json) {
    out.key("payload").raw(job.payload);
  } else {
    out.key("payload_base64").value(base64_encode(job.payload));
  }
  out.key("headers").begin_object();
  for (const auto& [name, value] : job.headers) out.key(name).value(value);
  out.end_object();
  out.key("key").value(job.key);
  out.key("priority").value(job.priority);
  out.key("weight").value(job.scheduling.weight);
  out.key("fairness_key").value(job.scheduling.fairness_key);
  out.end_object();
}

void check_push_again(const NewJob& job) {
  JsonWriter out;
  out.begin_object().key("jobs").begin_array();
  write_job(out, job);
  out.end_array().end_object();
  const std::string text = out.take();
  const auto again = parse_push_body(text, kLimits);
  if (!again) {
    // An empty key is no key, and need not be taken for one.
    REPRISE_CHECK(job.key.empty());
    return;
  }
  REPRISE_CHECK(again->jobs.size() == 1);
  const auto& read = again->jobs.front();
  if (!read) {
    REPRISE_CHECK(job.key.empty());
    return;
  }
  REPRISE_CHECK(read->payload == job.payload && read->payload_kind == job.payload_kind);
  REPRISE_CHECK(read->headers == job.headers && read->key == job.key);
  REPRISE_CHECK(read->priority == job.priority);
  REPRISE_CHECK(read->scheduling.weight == job.scheduling.weight);
  REPRISE_CHECK(read->scheduling.fairness_key == job.scheduling.fairness_key);
}

void check_push(std::string_view body) {
  const auto parsed = parse_push_body(body, kLimits);
  if (!parsed) return check_error(parsed.error());
  REPRISE_CHECK(is_json(body));
  REPRISE_CHECK(!parsed->jobs.empty() && parsed->jobs.size() <= kLimits.max_batch_jobs);
  for (std::size_t i = 0; i < parsed->jobs.size(); ++i) {
    const auto& job = parsed->jobs[i];
    if (job) {
      check_job(*job);
      check_push_again(*job);
    } else {
      check_error(job.error());
      REPRISE_CHECK(job.error().detail.find("jobs[" + std::to_string(i) + "]") !=
                    std::string::npos);
    }
  }
}

void check_ingest(std::string_view body) {
  const Timestamp now(std::chrono::hours(24 * 365 * 50));
  const auto parsed = parse_ingest_body(body, kLimits, now);
  if (!parsed) return check_error(parsed.error());
  REPRISE_CHECK(is_json(body));
  REPRISE_CHECK(!parsed->empty() && parsed->size() <= kMaxIngestedEvents);
  for (const auto& event : *parsed) {
    if (!event) {
      check_error(event.error());
      continue;
    }
    check_job(event->job);
    REPRISE_CHECK(event_type_problem(event->type).empty());
    if (event->queue) {
      REPRISE_CHECK(static_cast<bool>(check_name("queue", event->queue->name)));
      REPRISE_CHECK(static_cast<bool>(check_name("namespace", event->queue->ns)));
    }
  }
}

// The ways of reading JSON agree about what JSON is.
void check_json(std::string_view text) {
  const auto parsed = Json::parse(text);
  const auto problem = find_json_problem(text);
  // A name twice in one object is JSON, but nothing to be taken by Json.
  const bool duplicate = !parsed && parsed.error().detail.starts_with("duplicate field '");
  REPRISE_CHECK((static_cast<bool>(parsed) || duplicate) == !problem);
  if (problem) REPRISE_CHECK(problem->offset <= text.size() && !problem->problem.empty());
  if (is_valid_utf8(text)) {
    JsonScanner scanner(text);
    const bool scanned = !scanner.raw_value().empty() && scanner.at_end() && !scanner.failed();
    REPRISE_CHECK(scanned == is_json(text));
  }
  if (!parsed) return check_error(parsed.error());
  const std::string once = parsed->dump();
  const auto again = Json::parse(once);
  REPRISE_CHECK(again && again->dump() == once);
  REPRISE_CHECK(JsonView(text).present());
}

void check_filter(std::string_view text) {
  const auto json = Json::parse(text);
  if (!json) return;
  const auto filter = filter_from_json(*json);
  if (!filter) {
    check_error(filter.error());
    REPRISE_CHECK(filter.error().detail.find("filter") != std::string::npos);
    return;
  }
  JsonWriter out;
  write_filter_json(out, *filter);
  const auto written = Json::parse(out.text());
  REPRISE_CHECK(static_cast<bool>(written));
  const auto again = filter_from_json(*written);
  REPRISE_CHECK(again && *again == *filter);
}

void check_config(std::string_view text) {
  const auto json = Json::parse(text);
  if (!json) return;
  QueueConfig config;
  if (const auto status = apply_config_json(config, *json, text); !status) {
    REPRISE_CHECK(config == QueueConfig());
    return check_error(status.error());
  }
  JsonWriter out;
  write_config_json(out, config);
  const std::string written = out.take();
  const auto again = Json::parse(written);
  REPRISE_CHECK(static_cast<bool>(again));
  QueueConfig copy;
  const auto status = apply_config_json(copy, *again, written);
  REPRISE_CHECK(static_cast<bool>(status) && copy == config);
  if (const auto vars = PayloadVars::make(config)) {
    std::string payload(text);
    if (vars->apply(payload, PayloadKind::json, "orders")) {
      REPRISE_CHECK(is_json(payload));
      // What was added is there: nothing is added again.
      std::string twice = payload;
      REPRISE_CHECK(vars->apply(twice, PayloadKind::json, "orders") && twice == payload);
    }
  }
}

void check_query(std::string_view text) {
  auto query = Query::parse(text);
  if (!query) return check_error(query.error());
  for (const std::string_view name : {"status", "limit", "older_than"}) {
    if (const auto value = query->peek(name)) REPRISE_CHECK(is_valid_utf8(*value));
  }
  const auto number = query->take_number("limit", 1, 1000);
  REPRISE_CHECK(!number || (*number >= 1 && *number <= 1000));
  const auto age = query->take_duration("older_than");
  REPRISE_CHECK(!age || *age >= Duration{});
  query->take("status");
  for (const auto& [name, value] : query->take_prefixed("header.")) {
    REPRISE_CHECK(is_valid_utf8(name) && is_valid_utf8(value));
  }
  if (const auto status = query->finish(); !status) check_error(status.error());
}

}  // namespace
}  // namespace reprise::server

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reprise::server;
  const auto [kind, rest] = reprise::fuzz::choice_of(data, size);
  if (kind == 'p') check_push(rest);
  if (kind == 'i') check_ingest(rest);
  if (kind == 'j') check_json(rest);
  if (kind == 'f') check_filter(rest);
  if (kind == 'c') check_config(rest);
  if (kind == 'q') check_query(rest);
  return 0;
}

std::vector<std::string> reprise::fuzz::seeds() { return {}; }
