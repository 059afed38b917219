#include "model/webhook.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace reprise {
namespace {

Error refused(std::string problem) { return {Errc::invalid_field, std::move(problem)}; }

// Spaces and control characters could end the request's first line; bytes beyond ASCII cannot.
bool is_unprintable(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte <= ' ' || byte == 0x7F;
}

bool is_host_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

bool is_ipv6_character(char c) {
  return (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || (c >= '0' && c <= '9') || c == ':' ||
         c == '.';
}

bool starts_with_ignoring_case(std::string_view text, std::string_view lower_prefix) {
  return text.size() >= lower_prefix.size() &&
         std::equal(lower_prefix.begin(), lower_prefix.end(), text.begin(), [](char l, char c) {
           return l == (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
         });
}

// Takes "http://" or "https://" off the front of `url`.
bool take_scheme(std::string_view& url) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!starts_with_ignoring_case(url, scheme)) continue;
    url.remove_prefix(scheme.size());
    return true;
  }
  return false;
}

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), port);
  return parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size() && port >= 1 &&
         port <= 65535;
}

// The host at the start of `authority`, taken off it: "[::1]" or "example.com". Empty: none.
std::string_view take_host(std::string_view& authority) {
  std::size_t end = 0;
  if (authority.starts_with('[')) {
    const std::size_t bracket = authority.find(']');
    const bool closed = bracket != authority.npos && bracket > 1;
    const std::string_view inside = authority.substr(1, closed ? bracket - 1 : 0);
    if (closed && std::ranges::all_of(inside, is_ipv6_character)) end = bracket + 1;
  } else {
    end = static_cast<std::size_t>(std::ranges::find_if_not(authority, is_host_character) -
                                   authority.begin());
  }
  const std::string_view host = authority.substr(0, end);
  authority.remove_prefix(end);
  return host;
}

}  // namespace

Status check_webhook_url(std::string_view url) {
  if (url.empty()) return refused("an address is missing: write one like https://example.com/dead");
  if (url.size() > kMaxWebhookUrlBytes) {
    return refused(
        fmt::format("the address has {} bytes, more than {}", url.size(), kMaxWebhookUrlBytes));
  }
  if (std::ranges::any_of(url, is_unprintable)) {
    return refused("the address has a space or a control character in it; write it as %20");
  }
  std::string_view rest = url;
  if (!take_scheme(rest)) {
    return refused(fmt::format("'{}' does not begin with http:// or https://", url));
  }
  std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  // Not quoted: what stands there is a password.
  if (authority.find('@') != authority.npos) {
    return refused("the address must not have a user or a password in it");
  }
  if (take_host(authority).empty()) return refused(fmt::format("'{}' names no host", url));
  if (authority.empty()) return ok();
  if (!authority.starts_with(':')) {
    return refused(fmt::format("'{}' has '{}' in the name of its host", url, authority.front()));
  }
  if (!is_port(authority.substr(1))) {
    return refused(fmt::format("'{}' has no port between 1 and 65535 after its colon", url));
  }
  return ok();
}

}  // namespace reprise
