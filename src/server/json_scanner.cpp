#include "server/json_scanner.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <bit>
#include <charconv>

#include "base/json.h"

namespace reprise::server {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_high_surrogate(unsigned unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low_surrogate(unsigned unit) { return unit >= 0xDC00 && unit < 0xE000; }

// How many bytes at the front mean nothing but themselves in a string: no quote, escape or control
// character. It may stop early. Payloads are mostly that, and this is most of what reading a push
// takes.
std::size_t plain_bytes(std::string_view text) {
  std::size_t at = 0;
#ifdef __SSE2__
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i last_control = _mm_set1_epi8(0x1f);
  for (; at + sizeof(__m128i) <= text.size(); at += sizeof(__m128i)) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + at));
    const __m128i is_control = _mm_cmpeq_epi8(_mm_max_epu8(bytes, last_control), last_control);
    const __m128i is_sign =
        _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash));
    const auto found = static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(is_control, is_sign)));
    if (found != 0) return at + static_cast<std::size_t>(std::countr_zero(found));
  }
#endif
  return at;
}

void append_utf8(std::string& out, unsigned point) {
  const auto byte = [&](unsigned bits) { out.push_back(static_cast<char>(bits)); };
  if (point < 0x80) {
    byte(point);
  } else if (point < 0x800) {
    byte(0xC0 | (point >> 6));
    byte(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    byte(0xE0 | (point >> 12));
    byte(0x80 | ((point >> 6) & 0x3F));
    byte(0x80 | (point & 0x3F));
  } else {
    byte(0xF0 | (point >> 18));
    byte(0x80 | ((point >> 12) & 0x3F));
    byte(0x80 | ((point >> 6) & 0x3F));
    byte(0x80 | (point & 0x3F));
  }
}

unsigned parse_hex(std::string_view digits) {
  unsigned value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

char simple_escape(char c) {
  switch (c) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return c;  // '"', '\\', '/'
  }
}

}  // namespace

std::string unescape_json_string(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  while (!raw.empty()) {
    const std::size_t plain = std::min(raw.find('\\'), raw.size());
    out += raw.substr(0, plain);
    raw.remove_prefix(plain);
    if (raw.empty()) break;
    if (raw[1] != 'u') {
      out.push_back(simple_escape(raw[1]));
      raw.remove_prefix(2);
      continue;
    }
    unsigned point = parse_hex(raw.substr(2, 4));
    raw.remove_prefix(6);
    if (is_high_surrogate(point)) {
      point = 0x10000 + ((point - 0xD800) << 10) + (parse_hex(raw.substr(2, 4)) - 0xDC00);
      raw.remove_prefix(6);
    }
    append_utf8(out, point);
  }
  return out;
}

bool JsonScanner::fail() {
  failed_ = true;
  at_ = text_.size();
  return false;
}

void JsonScanner::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
    ++at_;
  }
}

// The next byte that is no blank; '\0', which no JSON begins with, at the end.
char JsonScanner::peek() {
  skip_blanks();
  return at_ < text_.size() ? text_[at_] : '\0';
}

JsonScanner::Kind JsonScanner::kind() {
  switch (const char c = peek()) {
    case '{':
      return Kind::object;
    case '[':
      return Kind::array;
    case '"':
      return Kind::string;
    case 't':
    case 'f':
      return Kind::boolean;
    case 'n':
      return Kind::null;
    default:
      return is_digit(c) || c == '-' ? Kind::number : Kind::nothing;
  }
}

bool JsonScanner::begin(char bracket) {
  if (peek() != bracket || depth_ == kMaxJsonDepth) return fail();
  ++at_;
  ++depth_;
  first_ = true;
  return true;
}

bool JsonScanner::next_item(char closing) {
  const char c = peek();
  if (c == closing) {
    ++at_;
    --depth_;
    first_ = false;
    return false;
  }
  if (!first_) {
    if (c != ',') return fail();
    ++at_;
  }
  first_ = false;
  return !failed_;
}

std::optional<std::string_view> JsonScanner::next_member() {
  if (!next_item('}')) return std::nullopt;
  if (peek() != '"') return fail(), std::nullopt;
  const std::size_t begin = at_ + 1;
  if (!skip_string()) return std::nullopt;
  std::string_view name = text_.substr(begin, at_ - begin - 1);
  if (peek() != ':') return fail(), std::nullopt;
  ++at_;
  if (name.find('\\') != std::string_view::npos) {
    name_ = unescape_json_string(name);
    name = name_;
  }
  return name;
}

std::string_view JsonScanner::raw_value() {
  skip_blanks();
  const std::size_t begin = at_;
  if (!skip_value()) return {};
  return text_.substr(begin, at_ - begin);
}

std::optional<std::string> JsonScanner::string_value() {
  if (kind() != Kind::string) return fail(), std::nullopt;
  const std::string_view raw = raw_value();
  if (failed_) return std::nullopt;
  const std::string_view text = raw.substr(1, raw.size() - 2);
  return text.find('\\') == std::string_view::npos ? std::string(text) : unescape_json_string(text);
}

std::size_t JsonScanner::position() {
  skip_blanks();
  return at_;
}

bool JsonScanner::at_end() {
  skip_blanks();
  return !failed_ && at_ == text_.size();
}

bool JsonScanner::skip_value() {
  switch (const char c = peek()) {
    case '{':
      return skip_container('}');
    case '[':
      return skip_container(']');
    case '"':
      return skip_string();
    case 't':
      return skip_word("true");
    case 'f':
      return skip_word("false");
    case 'n':
      return skip_word("null");
    default:
      return is_digit(c) || c == '-' ? skip_number() : fail();
  }
}

// Recursion with skip_value() ends at kMaxJsonDepth.
bool JsonScanner::skip_container(char closing) {
  if (!begin(text_[at_])) return false;
  if (closing == ']') {
    while (next_item(closing)) {
      if (!skip_value()) return false;
    }
    return !failed_;
  }
  while (next_item(closing)) {
    if (peek() != '"' || !skip_string() || peek() != ':') return fail();
    ++at_;
    if (!skip_value()) return false;
  }
  return !failed_;
}

bool JsonScanner::skip_string() {
  ++at_;
  while (at_ < text_.size()) {
    at_ += plain_bytes(text_.substr(at_));
    if (at_ == text_.size()) break;
    const auto c = static_cast<unsigned char>(text_[at_]);
    if (c == '"') {
      ++at_;
      return true;
    }
    if (c < 0x20) return fail();
    if (c == '\\') {
      if (!skip_escape()) return false;
    } else {
      ++at_;
    }
  }
  return fail();
}

bool JsonScanner::skip_escape() {
  const char c = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  if (c != 'u') {
    if (std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos) return fail();
    at_ += 2;
    return true;
  }
  const auto unit = hex4(at_ + 2);
  if (!unit || is_low_surrogate(*unit)) return fail();
  at_ += 6;
  if (!is_high_surrogate(*unit)) return true;
  // Half a character cannot be decoded by whoever claims the job: it must have its other half.
  if (text_.substr(at_, 2) != "\\u") return fail();
  const auto low = hex4(at_ + 2);
  if (!low || !is_low_surrogate(*low)) return fail();
  at_ += 6;
  return true;
}

std::optional<unsigned> JsonScanner::hex4(std::size_t at) const {
  if (at + 4 > text_.size()) return std::nullopt;
  unsigned value = 0;
  const char* end = text_.data() + at + 4;
  const auto parsed = std::from_chars(text_.data() + at, end, value, 16);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return value;
}

bool JsonScanner::skip_digits() {
  const std::size_t begin = at_;
  while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
  return at_ > begin || fail();
}

bool JsonScanner::skip_number() {
  const auto is_next = [&](std::string_view any) {
    return at_ < text_.size() && any.find(text_[at_]) != std::string_view::npos;
  };
  if (is_next("-")) ++at_;
  if (is_next("0")) {
    ++at_;
  } else if (!skip_digits()) {
    return false;
  }
  if (is_next(".")) {
    ++at_;
    if (!skip_digits()) return false;
  }
  if (is_next("eE")) {
    ++at_;
    if (is_next("+-")) ++at_;
    if (!skip_digits()) return false;
  }
  return true;
}

bool JsonScanner::skip_word(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) return fail();
  at_ += word.size();
  return true;
}

}  // namespace reprise::server
