// Whatever stands in the files of a spool, or in the replies of an endpoint: an event or none, and
// what is an event keeps the bytes of its producer through the bookkeeping of any number of tries.
//
// An input is a letter for what it is, then its bytes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/json_problem.h"
#include "base/text.h"
#include "base/ulid.h"
#include "fuzz/fuzz.h"
#include "spool/dead_letter_file.h"
#include "spool/event.h"
#include "spool/ingest_reply.h"

namespace reprise::spool {
namespace {

bool is_json(std::string_view text) { return !find_json_problem(text, JsonNumbers::any); }

void check_event(std::string_view bytes) {
  const auto event = parse_event(bytes);
  if (!event) {
    REPRISE_CHECK(event.error().code == Errc::corrupt && !event.error().detail.empty());
    return;
  }
  REPRISE_CHECK(decode_ulid(event->id).has_value());
  REPRISE_CHECK(is_json(event->json) && event->json.size() <= bytes.size());
  REPRISE_CHECK(event->last_error.size() <= kMaxLastErrorBytes);
  REPRISE_CHECK(event_file_name(event->id).find('/') == std::string::npos);

  // A try that failed is noted in the file, and the file read again: the event is what it was.
  SpooledEvent tried = *event;
  tried.attempts = event->attempts == UINT32_MAX ? 1 : event->attempts + 1;
  tried.first_attempt_at = "2026-01-31T08:15:00.250Z";
  tried.last_error = "could not connect: \"refused\"";
  const auto again = parse_event(event_file_text(tried));
  REPRISE_CHECK(static_cast<bool>(again));
  REPRISE_CHECK(again->json == event->json && again->id == event->id && again->type == event->type);
  REPRISE_CHECK(again->attempts == tried.attempts && again->last_error == tried.last_error);
  REPRISE_CHECK(again->first_attempt_at == tried.first_attempt_at);
}

void check_dead_letter(std::string_view bytes) {
  FileContent content{.bytes = std::string(bytes), .size = bytes.size()};
  const DeadLetterFile file = parse_dead_letter("01ARZ3NDEKTSV4RRFFQ69G5FAV.json", content);
  REPRISE_CHECK(file.event.empty() || is_json(file.event));
  // Names lead nowhere else.
  REPRISE_CHECK(file.queue_name.find('/') == std::string::npos);
  REPRISE_CHECK(file.raw_name.find('/') == std::string::npos);
  if (!file.event.empty()) REPRISE_CHECK(file.is_json);
}

void check_reply(std::string_view body) {
  constexpr std::size_t kSent = 5;
  if (const auto verdicts = parse_results(body, kSent)) REPRISE_CHECK(verdicts->size() == kSent);
  for (const Offender& offender : named_offenders(body, kSent)) {
    REPRISE_CHECK(offender.index < kSent);
  }
  REPRISE_CHECK(is_valid_utf8(refusal_text(body)) || !is_valid_utf8(body));
  REPRISE_CHECK(short_refusal_text(body).size() <= refusal_text(body).size() + 3);
  if (const auto wait = retry_after_of(body)) {
    REPRISE_CHECK(*wait >= Duration{} && *wait <= kMaxRetryAfter);
  }
}

}  // namespace
}  // namespace reprise::spool

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reprise::spool;
  const auto [kind, rest] = reprise::fuzz::choice_of(data, size);
  if (kind == 'e') check_event(rest);
  if (kind == 'd') check_dead_letter(rest);
  if (kind == 'r') check_reply(rest);
  return 0;
}

std::vector<std::string> reprise::fuzz::seeds() { return {}; }
