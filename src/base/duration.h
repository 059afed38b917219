// The one parser for durations, used by the API, the command line and config files alike.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace reprise {

// "200ms", "30s", "5m", "2h", "7d", "1.5h", "1h30m" (large units first), "50us", long forms
// ("30 seconds", "5 minutes", "1 day"); a bare number is seconds. Never negative, at most 100
// years; rounded to microseconds.
// The error is Errc::invalid_field and says what was wrong with which text; callers prefix the
// field's name.
Result<Duration> parse_duration(std::string_view text);

// The shortest exact text that parse_duration reads back: "30s", "1h30m", "250ms", "0s".
std::string format_duration(Duration duration);

// For people, two units at most and rounded: "3.2s", "2m 5s", "3d 4h".
std::string humanize_duration(Duration duration);

}  // namespace reprise
