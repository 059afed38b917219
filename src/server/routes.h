// Routes: which handler answers which method and path. The one table behind routing, `Allow`,
// metrics and the tests that compare it with docs/api.md and docs/openapi.json.
// Immutable; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/handlers.h"

namespace reprise::server {

struct RouteInfo {
  std::string_view method;
  std::string_view pattern;  // "/v1/queues/{queue}/push"
  Handler handler;
  bool needs_token = true;  // where the server has tokens
};

std::span<const RouteInfo> routes();

// The answer to "who handles this?".
struct RouteMatch {
  const RouteInfo* route = nullptr;  // null: the path is known, the method is not one of its own
  std::string allow;                 // "GET, HEAD, PUT", when route is null
  std::string queue;                 // {queue} and {id}, {key} or {name}, decoded
  std::string id;
  std::string caller;  // the name of the token it came with; empty: none was needed
};

// HEAD finds the route of GET. Errc::not_found, or Errc::invalid_request for a bad escape. What a
// name may hold is checked where it is used.
Result<RouteMatch> match_route(std::string_view method, std::string_view path);

// The place of a route in routes().
std::size_t route_index(const RouteInfo& route);

}  // namespace reprise::server
