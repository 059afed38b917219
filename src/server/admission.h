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

// The route, or the refusal.
std::variant<RouteMatch, Response> admit(const ServerCore& core, const RequestHead& head);

}  // namespace reprise::server
