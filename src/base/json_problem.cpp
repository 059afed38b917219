#include "base/json_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/json.h"
#include "base/text.h"

namespace reprise {
namespace {

static_assert(kMaxJsonDepth == 64, "a message below names the number");

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_high_surrogate(std::uint32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low_surrogate(std::uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

// Walks the text by the grammar and stops at the first thing that breaks it. Each step returns
// false once a problem is noted.
class Finder {
 public:
  Finder(std::string_view text, JsonNumbers numbers) : text_(text), numbers_(numbers) {}

  std::optional<JsonProblem> find() {
    if (value(0)) {
      skip_space();
      if (!at_end()) fail("unexpected text after the value");
    }
    return problem_;
  }

 private:
  bool value(std::size_t depth);
  bool object(std::size_t depth);
  bool array(std::size_t depth);
  bool member(std::size_t depth);
  bool string();
  bool escape();
  bool unicode_escape();
  bool code_unit(std::uint32_t& unit);
  bool number();
  bool digits();
  bool word(std::string_view expected);

  bool at_end() const { return at_ == text_.size(); }
  // NUL at the end, which no step takes for anything.
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  std::string_view rest() const { return text_.substr(at_); }
  bool take(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++at_;
  }
  bool fail(std::string_view problem) { return fail_at(at_, problem); }
  bool fail_at(std::size_t offset, std::string_view problem) {
    problem_ = JsonProblem{offset, problem};
    return false;
  }

  std::string_view text_;
  JsonNumbers numbers_;
  std::size_t at_ = 0;
  std::optional<JsonProblem> problem_;
};

bool Finder::value(std::size_t depth) {
  skip_space();
  switch (peek()) {
    case '{':
      return object(depth + 1);
    case '[':
      return array(depth + 1);
    case '"':
      return string();
    case 't':
      return word("true");
    case 'f':
      return word("false");
    case 'n':
      return word("null");
    default:
      break;
  }
  if (peek() == '-' || is_digit(peek())) return number();
  return fail(at_end() ? "the text ends where a value should be" : "expected a value");
}

bool Finder::object(std::size_t depth) {
  if (depth > kMaxJsonDepth) return fail("nested deeper than 64 levels");
  take('{');
  skip_space();
  if (take('}')) return true;
  do {
    if (!member(depth)) return false;
    skip_space();
  } while (take(','));
  return take('}') || fail("expected ',' or '}'");
}

bool Finder::member(std::size_t depth) {
  skip_space();
  if (peek() != '"') return fail("expected a field name in double quotes");
  if (!string()) return false;
  skip_space();
  if (!take(':')) return fail("expected ':'");
  return value(depth);
}

bool Finder::array(std::size_t depth) {
  if (depth > kMaxJsonDepth) return fail("nested deeper than 64 levels");
  take('[');
  skip_space();
  if (take(']')) return true;
  do {
    if (!value(depth)) return false;
    skip_space();
  } while (take(','));
  return take(']') || fail("expected ',' or ']'");
}

bool Finder::string() {
  const std::size_t start = at_;
  take('"');
  while (!take('"')) {
    if (at_end()) return fail_at(start, "a string that does not end");
    if (peek() == '\\') {
      if (!escape()) return false;
      continue;
    }
    if (static_cast<unsigned char>(peek()) < 0x20) {
      return fail("a control character in a string must be escaped");
    }
    const std::size_t size = utf8_character_bytes(rest());
    if (size == 0) return fail("not UTF-8");
    at_ += size;
  }
  return true;
}

bool Finder::escape() {
  const std::size_t start = at_;
  take('\\');
  if (take('u')) return unicode_escape();
  if (at_end() || std::string_view("\"\\/bfnrt").find(peek()) == std::string_view::npos) {
    return fail_at(start, "unknown escape in a string");
  }
  ++at_;
  return true;
}

bool Finder::unicode_escape() {
  const std::size_t start = at_ - 2;
  std::uint32_t unit = 0;
  if (!code_unit(unit)) return fail_at(start, "\\u needs four hexadecimal digits");
  if (is_low_surrogate(unit)) return fail_at(start, "half of a surrogate pair");
  if (!is_high_surrogate(unit)) return true;
  std::uint32_t low = 0;
  if (take('\\') && take('u') && code_unit(low) && is_low_surrogate(low)) return true;
  return fail_at(start, "half of a surrogate pair");
}

bool Finder::code_unit(std::uint32_t& unit) {
  const auto four = rest().substr(0, 4);
  if (four.size() < 4) return false;
  unit = 0;
  for (const char c : four) {
    const int digit = hex_digit(c);
    if (digit < 0) return false;
    unit = unit * 16 + static_cast<std::uint32_t>(digit);
  }
  at_ += 4;
  return true;
}

bool Finder::number() {
  const std::size_t start = at_;
  take('-');
  const bool zero_first = peek() == '0';
  const std::size_t first_digit = at_;
  if (!digits()) return false;
  if (zero_first && at_ - first_digit > 1) return fail_at(start, "a number with a leading zero");
  if (take('.') && !digits()) return false;
  if (take('e') || take('E')) {
    if (!take('+')) take('-');
    if (!digits()) return false;
  }
  if (numbers_ == JsonNumbers::any) return true;
  const std::string spelled(text_.substr(start, at_ - start));
  if (std::isinf(std::strtod(spelled.c_str(), nullptr))) return fail_at(start, "number too large");
  return true;
}

bool Finder::digits() {
  if (!is_digit(peek())) return fail("expected a digit");
  while (is_digit(peek())) ++at_;
  return true;
}

bool Finder::word(std::string_view expected) {
  if (!rest().starts_with(expected)) return fail("expected a value");
  at_ += expected.size();
  return true;
}

}  // namespace

std::optional<JsonProblem> find_json_problem(std::string_view text, JsonNumbers numbers) {
  return Finder(text, numbers).find();
}

std::string describe_position(std::string_view text, std::size_t offset) {
  const auto before = text.substr(0, offset);
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("line {}, column {}", line, offset - line_start + 1);
}

}  // namespace reprise
