// Small text helpers that more than one module needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace reprise {

std::string base64_encode(std::string_view bytes);
// Standard alphabet with padding. nullopt: anything else.
std::optional<std::string> base64_decode(std::string_view text);

bool is_valid_utf8(std::string_view bytes);
// Bytes of the UTF-8 character at the start of `bytes`: 1 to 4, or 0 when there is no valid one.
std::size_t utf8_character_bytes(std::string_view bytes);

// Without the spaces, tabs and line ends around it.
std::string_view trimmed(std::string_view text);

// `text` as far as it has at most `max_bytes` bytes; no character is cut in two.
std::string_view cut_at_character(std::string_view text, std::size_t max_bytes);

// Compares secrets in time that depends on the lengths only.
bool equal_constant_time(std::string_view a, std::string_view b);

// The candidate a person most likely meant by `typed`, if one is close enough.
std::optional<std::string> did_you_mean(std::string_view typed,
                                        std::span<const std::string> candidates);

// "64 KiB", "16MiB", "1048576": sizes in settings and flags. K and KiB are 1024,
// KB is 1000, as in the GNU tools. nullopt: not a size.
std::optional<std::uint64_t> parse_bytes(std::string_view text);
std::string format_bytes(std::uint64_t bytes);

// One word for a shell: as it is, or in single quotes when it needs them.
std::string shell_quoted(std::string_view text);

}  // namespace reprise
