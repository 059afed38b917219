// IngestReply: what an endpoint said about a batch, event by event (docs/spool.md, "Draining", 3
// and 5). The endpoint may be anybody's: nothing in a reply is taken for granted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace reprise::spool {

enum class Verdict : std::uint8_t { none, accepted, duplicate, rejected };

struct EventVerdict {
  Verdict verdict = Verdict::none;  // none: the reply does not tell, or not clearly
  std::string error;                // of a rejected one: the server's words; may be empty
};

// One for each of the `count` events that were sent. nullopt: this is no reply to a batch (not
// JSON, no `results`).
std::optional<std::vector<EventVerdict>> parse_results(std::string_view body, std::size_t count);

// Which of `count` events a refusal of the whole batch is about, by its own words, and those words.
// Empty: it does not say.
struct Offender {
  std::size_t index = 0;
  std::string error;
};
std::vector<Offender> named_offenders(std::string_view body, std::size_t count);

// The server's words in a refusal, for people: error.message, error, message, detail, or the first
// line of the body, cut. Empty: none.
std::string refusal_text(std::string_view body);
// The same for the middle of a line: much shorter.
std::string short_refusal_text(std::string_view body);
// Whoever asks for more means "not today".
inline constexpr Duration kMaxRetryAfter = std::chrono::hours(24);
// `retry_after_seconds` of a reply, at the top or in `error`; at most kMaxRetryAfter.
std::optional<Duration> retry_after_of(std::string_view body);

}  // namespace reprise::spool
