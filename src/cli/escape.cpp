#include "cli/escape.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace reprise::cli {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// What must not be printed: controls, line separators, bidirectional marks and overrides, the byte
// order mark.
constexpr auto kUnsafe = std::to_array<Range>({{0x00, 0x1F},
                                               {0x7F, 0x9F},
                                               {0x061C, 0x061C},
                                               {0x200E, 0x200F},
                                               {0x2028, 0x202E},
                                               {0x2066, 0x2069},
                                               {0xFEFF, 0xFEFF}});
// The blocks that terminals draw two columns wide, and those that take none. Close enough to line
// columns up; a character counted wrongly moves a column, nothing more.
constexpr auto kWide = std::to_array<Range>({{0x1100, 0x115F},
                                             {0x2E80, 0xA4CF},
                                             {0xAC00, 0xD7A3},
                                             {0xF900, 0xFAFF},
                                             {0xFE30, 0xFE6F},
                                             {0xFF00, 0xFF60},
                                             {0xFFE0, 0xFFE6},
                                             {0x1F300, 0x1F64F},
                                             {0x1F680, 0x1F6FF},
                                             {0x1F900, 0x1F9FF},
                                             {0x20000, 0x3FFFD}});
constexpr auto kZeroWidth =
    std::to_array<Range>({{0x0300, 0x036F}, {0x200B, 0x200D}, {0xFE00, 0xFE0F}});

template <std::size_t N>
bool in(const std::array<Range, N>& ranges, char32_t c) {
  return std::ranges::any_of(ranges, [c](Range r) { return c >= r.first && c <= r.last; });
}

// `bytes` is one valid UTF-8 character.
char32_t decode(std::string_view bytes) {
  const auto lead = static_cast<unsigned char>(bytes.front());
  if (bytes.size() == 1) return lead;
  char32_t c = lead & (0x7FU >> bytes.size());
  for (const char byte : bytes.substr(1)) c = c << 6 | (static_cast<unsigned char>(byte) & 0x3FU);
  return c;
}

std::size_t width_of(char32_t c) { return in(kZeroWidth, c) ? 0 : in(kWide, c) ? 2 : 1; }

void append_escaped(std::string& out, char32_t c) {
  switch (c) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<std::uint32_t>(c));
  }
}

bool is_json_space(char32_t c) { return c == '\n' || c == '\r' || c == '\t'; }

std::string escape(std::string_view text, bool json) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = utf8_character_bytes(text);
    if (size == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}",
                     static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
      continue;
    }
    const char32_t c = decode(text.substr(0, size));
    if (json && is_json_space(c)) {
      // In JSON a raw line break or tab can only stand between tokens.
      out += ' ';
    } else if (in(kUnsafe, c)) {
      append_escaped(out, c);
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return out;
}

// Bytes of the next character; broken text counts byte by byte.
std::size_t step(std::string_view text) {
  return std::max<std::size_t>(1, utf8_character_bytes(text));
}

}  // namespace

std::string escape_text(std::string_view text) { return escape(text, false); }

std::string escape_output(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\n\t"), text.size());
    out += escape_text(text.substr(0, end));
    if (end < text.size()) out += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string escape_json(std::string_view json) { return escape(json, true); }

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const std::size_t size = step(text);
    width += width_of(decode(text.substr(0, size)));
    text.remove_prefix(size);
  }
  return width;
}

std::string cut_to_width(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::size_t end = 0;
  std::size_t used = 0;
  while (end < text.size()) {
    const std::size_t size = step(text.substr(end));
    const std::size_t columns = width_of(decode(text.substr(end, size)));
    if (used + columns > width - 1) break;
    used += columns;
    end += size;
  }
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace reprise::cli
