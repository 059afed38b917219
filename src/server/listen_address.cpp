#include "server/listen_address.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

namespace reprise::server {

Result<ListenAddress> parse_listen_address(std::string_view text, std::string_view setting) {
  const auto refuse = [&](std::string_view why) {
    return Error{Errc::invalid_field, fmt::format("{}: '{}' {}", setting, text, why)};
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return refuse("has no port: write it like 127.0.0.1:7333");
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return refuse("has an IPv6 address without brackets: write it like [::1]:7333");
  }
  if (host.empty()) return refuse("has no host: write it like 127.0.0.1:7333");

  std::uint16_t number = 0;
  const char* end = port.data() + port.size();
  const auto parsed = std::from_chars(port.data(), end, number);
  if (port.empty() || parsed.ec != std::errc{} || parsed.ptr != end) {
    return refuse("has a port that is no number from 0 to 65535");
  }
  return ListenAddress{std::string(host), std::string(port)};
}

}  // namespace reprise::server
