#include "cli/job_encoder.h"

#include <fmt/format.h>

#include <map>

#include "base/json.h"
#include "base/json_problem.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/flags.h"

namespace reprise::cli {
namespace {

Error refuse(std::string problem) { return {Errc::invalid_request, std::move(problem)}; }

// "not valid JSON: expected a value at column 3"; the line is named only where there are several.
std::string json_problem(std::string_view text, const Error& error) {
  const auto found = find_json_problem(text);
  if (!found) return error.detail;
  std::string where = describe_position(text, found->offset);
  if (constexpr std::string_view kOnlyLine = "line 1, "; where.starts_with(kOnlyLine)) {
    where.erase(0, kOnlyLine.size());
  }
  return fmt::format("not valid JSON: {} at {}", found->problem, where);
}

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
  json.end_object();
  const std::string object = json.take();
  return object == "{}" ? "}" : "," + object.substr(1);
}

}  // namespace

JobEncoder::JobEncoder(Input input, const JobFields& fields)
    : input_(input), rest_(encode_fields(fields)) {}

Result<std::string> JobEncoder::encode(std::string_view text) const {
  std::string job;
  switch (input_) {
    case Input::json: {
      if (const auto parsed = Json::parse(text); !parsed) {
        return refuse("the payload is " + json_problem(text, parsed.error()));
      }
      return job.append(R"({"payload":)").append(text).append(rest_);
    }
    case Input::bytes:
      return job.append(R"({"payload_base64":")")
          .append(base64_encode(text))
          .append("\"")
          .append(rest_);
    case Input::base64: {
      if (!base64_decode(text)) return refuse("the payload is not base64");
      return job.append(R"({"payload_base64":")").append(text).append("\"").append(rest_);
    }
    case Input::envelope: {
      const auto parsed = Json::parse(text);
      if (!parsed) return refuse("the job is " + json_problem(text, parsed.error()));
      if (parsed->object() == nullptr) {
        return refuse("the job must be an object with a payload, not " +
                      std::string(parsed->kind_name()));
      }
      return std::string(text);
    }
  }
  return refuse("unknown input");
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
