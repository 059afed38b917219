// The address a server is told to listen on, as text: "127.0.0.1:7333", "[::1]:7333",
// "localhost:0".
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace reprise::server {

struct ListenAddress {
  std::string host;  // without brackets
  std::string port;  // 0 to 65535
};

// Errc::invalid_field, with what was wrong; `setting` is what the message begins with.
Result<ListenAddress> parse_listen_address(std::string_view text,
                                           std::string_view setting = "listen");

}  // namespace reprise::server
