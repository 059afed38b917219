// How values of the API's replies read in a table. Empty text is an absent value.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json_view.h"
#include "base/time.h"
#include "cli/table.h"

namespace reprise::cli {

// A string's characters, a number as it is written, nothing for null.
std::string text_of(JsonView value);

// 2026-01-31T08:15:00.250Z, as the API writes times. nullopt: anything else.
std::optional<Timestamp> parse_timestamp(std::string_view text);
Timestamp wall_now();
// "2m 5s" since or until the time that `value` holds. Never negative: clocks of two machines
// differ.
std::string age_text(JsonView value, Timestamp now);
std::string until_text(JsonView value, Timestamp now);

// From numbers: seconds as "2m 5s", bytes as "1.5 MiB", rates with one digit, 0.6 as "60%".
std::string seconds_text(JsonView value);
std::string bytes_text(JsonView value);
std::string rate_text(JsonView value);
std::string percent_text(JsonView share);

// A job's payload: its JSON, or "base64:…" for bytes.
Cell payload_cell(JsonView job);
// A job's status in its colour.
Cell status_cell(JsonView status);

}  // namespace reprise::cli
