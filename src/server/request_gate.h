// The gate: a request's header block, read strictly. It runs over the raw bytes before anything
// else looks at them, so that this server and whatever stands in front of it cannot disagree about
// where a request ends (request smuggling) or whom it is for.
//
// Refused, where lenient parsers guess: bare CR, LF or NUL, folded lines, space before a colon,
// more than one Host, Content-Length or Transfer-Encoding, both of the latter together, a length
// that is not plain digits, any transfer coding but `chunked`, targets that are neither a path nor
// an absolute address.
//
// Pure functions over bytes; views point into the block that was passed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/errc.h"

namespace reprise::server {

// What the server needs to know of a request's header. Header fields nobody asks for are checked
// and forgotten.
struct RequestHead {
  std::string_view method;
  std::string_view path;   // begins with '/', still percent-encoded
  std::string_view query;  // without '?'
  bool http_1_0 = false;
  bool keep_alive = true;

  std::optional<std::uint64_t> content_length;  // the largest number for all that are larger
  bool chunked = false;
  bool expects_continue = false;

  // Absent: an empty optional. None of them may occur twice.
  // As it came, "localhost:7333"; that of the target where the target has one.
  std::optional<std::string_view> host;
  std::optional<std::string_view> authorization;
  std::optional<std::string_view> origin;
  std::optional<std::string_view> if_none_match;
  std::optional<std::string_view> last_event_id;
  std::optional<std::string_view> content_encoding;
  std::optional<std::string_view> project_root;  // Reprise-Project-Root, percent-encoded

  bool has_body() const { return chunked || content_length.value_or(0) > 0; }
};

// Why a request is not read any further. The connection must be closed after the reply: where the
// next request would begin is not known.
struct GateRefusal {
  int http_status = 400;  // 400, 417, 431, 501 or 505, as RFC 9110 and 9112 have them
  Errc code = Errc::invalid_request;
  std::string detail;
};

inline constexpr std::size_t kMaxHeaderFields = 100;

// Bytes of `input` up to and with the empty line that ends the header, or 0 when it has not come
// yet. Recognises bare line feeds too, so that they are refused at once rather than waited for.
// `searched`: bytes known not to end a header, from an earlier call.
std::size_t find_header_end(std::string_view input, std::size_t searched = 0);

// `block` is everything up to and with the empty line.
std::variant<RequestHead, GateRefusal> read_request_head(std::string_view block);

// Whether it may stand in the name of a header field (RFC 9110, 5.6.2).
bool is_token_byte(char c);

// For comparing host names and other ASCII words that HTTP takes in any case.
bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace reprise::server
