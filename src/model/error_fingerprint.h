// Which errors are the same error: "timeout after 31 ms on host 'db-4'" and "timeout after 7 ms on
// host 'db-1'" are. Errors are grouped and found by a fingerprint of what is left of them when all
// that changes from one time to the next is taken out.
// Pure functions of their arguments, total over any bytes; they run at each failure, so they are
// quick: one pass, and no further than the normal form reaches.
//
// The fingerprint is stored with jobs and typed by people: it is a format. A change of the rules
// below splits the groups of everybody's data in two at the day of the update; tests hold values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise {

inline constexpr std::size_t kNormalErrorChars = 200;

// At most 200 characters, always UTF-8 (U+FFFD for each bad byte), on one line:
// - numbers are <n>, wherever they stand: "10.0.0.1:80", "-1.5e3", "host17" are "<n>:<n>", "<n>",
//   "host<n>";
// - <id> stands for 0x and hex digits, for 8 or more hex digits with a letter and a digit among
//   them, UUIDs, ULIDs, job ids, and for 16 or more letters and digits that alternate three times
//   or more, as made-up ids of others do;
// - what is between quotes ('…' "…" `…` and their typographic kin) is <…>. An apostrophe in a
//   word (don't, users') is no quote, nor is one that is never closed;
// - white space and control characters in a row are one space; none at either end.
std::string normalize_error(std::string_view error);

// FNV-1a, 64 bits, of the normal form, a zero byte, and the type as it is.
std::uint64_t error_fingerprint(std::string_view error, std::string_view error_type);

// 16 hex digits, lower case.
std::string format_fingerprint(std::uint64_t fingerprint);
// Takes either case. nullopt: not 16 hex digits.
std::optional<std::uint64_t> parse_fingerprint(std::string_view text);

}  // namespace reprise
