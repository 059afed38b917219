#include "server/host_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace reprise::server {
namespace {

// "[::1]:7333" -> "[::1]", "localhost:7333" -> "localhost".
std::string_view without_port(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(0, authority.find(']') + 1);
  return authority.substr(0, authority.find(':'));
}

std::string normalized(std::string_view name) {
  const bool bare_ip6 = !name.starts_with('[') && std::ranges::count(name, ':') > 1;
  return bare_ip6 ? fmt::format("[{}]", name) : std::string(without_port(name));
}

bool is_origin(std::string_view origin, std::string_view scheme, std::string_view host) {
  return origin.starts_with(scheme) && equal_ignoring_case(origin.substr(scheme.size()), host);
}

}  // namespace

HostPolicy HostPolicy::any_host() {
  HostPolicy policy;
  policy.any_host_ = true;
  return policy;
}

HostPolicy HostPolicy::only(const std::vector<std::string>& names) {
  HostPolicy policy;
  policy.names_ = {"localhost", "127.0.0.1", "[::1]"};
  for (const std::string& name : names) policy.names_.push_back(normalized(name));
  return policy;
}

bool HostPolicy::answers_to(std::string_view host) const {
  const std::string_view name = without_port(host);
  return any_host_ || std::ranges::any_of(names_, [&](const std::string& known) {
           return equal_ignoring_case(known, name);
         });
}

bool HostPolicy::is_own_origin(std::string_view origin, std::string_view host) const {
  // A server with tokens may stand behind a proxy that adds TLS.
  return is_origin(origin, "http://", host) || (any_host_ && is_origin(origin, "https://", host));
}

Status HostPolicy::check(const RequestHead& head) const {
  const std::string_view host = head.host.value_or("");
  if (!answers_to(host)) {
    return Error{
        Errc::forbidden_host,
        fmt::format("this server does not answer to the host '{}'; --allowed-host adds one", host)};
  }
  if (head.origin && !is_own_origin(*head.origin, host)) {
    return Error{Errc::forbidden_origin,
                 fmt::format("requests from pages of '{}' are refused", *head.origin)};
  }
  return ok();
}

}  // namespace reprise::server
