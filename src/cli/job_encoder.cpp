#include "cli/job_encoder.h"

#include <fmt/format.h>

#include <map>

#include "base/json_view.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/flags.h"
#include "cli/json_input.h"

namespace reprise::cli {
namespace {

Error refuse(std::string problem) { return {Errc::invalid_request, std::move(problem)}; }

// `,"delay":"5m","headers":{…}}`: the end of an object that has begun with a payload.
std::string encode_fields(const JobFields& fields) {
  JsonWriter json;
  json.begin_object();
  if (fields.delay) json.key("delay").value(*fields.delay);
  if (fields.priority) json.key("priority").value(*fields.priority);
  if (fields.key) json.key("key").value(*fields.key);
  if (fields.ttl) json.key("ttl").value(*fields.ttl);
  if (!fields.headers.empty()) {
    std::map<std::string, std::string> headers;
    for (const auto& header : fields.headers) {
      auto [name, value] = split_header(header);
      headers[name] = std::move(value);
    }
    json.key("headers").begin_object();
    for (const auto& [name, value] : headers) json.key(name).value(value);
    json.end_object();
  }
  if (fields.fairness_key) json.key("fairness_key").value(*fields.fairness_key);
  if (fields.weight) json.key("weight").value(*fields.weight);
  if (!fields.throttle_keys.empty()) {
    json.key("throttle_keys").begin_array();
    for (const auto& key : fields.throttle_keys) json.value(key);
    json.end_array();
  }
  json.end_object();
  const std::string object = json.take();
  return object == "{}" ? "}" : "," + object.substr(1);
}

// A whole job with `key` as its own, if it has none.
std::string with_key(std::string_view text, const Json& job, std::string_view key) {
  const Json* const own = job.find("key");
  if (key.empty() || (own != nullptr && !own->is_null())) return std::string(text);
  std::string written;
  append_json_string(written, key);
  std::string result(text);
  if (own != nullptr) {
    // Null means none, and a name must not be there twice.
    const std::string_view null = JsonView(text)["key"].raw();
    result.replace(static_cast<std::size_t>(null.data() - text.data()), null.size(), written);
    return result;
  }
  const char* const comma = job.object()->empty() ? "" : ",";
  result.insert(text.find('{') + 1, fmt::format(R"("key":{}{})", written, comma));
  return result;
}

}  // namespace

JobEncoder::JobEncoder(Input input, const JobFields& fields)
    : input_(input), has_key_(fields.key.has_value()), rest_(encode_fields(fields)) {}

Result<std::string> JobEncoder::encode(std::string_view text, std::string_view key) const {
  std::string job;
  switch (input_) {
    case Input::json: {
      if (const auto parsed = parse_json_input("the payload", text); !parsed) {
        return parsed.error();
      }
      return finish(job.append(R"({"payload":)").append(text), key);
    }
    case Input::bytes:
      return finish(job.append(R"({"payload_base64":")").append(base64_encode(text)).append("\""),
                    key);
    case Input::base64: {
      if (!base64_decode(text)) return refuse("the payload is not base64");
      return finish(job.append(R"({"payload_base64":")").append(text).append("\""), key);
    }
    case Input::envelope: {
      const auto parsed = parse_json_input("the job", text);
      if (!parsed) return parsed.error();
      if (parsed->object() == nullptr) {
        return refuse("the job must be an object with a payload, not " +
                      std::string(parsed->kind_name()));
      }
      return with_key(text, *parsed, key);
    }
  }
  return refuse("unknown input");
}

std::string JobEncoder::finish(std::string job, std::string_view key) const {
  if (!key.empty() && !has_key_) {
    job += R"(,"key":)";
    append_json_string(job, key);
  }
  return job.append(rest_);
}

std::string push_body(const std::vector<std::string_view>& jobs, bool create) {
  std::size_t bytes = 64;
  for (const auto& job : jobs) bytes += job.size() + 1;
  std::string body;
  body.reserve(bytes);
  body += R"({"jobs":[)";
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (i > 0) body += ',';
    body += jobs[i];
  }
  body += create ? R"(],"create":true})" : "]}";
  return body;
}

}  // namespace reprise::cli
