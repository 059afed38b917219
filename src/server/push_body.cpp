#include "server/push_body.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <optional>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/json_fields.h"
#include "base/json_problem.h"
#include "base/text.h"
#include "server/json_scanner.h"

namespace reprise::server {
namespace {

using Kind = JsonScanner::Kind;

class PushBodyReader {
 public:
  PushBodyReader(std::string_view body, const Limits& limits)
      : body_(body), limits_(limits), scanner_(body) {}

  Result<PushBody> read() {
    if (!simdjson::validate_utf8(body_.data(), body_.size())) return syntax_error();
    REPRISE_TRY(read_members(kBodyFields));
    if (!scanner_.at_end()) return syntax_error();
    if (!has_jobs_) return Error{Errc::invalid_request, "the field 'jobs' is missing"};
    return std::move(result_);
  }

 private:
  // One job while it is read.
  struct Draft {
    NewJob job;
    std::optional<Error> refusal;  // the first thing wrong with it alone
    bool has_payload = false;
    bool has_payload_base64 = false;
  };

  struct Field {
    std::string_view name;
    Status (PushBodyReader::*read)();
  };
  static const std::array<Field, 2> kBodyFields;
  static const std::array<Field, 7> kJobFields;

  // Reads an object of ours: every member by its reader, each at most once.
  template <std::size_t count>
  Status read_members(const std::array<Field, count>& fields) {
    if (scanner_.kind() != Kind::object) {
      return wrong_kind(has_jobs_ ? job_path("") : "the body", "an object");
    }
    scanner_.begin_object();
    std::bitset<count> seen;
    while (const auto name = scanner_.next_member()) {
      const auto field = std::ranges::find(fields, *name, &Field::name);
      if (field == fields.end()) return unknown_field(fields, *name);
      const auto index = static_cast<std::size_t>(field - fields.begin());
      if (seen.test(index)) return duplicate_field(*name);
      seen.set(index);
      REPRISE_TRY((this->*field->read)());
    }
    return scanner_.failed() ? Status(syntax_error()) : ok();
  }

  Status read_jobs() {
    has_jobs_ = true;
    if (scanner_.kind() != Kind::array) return wrong_kind("jobs", "an array");
    scanner_.begin_array();
    while (scanner_.next_element()) {
      if (result_.jobs.size() == limits_.max_batch_jobs) {
        return Error{Errc::batch_too_many_jobs,
                     fmt::format("more than {} jobs in one push", limits_.max_batch_jobs)};
      }
      REPRISE_TRY(read_job());
    }
    return scanner_.failed() ? Status(syntax_error()) : ok();
  }

  Status read_job() {
    draft_ = Draft();
    REPRISE_TRY(read_members(kJobFields));
    if (draft_.has_payload && draft_.has_payload_base64) {
      return Error{
          Errc::invalid_request,
          fmt::format("{}: 'payload' and 'payload_base64' exclude each other", job_path(""))};
    }
    if (!draft_.has_payload && !draft_.has_payload_base64) draft_.job.payload = "null";
    if (draft_.refusal) {
      result_.jobs.emplace_back(std::move(*draft_.refusal));
    } else {
      result_.jobs.emplace_back(std::move(draft_.job));
    }
    return ok();
  }

  Status read_create() { return read_small("", "create", result_.create); }

  Status read_payload() {
    draft_.has_payload = true;
    const std::string_view raw = scanner_.raw_value();
    if (scanner_.failed()) return syntax_error();
    return take_payload(PayloadKind::json, raw.size(), [&] { return std::string(raw); });
  }

  Status read_payload_base64() {
    if (skip_null()) return ok();
    draft_.has_payload_base64 = true;
    if (scanner_.kind() != Kind::string) return wrong_kind(job_path("payload_base64"), "a string");
    const auto text = scanner_.string_value();
    if (!text) return syntax_error();
    auto bytes = base64_decode(*text);
    if (!bytes) {
      refuse(Errc::invalid_field, "payload_base64", "is not base64 with padding");
      return ok();
    }
    return take_payload(PayloadKind::bytes, bytes->size(), [&] { return std::move(*bytes); });
  }

  // `bytes` makes the payload, once it is known to be wanted.
  template <class Bytes>
  Status take_payload(PayloadKind kind, std::size_t size, Bytes bytes) {
    batch_bytes_ += size;
    if (batch_bytes_ > limits_.max_batch_bytes) {
      return Error{Errc::batch_too_large, fmt::format("the payloads of one push exceed {} together",
                                                      format_bytes(limits_.max_batch_bytes))};
    }
    if (size > limits_.max_payload_bytes) {
      refuse(Errc::payload_too_large, "payload",
             fmt::format("is {} bytes; the limit is {}", size,
                         format_bytes(limits_.max_payload_bytes)));
      return ok();
    }
    draft_.job.payload_kind = kind;
    draft_.job.payload = bytes();
    return ok();
  }

  Status read_headers() {
    if (skip_null()) return ok();
    if (scanner_.kind() != Kind::object) return wrong_kind(job_path("headers"), "an object");
    scanner_.begin_object();
    while (const auto name = scanner_.next_member()) {
      std::string header(*name);
      if (scanner_.kind() != Kind::string) {
        return wrong_kind(job_path("headers") + "." + header, "a string");
      }
      auto value = scanner_.string_value();
      if (!value) return syntax_error();
      REPRISE_TRY(take_header(std::move(header), std::move(*value)));
    }
    return scanner_.failed() ? Status(syntax_error()) : ok();
  }

  Status take_header(std::string name, std::string value) {
    Headers& headers = draft_.job.headers;
    if (std::ranges::find(headers, name, &Headers::value_type::first) != headers.end()) {
      return duplicate_field(name);
    }
    if (headers.size() == limits_.max_headers) {
      refuse(Errc::too_many_headers, "headers",
             fmt::format("are more than {}", limits_.max_headers));
    } else if (name.empty()) {
      refuse(Errc::invalid_field, "headers", "have one without a name");
    } else if (name.size() + value.size() > limits_.max_header_bytes) {
      refuse(Errc::header_too_large, "headers",
             fmt::format("have one of {} bytes; the limit is {}", name.size() + value.size(),
                         format_bytes(limits_.max_header_bytes)));
    } else {
      headers.emplace_back(std::move(name), std::move(value));
    }
    return ok();
  }

  Status read_key() {
    if (skip_null()) return ok();
    if (scanner_.kind() != Kind::string) return wrong_kind(job_path("key"), "a string");
    auto key = scanner_.string_value();
    if (!key) return syntax_error();
    if (key->empty()) refuse(Errc::invalid_field, "key", "must not be empty");
    if (key->size() > limits_.max_key_bytes) {
      refuse(Errc::key_too_long, "key",
             fmt::format("is {} bytes; the limit is {}", key->size(), limits_.max_key_bytes));
    }
    draft_.job.key = std::move(*key);
    return ok();
  }

  Status read_delay() { return read_small(job_path(""), "delay", draft_.job.delay); }
  Status read_priority() { return read_small(job_path(""), "priority", draft_.job.priority); }
  Status read_ttl() {
    REPRISE_TRY(read_small(job_path(""), "ttl", draft_.job.ttl));
    if (draft_.job.ttl == Duration::zero()) {
      refuse(Errc::invalid_field, "ttl", "must be more than 0");
    }
    return ok();
  }

  // A number, a duration or a flag, by the same rules as in every other body.
  template <class T>
  Status read_small(const std::string& path, std::string_view name, T& out) {
    const std::string_view raw = scanner_.raw_value();
    if (scanner_.failed()) return syntax_error();
    auto value = Json::parse(raw);
    if (!value) return value.error();
    const Json object(Json::Object{{std::string(name), std::move(*value)}});
    JsonFields fields(object, path);
    fields.read(name, out);
    auto status = fields.finish();
    if (status || status.error().code != Errc::invalid_field || path.empty()) return status;
    if (!draft_.refusal) draft_.refusal = status.error();
    return ok();
  }

  bool skip_null() {
    if (scanner_.kind() != Kind::null) return false;
    scanner_.raw_value();
    return true;
  }

  void refuse(Errc code, std::string_view field, std::string_view problem) {
    if (draft_.refusal) return;
    draft_.refusal = Error{code, fmt::format("{} {}", job_path(field), problem)};
  }

  // "jobs[3].key", of the job that is being read.
  std::string job_path(std::string_view field) const {
    return fmt::format("jobs[{}]{}{}", result_.jobs.size(), field.empty() ? "" : ".", field);
  }

  // Slow, and only for bodies that are refused anyway.
  Error syntax_error() const {
    const auto found = find_json_problem(body_);
    if (!found) return Error{Errc::invalid_request, "not valid JSON"};
    return Error{Errc::invalid_request, fmt::format("not valid JSON: {} at {}", found->problem,
                                                    describe_position(body_, found->offset))};
  }

  Error wrong_kind(std::string_view what, std::string_view expected) {
    if (scanner_.kind() == Kind::nothing) return syntax_error();
    return Error{Errc::invalid_request, fmt::format("{}: expected {}", what, expected)};
  }

  static Error duplicate_field(std::string_view name) {
    return Error{Errc::invalid_request, fmt::format("duplicate field '{}'", name)};
  }

  template <std::size_t count>
  static Error unknown_field(const std::array<Field, count>& fields, std::string_view name) {
    std::vector<std::string> known;
    known.reserve(count);
    for (const Field& field : fields) known.emplace_back(field.name);
    std::string detail = fmt::format("unknown field '{}'", name);
    if (const auto meant = did_you_mean(name, known)) {
      detail += fmt::format("; did you mean '{}'?", *meant);
    }
    return Error{Errc::unknown_field, std::move(detail)};
  }

  const std::string_view body_;
  const Limits& limits_;
  JsonScanner scanner_;
  PushBody result_;
  Draft draft_;
  bool has_jobs_ = false;
  std::uint64_t batch_bytes_ = 0;
};

constexpr std::array<PushBodyReader::Field, 2> PushBodyReader::kBodyFields = {{
    {"jobs", &PushBodyReader::read_jobs},
    {"create", &PushBodyReader::read_create},
}};
constexpr std::array<PushBodyReader::Field, 7> PushBodyReader::kJobFields = {{
    {"payload", &PushBodyReader::read_payload},
    {"payload_base64", &PushBodyReader::read_payload_base64},
    {"headers", &PushBodyReader::read_headers},
    {"delay", &PushBodyReader::read_delay},
    {"priority", &PushBodyReader::read_priority},
    {"key", &PushBodyReader::read_key},
    {"ttl", &PushBodyReader::read_ttl},
}};

}  // namespace

Result<PushBody> parse_push_body(std::string_view body, const Limits& limits) {
  return PushBodyReader(body, limits).read();
}

}  // namespace reprise::server
