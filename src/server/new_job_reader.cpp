#include "server/new_job_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace reprise::server {
namespace {

using Kind = JsonScanner::Kind;

}  // namespace

std::optional<JobProblem> payload_problem(std::size_t bytes, const Limits& limits) {
  if (bytes <= limits.max_payload_bytes) return std::nullopt;
  return JobProblem{Errc::payload_too_large, fmt::format("is {} bytes; the limit is {}", bytes,
                                                         format_bytes(limits.max_payload_bytes))};
}

std::optional<JobProblem> key_problem(std::string_view key, const Limits& limits) {
  if (key.empty()) return JobProblem{Errc::invalid_field, "must not be empty"};
  if (key.size() <= limits.max_key_bytes) return std::nullopt;
  return JobProblem{Errc::key_too_long,
                    fmt::format("is {} bytes; the limit is {}", key.size(), limits.max_key_bytes)};
}

std::optional<JobProblem> header_problem(std::string_view name, std::string_view value,
                                         const Limits& limits) {
  if (name.empty()) return JobProblem{Errc::invalid_field, "have one without a name"};
  if (name.size() + value.size() <= limits.max_header_bytes) return std::nullopt;
  return JobProblem{Errc::header_too_large,
                    fmt::format("have one of {} bytes; the limit is {}", name.size() + value.size(),
                                format_bytes(limits.max_header_bytes))};
}

constexpr std::array<NewJobReader::Field, 10> NewJobReader::kFields = {{
    {"payload", &NewJobReader::read_payload},
    {"payload_base64", &NewJobReader::read_payload_base64},
    {"headers", &NewJobReader::read_headers},
    {"delay", &NewJobReader::read_delay},
    {"priority", &NewJobReader::read_priority},
    {"key", &NewJobReader::read_key},
    {"ttl", &NewJobReader::read_ttl},
    {"fairness_key", &NewJobReader::read_fairness_key},
    {"weight", &NewJobReader::read_weight},
    {"throttle_keys", &NewJobReader::read_throttle_keys},
}};

Status NewJobReader::read() {
  draft_ = Draft();
  REPRISE_TRY(in_.read_members(*this, kFields, [&] { return path_(""); }));
  if (draft_.has_payload && draft_.has_payload_base64) {
    return Error{Errc::invalid_request,
                 fmt::format("{}: 'payload' and 'payload_base64' exclude each other", path_(""))};
  }
  if (!draft_.has_payload && !draft_.has_payload_base64) draft_.job.payload = "null";
  return ok();
}

Result<NewJob> NewJobReader::take() {
  if (draft_.refusal) return std::move(*draft_.refusal);
  return std::move(draft_.job);
}

Status NewJobReader::read_payload() {
  draft_.has_payload = true;
  const std::string_view raw = in_.scanner().raw_value();
  if (in_.scanner().failed()) return in_.syntax_error();
  return take_payload(PayloadKind::json, raw.size(), [&] { return std::string(raw); });
}

Status NewJobReader::read_payload_base64() {
  if (in_.skip_null()) return ok();
  draft_.has_payload_base64 = true;
  if (in_.scanner().kind() != Kind::string) {
    return in_.wrong_kind(path_("payload_base64"), "a string");
  }
  const auto text = in_.scanner().string_value();
  if (!text) return in_.syntax_error();
  auto bytes = base64_decode(*text);
  if (!bytes) {
    refuse(Errc::invalid_field, "payload_base64", "is not base64 with padding");
    return ok();
  }
  return take_payload(PayloadKind::bytes, bytes->size(), [&] { return std::move(*bytes); });
}

// `bytes` makes the payload, once it is known to be wanted.
template <class Bytes>
Status NewJobReader::take_payload(PayloadKind kind, std::size_t size, Bytes bytes) {
  batch_bytes_ += size;
  if (batch_bytes_ > limits_.max_batch_bytes) {
    return Error{Errc::batch_too_large, fmt::format("the payloads of one push exceed {} together",
                                                    format_bytes(limits_.max_batch_bytes))};
  }
  if (const auto problem = payload_problem(size, limits_)) {
    refuse(problem->code, "payload", problem->text);
    return ok();
  }
  draft_.job.payload_kind = kind;
  draft_.job.payload = bytes();
  return ok();
}

Status NewJobReader::read_headers() {
  if (in_.skip_null()) return ok();
  JsonScanner& scanner = in_.scanner();
  if (scanner.kind() != Kind::object) return in_.wrong_kind(path_("headers"), "an object");
  scanner.begin_object();
  while (const auto name = scanner.next_member()) {
    std::string header(*name);
    if (scanner.kind() != Kind::string) {
      return in_.wrong_kind(path_("headers") + "." + header, "a string");
    }
    auto value = scanner.string_value();
    if (!value) return in_.syntax_error();
    REPRISE_TRY(take_header(std::move(header), std::move(*value)));
  }
  return in_.so_far();
}

Status NewJobReader::take_header(std::string name, std::string value) {
  Headers& headers = draft_.job.headers;
  if (std::ranges::find(headers, name, &Headers::value_type::first) != headers.end()) {
    return BodyReader::duplicate_field(name);
  }
  if (headers.size() == limits_.max_headers) {
    refuse(Errc::too_many_headers, "headers", fmt::format("are more than {}", limits_.max_headers));
  } else if (const auto problem = header_problem(name, value, limits_)) {
    refuse(problem->code, "headers", problem->text);
  } else {
    headers.emplace_back(std::move(name), std::move(value));
  }
  return ok();
}

Status NewJobReader::read_key() {
  if (in_.skip_null()) return ok();
  if (in_.scanner().kind() != Kind::string) return in_.wrong_kind(path_("key"), "a string");
  auto key = in_.scanner().string_value();
  if (!key) return in_.syntax_error();
  if (const auto problem = key_problem(*key, limits_)) refuse(problem->code, "key", problem->text);
  draft_.job.key = std::move(*key);
  return ok();
}

Status NewJobReader::read_delay() { return read_small("delay", draft_.job.delay); }
Status NewJobReader::read_priority() { return read_small("priority", draft_.job.priority); }

Status NewJobReader::read_ttl() {
  REPRISE_TRY(read_small("ttl", draft_.job.ttl));
  if (draft_.job.ttl == Duration::zero()) {
    refuse(Errc::invalid_field, "ttl", "must be more than 0");
  }
  return ok();
}

Status NewJobReader::read_fairness_key() {
  if (in_.skip_null()) return ok();
  auto key = read_scheduling_key("fairness_key");
  if (!key) return key.error();
  draft_.job.scheduling.fairness_key = std::move(*key);
  return ok();
}

Status NewJobReader::read_weight() {
  std::uint32_t& weight = draft_.job.scheduling.weight;
  REPRISE_TRY(read_small("weight", weight));
  if (weight < 1 || weight > kMaxWeight) {
    refuse(Errc::invalid_field, "weight", fmt::format("must be between 1 and {}", kMaxWeight));
  }
  return ok();
}

Status NewJobReader::read_throttle_keys() {
  if (in_.skip_null()) return ok();
  JsonScanner& scanner = in_.scanner();
  if (scanner.kind() != Kind::array) return in_.wrong_kind(path_("throttle_keys"), "an array");
  scanner.begin_array();
  for (std::size_t i = 0; scanner.next_element(); ++i) {
    auto key = read_scheduling_key("throttle_keys", i);
    if (!key) return key.error();
    if (i == kMaxThrottleKeys) {
      refuse(Errc::invalid_field, "throttle_keys",
             fmt::format("are more than {}", kMaxThrottleKeys));
    } else if (!draft_.refusal) {
      add_throttle_key(draft_.job.scheduling, std::move(*key));
    }
  }
  return in_.so_far();
}

// A key that is refused comes back too: the job's error is noted.
Result<std::string> NewJobReader::read_scheduling_key(std::string_view field,
                                                      std::optional<std::size_t> index) {
  const auto named = [&] {
    return index ? fmt::format("{}[{}]", field, *index) : std::string(field);
  };
  if (in_.scanner().kind() != Kind::string) return in_.wrong_kind(path_(named()), "a string");
  auto key = in_.scanner().string_value();
  if (!key) return in_.syntax_error();
  const std::string problem = scheduling_key_problem(*key);
  if (!problem.empty()) refuse(Errc::invalid_field, named(), problem);
  return *std::move(key);
}

template <class T>
Status NewJobReader::read_small(std::string_view name, T& out) {
  const Status status = in_.read_small(path_(""), name, out);
  if (status || status.error().code != Errc::invalid_field) return status;
  if (!draft_.refusal) draft_.refusal = status.error();
  return ok();
}

void NewJobReader::refuse(Errc code, std::string_view field, std::string_view problem) {
  if (draft_.refusal) return;
  draft_.refusal = Error{code, fmt::format("{} {}", path_(field), problem)};
}

}  // namespace reprise::server
