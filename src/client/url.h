// Urls: what may stand where in the address of a request.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace reprise::client {

// Everything but unreserved characters as %XX: safe in a path segment and in a query.
std::string percent_encode(std::string_view text);

using QueryParameters = std::vector<std::pair<std::string, std::string>>;
// "?a=1&b=2", or nothing for none.
std::string encode_query(const QueryParameters& parameters);

struct ServerUrl {
  std::string base;  // "http://127.0.0.1:7333", without a slash at the end
  bool loopback = false;
};

// Takes "http://host:port", "https://host/prefix", "host:port" (http is meant).
// Errc::invalid_field: not such an address; the message says why.
Result<ServerUrl> parse_server_url(std::string_view text);

// A whole address, taken apart so that server.base + target is what was written.
struct EndpointUrl {
  ServerUrl server;
  std::string target;  // path and query: "/ingest?key=1"; "/" when there is neither
};

// Takes "https://host:port/path?query". Errc::invalid_field: not such an address, or one with a
// user or password, which messages would show.
Result<EndpointUrl> parse_endpoint_url(std::string_view text);

}  // namespace reprise::client
