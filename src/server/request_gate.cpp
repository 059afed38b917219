#include "server/request_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace reprise::server {
namespace {

// Which bytes may stand where, one table each: looked up for every byte of every request.
using ByteSet = std::array<bool, 256>;

constexpr ByteSet byte_set(std::string_view others) {
  ByteSet set{};
  for (int c = '0'; c <= '9'; ++c) set[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) set[static_cast<std::size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) set[static_cast<std::size_t>(c)] = true;
  for (const char c : others) set[static_cast<unsigned char>(c)] = true;
  return set;
}

constexpr ByteSet field_value_bytes() {
  ByteSet set{};
  for (std::size_t c = 0x20; c < 0x100; ++c) set[c] = c != 0x7F;
  set['\t'] = true;
  return set;
}

constexpr ByteSet kTokenBytes = byte_set("!#$%&'*+-.^_`|~");        // RFC 9110, 5.6.2
constexpr ByteSet kTargetBytes = byte_set("-._~!$&'()*+,;=:@/?%");  // RFC 3986: path, query
constexpr ByteSet kNameBytes = byte_set("-._");                     // host names
constexpr ByteSet kValueBytes = field_value_bytes();
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kIp6Bytes = "0123456789abcdefABCDEF:.";

bool all_in(std::string_view text, const ByteSet& set) {
  return std::ranges::all_of(text, [&](char c) { return set[static_cast<unsigned char>(c)]; });
}

GateRefusal refusal(std::string detail, int http_status = 400) {
  return {http_status, Errc::invalid_request, std::move(detail)};
}
using Problem = std::optional<GateRefusal>;
constexpr std::nullopt_t kNone = std::nullopt;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view trim_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool is_port(std::string_view text) {
  return text.size() <= 5 && text.find_first_not_of(kDigits) == std::string_view::npos;
}

// host [":" port], nothing else: no user, no list, no escapes.
bool is_authority(std::string_view text) {
  if (text.empty()) return false;
  std::size_t host_end = 0;
  if (text.front() == '[') {
    host_end = text.find(']');
    if (host_end == std::string_view::npos || host_end < 3) return false;
    const std::string_view address = text.substr(1, host_end - 1);
    if (address.find_first_not_of(kIp6Bytes) != std::string_view::npos) return false;
    ++host_end;
  } else {
    host_end = std::min(text.find(':'), text.size());
    if (host_end == 0 || !all_in(text.substr(0, host_end), kNameBytes)) return false;
  }
  if (host_end == text.size()) return true;
  return text[host_end] == ':' && is_port(text.substr(host_end + 1));
}

class HeadReader {
 public:
  explicit HeadReader(std::string_view block) : rest_(block) {}

  std::variant<RequestHead, GateRefusal> read() {
    if (auto problem = read_request_line()) return std::move(*problem);
    for (std::size_t fields = 0;; ++fields) {
      const auto line = next_line();
      if (!line) return refusal("a line of the header does not end in CR LF");
      if (line->empty()) break;
      if (fields == kMaxHeaderFields) {
        return GateRefusal{431, Errc::request_header_too_large,
                           fmt::format("more than {} header fields", kMaxHeaderFields)};
      }
      if (auto problem = read_field(*line)) return std::move(*problem);
    }
    if (!rest_.empty()) return refusal("the header goes on after its empty line");
    if (auto problem = check_whole()) return std::move(*problem);
    return head_;
  }

 private:
  // Without its CR LF; nullopt when it does not end so.
  std::optional<std::string_view> next_line() {
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos || end == 0 || rest_[end - 1] != '\r') return std::nullopt;
    const std::string_view line = rest_.substr(0, end - 1);
    rest_.remove_prefix(end + 1);
    return line;
  }

  Problem read_request_line() {
    const auto line = next_line();
    if (!line) return refusal("the request line does not end in CR LF");
    const std::size_t method_end = line->find(' ');
    const std::size_t target_end = line->rfind(' ');
    if (method_end == std::string_view::npos || method_end == target_end) {
      return refusal("the request line is not METHOD TARGET VERSION");
    }
    head_.method = line->substr(0, method_end);
    if (head_.method.empty() || !all_in(head_.method, kTokenBytes)) {
      return refusal("the method is not a token");
    }
    if (auto problem = read_version(line->substr(target_end + 1))) return problem;
    return read_target(line->substr(method_end + 1, target_end - method_end - 1));
  }

  Problem read_version(std::string_view version) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const bool well_formed = version.size() == 8 && version.starts_with("HTTP/") &&
                             is_digit(version[5]) && version[6] == '.' && is_digit(version[7]);
    if (!well_formed) return refusal("the version is not HTTP/1.1");
    if (version[5] != '1') return refusal("only HTTP/1.1 and HTTP/1.0 are spoken here", 505);
    // A later 1.x means what 1.1 means (RFC 9110, 2.5).
    head_.http_1_0 = version.back() == '0';
    head_.keep_alive = !head_.http_1_0;
    return kNone;
  }

  Problem read_target(std::string_view target) {
    target = take_authority(target);
    if (target.empty() || target.front() != '/') return refusal("the target is not a path");
    if (!all_in(target, kTargetBytes)) {
      return refusal("the target holds a byte that must be percent-encoded");
    }
    const std::size_t path_end = std::min(target.find('?'), target.size());
    head_.path = target.substr(0, path_end);
    head_.query = target.substr(std::min(path_end + 1, target.size()));
    return kNone;
  }

  // Absolute form, as sent to proxies: its authority is kept, to stand for Host. Returns what
  // follows it.
  std::string_view take_authority(std::string_view target) {
    std::size_t scheme_bytes = 0;
    for (const std::string_view scheme : {"http://", "https://"}) {
      if (equal_ignoring_case(target.substr(0, scheme.size()), scheme))
        scheme_bytes = scheme.size();
    }
    if (scheme_bytes == 0) return target;
    target.remove_prefix(scheme_bytes);
    const std::size_t end = std::min(target.find_first_of("/?"), target.size());
    authority_ = target.substr(0, end);
    target.remove_prefix(end);
    return target.empty() ? "/" : target;
  }

  Problem read_field(std::string_view line) {
    if (line.front() == ' ' || line.front() == '\t') return refusal("a folded header line");
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return refusal("a header line without a colon");
    const std::string_view name = line.substr(0, colon);
    if (name.empty() || !all_in(name, kTokenBytes)) return refusal("a header name is not a token");
    const std::string_view value = trim_blanks(line.substr(colon + 1));
    if (!all_in(value, kValueBytes)) {
      return refusal(fmt::format("a control character in the header {}", name));
    }
    return take_field(name, value);
  }

  Problem take_field(std::string_view name, std::string_view value) {
    if (equal_ignoring_case(name, "connection")) return read_connection(value);
    if (equal_ignoring_case(name, "content-length")) return read_content_length(value);
    if (equal_ignoring_case(name, "transfer-encoding")) return read_transfer_encoding(value);
    if (equal_ignoring_case(name, "expect")) return read_expect(value);
    using Slot = std::optional<std::string_view> RequestHead::*;
    static constexpr std::array<std::pair<std::string_view, Slot>, 7> kKept = {{
        {"host", &RequestHead::host},
        {"authorization", &RequestHead::authorization},
        {"reprise-project-root", &RequestHead::project_root},
        {"origin", &RequestHead::origin},
        {"if-none-match", &RequestHead::if_none_match},
        {"last-event-id", &RequestHead::last_event_id},
        {"content-encoding", &RequestHead::content_encoding},
    }};
    for (const auto& [kept, slot] : kKept) {
      if (!equal_ignoring_case(name, kept)) continue;
      if (head_.*slot) return refusal(fmt::format("the header {} comes twice", name));
      head_.*slot = value;
    }
    return kNone;
  }

  Problem read_connection(std::string_view list) {
    while (!list.empty()) {
      const std::size_t end = std::min(list.find(','), list.size());
      const std::string_view option = trim_blanks(list.substr(0, end));
      if (equal_ignoring_case(option, "close")) closes_ = true;
      if (equal_ignoring_case(option, "keep-alive")) head_.keep_alive = true;
      list.remove_prefix(std::min(end + 1, list.size()));
    }
    return kNone;
  }

  Problem read_content_length(std::string_view value) {
    if (head_.content_length) return refusal("Content-Length comes twice");
    if (value.empty() || value.find_first_not_of(kDigits) != std::string_view::npos) {
      return refusal("Content-Length is not a plain number");
    }
    std::uint64_t length = 0;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), length);
    // Well-formed and beyond all limits: refused as a body that is too large.
    if (parsed.ec != std::errc{}) length = std::numeric_limits<std::uint64_t>::max();
    head_.content_length = length;
    return kNone;
  }

  Problem read_transfer_encoding(std::string_view value) {
    if (head_.chunked) return refusal("Transfer-Encoding comes twice");
    if (equal_ignoring_case(value, "chunked")) {
      head_.chunked = true;
      return kNone;
    }
    // Only a body whose last coding is `chunked` has an end that can be told (RFC 9112, 6.3): one
    // that is coded otherwise below it could be read past, and is just not understood.
    const std::size_t comma = value.rfind(',');
    if (comma == std::string_view::npos ||
        !equal_ignoring_case(trim_blanks(value.substr(comma + 1)), "chunked")) {
      return refusal("Transfer-Encoding does not end in 'chunked'");
    }
    const std::string_view others = trim_blanks(value.substr(0, comma));
    if (others.empty() || others.front() == ',') return refusal("an empty transfer coding");
    if (has_chunked(others)) return refusal("'chunked' comes twice");
    return refusal("the only transfer coding understood here is 'chunked'", 501);
  }

  static bool has_chunked(std::string_view codings) {
    while (!codings.empty()) {
      const std::size_t end = std::min(codings.find(','), codings.size());
      if (equal_ignoring_case(trim_blanks(codings.substr(0, end)), "chunked")) return true;
      codings.remove_prefix(std::min(end + 1, codings.size()));
    }
    return false;
  }

  Problem read_expect(std::string_view value) {
    if (head_.expects_continue) return refusal("Expect comes twice");
    if (!equal_ignoring_case(value, "100-continue")) {
      return refusal("the only expectation met here is 100-continue", 417);
    }
    head_.expects_continue = true;
    return kNone;
  }

  // What no single line can tell.
  Problem check_whole() {
    if (!head_.host && !head_.http_1_0) return refusal("the header Host is missing");
    if (head_.host && !is_authority(*head_.host)) return refusal("Host is not a host and port");
    if (authority_) {
      if (!is_authority(*authority_)) return refusal("the target's host is not a host and port");
      head_.host = authority_;  // RFC 9112, 3.2.2: whatever Host says
    }
    if (head_.chunked && head_.http_1_0) return refusal("HTTP/1.0 has no Transfer-Encoding");
    if (head_.chunked && head_.content_length) {
      return refusal("Content-Length and Transfer-Encoding exclude each other");
    }
    if (head_.http_1_0) head_.expects_continue = false;  // RFC 9110, 10.1.1
    if (closes_) head_.keep_alive = false;
    return kNone;
  }

  std::string_view rest_;
  RequestHead head_;
  std::optional<std::string_view> authority_;
  bool closes_ = false;
};

}  // namespace

bool is_token_byte(char c) { return kTokenBytes[static_cast<unsigned char>(c)]; }

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::ranges::equal(a, b, {}, lower, lower);
}

std::size_t find_header_end(std::string_view input, std::size_t searched) {
  // The end may straddle the old bytes and the new: step back over "\n\r".
  std::size_t at = searched > 2 ? searched - 2 : 0;
  while ((at = input.find('\n', at)) != std::string_view::npos) {
    const std::string_view after = input.substr(at + 1, 2);
    if (after.starts_with('\n')) return at + 2;
    if (after == "\r\n") return at + 3;
    ++at;
  }
  return 0;
}

std::variant<RequestHead, GateRefusal> read_request_head(std::string_view block) {
  return HeadReader(block).read();
}

}  // namespace reprise::server
