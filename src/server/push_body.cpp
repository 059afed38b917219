#include "server/push_body.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <string>
#include <utility>

#include "server/body_reader.h"
#include "server/new_job_reader.h"

namespace reprise::server {
namespace {

class PushBodyReader {
 public:
  PushBodyReader(std::string_view body, const Limits& limits)
      : body_(body), limits_(limits), in_(body), job_(in_, limits, [this](std::string_view field) {
          return fmt::format("jobs[{}]{}{}", result_.jobs.size(), field.empty() ? "" : ".", field);
        }) {}

  Result<PushBody> read() {
    if (!simdjson::validate_utf8(body_.data(), body_.size())) return in_.syntax_error();
    REPRISE_TRY(in_.read_members(*this, kFields, [] { return "the body"; }));
    if (!in_.scanner().at_end()) return in_.syntax_error();
    if (!has_jobs_) return Error{Errc::invalid_request, "the field 'jobs' is missing"};
    return std::move(result_);
  }

 private:
  static const std::array<BodyField<PushBodyReader>, 2> kFields;

  Status read_jobs() {
    has_jobs_ = true;
    JsonScanner& scanner = in_.scanner();
    if (scanner.kind() != JsonScanner::Kind::array) return in_.wrong_kind("jobs", "an array");
    scanner.begin_array();
    while (scanner.next_element()) {
      if (result_.jobs.size() == limits_.max_batch_jobs) {
        return Error{Errc::batch_too_many_jobs,
                     fmt::format("more than {} jobs in one push", limits_.max_batch_jobs)};
      }
      REPRISE_TRY(job_.read());
      result_.jobs.push_back(job_.take());
    }
    return in_.so_far();
  }

  Status read_create() { return in_.read_small("", "create", result_.create); }

  const std::string_view body_;
  const Limits& limits_;
  BodyReader in_;
  NewJobReader job_;
  PushBody result_;
  bool has_jobs_ = false;
};

constexpr std::array<BodyField<PushBodyReader>, 2> PushBodyReader::kFields = {{
    {"jobs", &PushBodyReader::read_jobs},
    {"create", &PushBodyReader::read_create},
}};

}  // namespace

Result<PushBody> parse_push_body(std::string_view body, const Limits& limits) {
  return PushBodyReader(body, limits).read();
}

}  // namespace reprise::server
