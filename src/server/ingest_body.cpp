#include "server/ingest_body.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <array>
#include <string>
#include <utility>

#include "base/text.h"
#include "server/body_reader.h"
#include "server/new_job_reader.h"
#include "server/push_event.h"

namespace reprise::server {
namespace {

using Kind = JsonScanner::Kind;

constexpr std::string_view kTypeHeader = "event-type";

class IngestBodyReader {
 public:
  IngestBodyReader(std::string_view body, const Limits& limits, Timestamp now)
      : body_(body), limits_(limits), now_(now), in_(body), scanner_(in_.scanner()) {}

  Result<std::vector<Result<IngestEvent>>> read() {
    if (!simdjson::validate_utf8(body_.data(), body_.size())) return in_.syntax_error();
    REPRISE_TRY(in_.read_members(*this, kFields, [] { return "the body"; }));
    if (!scanner_.at_end()) return in_.syntax_error();
    if (!has_events_) return Error{Errc::invalid_request, "the field 'events' is missing"};
    if (events_.empty()) {
      return Error{Errc::invalid_request,
                   fmt::format("no events: 1 to {} in one ingest", kMaxIngestedEvents)};
    }
    return std::move(events_);
  }

 private:
  static const std::array<BodyField<IngestBodyReader>, 1> kFields;

  // The fields of an event that mean something here, as they came; empty: not there.
  struct Draft {
    std::optional<std::string> id;
    std::optional<std::string> type;
    std::optional<std::string> timestamp;
    std::string_view data;
    std::optional<Error> refusal;  // the first thing wrong with it alone
  };

  Status read_events() {
    has_events_ = true;
    if (scanner_.kind() != Kind::array) return in_.wrong_kind("events", "an array");
    scanner_.begin_array();
    while (scanner_.next_element()) {
      if (events_.size() == kMaxIngestedEvents) {
        return Error{Errc::too_many_events,
                     fmt::format("more than {} events in one ingest", kMaxIngestedEvents)};
      }
      REPRISE_TRY(read_event());
    }
    return in_.so_far();
  }

  Status read_event() {
    draft_ = Draft();
    const std::size_t begin = scanner_.position();
    if (scanner_.kind() == Kind::object) {
      read_members();
    } else {
      scanner_.raw_value();
      refuse(Errc::invalid_request, path("") + ": expected an object");
    }
    if (scanner_.failed()) return syntax_error();
    const std::string_view raw = scanner_.since(begin);
    batch_bytes_ += raw.size();
    if (batch_bytes_ > limits_.max_batch_bytes) {
      return Error{Errc::batch_too_large, fmt::format("the events of one ingest exceed {} together",
                                                      format_bytes(limits_.max_batch_bytes))};
    }
    events_.push_back(draft_.refusal ? Result<IngestEvent>(std::move(*draft_.refusal))
                                     : make_event(raw));
    return ok();
  }

  void read_members() {
    scanner_.begin_object();
    while (const auto name = scanner_.next_member()) {
      if (*name == "id") {
        read_text("id", draft_.id);
      } else if (*name == "type") {
        read_text("type", draft_.type);
      } else if (*name == "timestamp") {
        if (!in_.skip_null()) read_text("timestamp", draft_.timestamp);
      } else if (*name == "data") {
        if (!draft_.data.empty()) refuse_repeated("data");
        draft_.data = scanner_.raw_value();
      } else {
        scanner_.raw_value();
      }
    }
  }

  void read_text(std::string_view name, std::optional<std::string>& out) {
    if (out) refuse_repeated(name);
    if (scanner_.kind() == Kind::string) {
      out = scanner_.string_value();
    } else {
      scanner_.raw_value();
      refuse(Errc::invalid_request, path(name) + ": expected a string");
    }
  }

  // Of an event whose fields were there to be read.
  Result<IngestEvent> make_event(std::string_view raw) {
    if (!draft_.id) return missing("id");
    if (!draft_.type) return missing("type");
    if (const auto problem = key_problem(*draft_.id, limits_)) {
      return Error{problem->code, path("id") + " " + problem->text};
    }
    if (const auto problem = event_type_problem(*draft_.type); !problem.empty()) {
      return Error{Errc::invalid_field, path("type") + " " + problem};
    }
    Timestamp made_at = now_;
    if (draft_.timestamp) {
      const auto time = parse_timestamp(*draft_.timestamp);
      if (!time) {
        return Error{Errc::invalid_field,
                     path("timestamp") + " is not a time like " + format_timestamp(now_)};
      }
      made_at = *time;
    }
    return *draft_.type == kPushEventType ? make_pushed(made_at) : make_stored(raw);
  }

  // The event itself is the payload.
  Result<IngestEvent> make_stored(std::string_view raw) {
    if (const auto problem = payload_problem(raw.size(), limits_)) {
      return Error{problem->code, path("") + " " + problem->text};
    }
    if (const auto problem = header_problem(kTypeHeader, *draft_.type, limits_)) {
      return Error{problem->code, path("type") + ": the headers " + problem->text};
    }
    IngestEvent event{.type = std::move(*draft_.type)};
    event.job.payload = raw;
    event.job.headers.emplace_back(kTypeHeader, event.type);
    event.job.key = std::move(*draft_.id);
    event.job.least_key_window = kLeastEventWindow;
    return event;
  }

  // It carries a job. A key of its own is remembered as long as its queue says, as after any push.
  Result<IngestEvent> make_pushed(Timestamp made_at) {
    if (draft_.data.empty()) return missing("data");
    auto pushed = parse_push_event(draft_.data, limits_, path("data"));
    if (!pushed) return pushed.error();
    IngestEvent event{.job = std::move(pushed->job),
                      .type = std::move(*draft_.type),
                      .queue = std::move(pushed->queue),
                      .create = pushed->create};
    let_pass(event.job, now_ - made_at);
    if (event.job.key.empty()) {
      event.job.key = std::move(*draft_.id);
      event.job.least_key_window = kLeastEventWindow;
    }
    return event;
  }

  void refuse(Errc code, std::string detail) {
    if (!draft_.refusal) draft_.refusal = Error{code, std::move(detail)};
  }
  void refuse_repeated(std::string_view field) {
    refuse(Errc::invalid_request, path("") + ": duplicate field '" + std::string(field) + "'");
  }
  Error missing(std::string_view field) const {
    return {Errc::invalid_request,
            path("") + ": the field '" + std::string(field) + "' is missing"};
  }

  // Names the event: whoever sent it knows which one to leave out.
  Error syntax_error() const {
    Error error = in_.syntax_error();
    error.detail = path("") + ": " + error.detail;
    return error;
  }

  // "events[3].id", of the event that is being read.
  std::string path(std::string_view field) const {
    return fmt::format("events[{}]{}{}", events_.size(), field.empty() ? "" : ".", field);
  }

  const std::string_view body_;
  const Limits& limits_;
  const Timestamp now_;
  BodyReader in_;
  JsonScanner& scanner_;
  std::vector<Result<IngestEvent>> events_;
  Draft draft_;
  bool has_events_ = false;
  std::uint64_t batch_bytes_ = 0;
};

constexpr std::array<BodyField<IngestBodyReader>, 1> IngestBodyReader::kFields = {{
    {"events", &IngestBodyReader::read_events},
}};

}  // namespace

Result<std::vector<Result<IngestEvent>>> parse_ingest_body(std::string_view body,
                                                           const Limits& limits, Timestamp now) {
  return IngestBodyReader(body, limits, now).read();
}

}  // namespace reprise::server
