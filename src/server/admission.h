// Admission: whether a request is served, decided from its header alone, so that a body is read
// only for a client that may send one. Order: Host and Origin, then the token, then the route, then
// the body's size. A client without a token learns nothing about routes.
#pragma once

#include <variant>

#include "server/request_gate.h"
#include "server/response.h"
#include "server/routes.h"
#include "server/server_core.h"

namespace reprise::server {

// Who sends a request, as far as its connection can tell.
struct Visitor {
  Peer peer{};
  bool proven = false;  // its last token was right
};

// The route, or the refusal.
std::variant<RouteMatch, Response> admit(ServerCore& core, const RequestHead& head,
                                         Visitor& visitor);

}  // namespace reprise::server
