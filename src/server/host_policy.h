// HostPolicy: which Host and Origin headers are answered.
// A web page must not drive a daemon on the reader's own machine: neither directly (its Origin is
// refused) nor by pointing a name of its own at 127.0.0.1 (that Host is refused).
// Immutable; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/request_gate.h"

namespace reprise::server {

class HostPolicy {
 public:
  // Answers to any Host: for servers whose clients bring a token.
  static HostPolicy any_host();
  // Answers to localhost, the loopback addresses, and `names`, whatever the port. A name may be
  // written with a port, which is ignored, and an IPv6 address with or without brackets.
  static HostPolicy only(const std::vector<std::string>& names);

  // Errc::forbidden_host or Errc::forbidden_origin.
  Status check(const RequestHead& head) const;

 private:
  bool answers_to(std::string_view host) const;
  // The origin of a page that this server itself has served.
  bool is_own_origin(std::string_view origin, std::string_view host) const;

  bool any_host_ = false;
  std::vector<std::string> names_;
};

}  // namespace reprise::server
