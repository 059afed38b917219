#include "server/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include "base/text.h"

namespace reprise::server {
namespace {

bool is_token_needed(const ServerCore& core, const Result<RouteMatch>& match) {
  if (core.tokens.empty()) return false;
  return !match || match->route == nullptr || match->route->needs_token;
}

// The name of the token.
Result<std::string_view> check_token(ServerCore& core, const RequestHead& head, Visitor& visitor) {
  if (!head.authorization) {
    return Error{Errc::unauthorized, "a token is needed: Authorization: Bearer …"};
  }
  const auto now = std::chrono::steady_clock::now();
  // A connection that has shown a right one is spared: a neighbour who guesses cannot stop it.
  if (!visitor.proven && core.wrong_tokens.must_wait(visitor.peer, now)) {
    return Error{Errc::too_many_wrong_tokens,
                 "too many wrong tokens from this address; no token is looked at for a moment"};
  }
  const auto caller = core.tokens.match(*head.authorization);
  visitor.proven = caller.has_value();
  if (caller) return *caller;
  core.wrong_tokens.count(visitor.peer, now);
  return Error{Errc::unauthorized, "the token is not one of this server's"};
}

Status check_body(const ServerCore& core, const RequestHead& head) {
  if (head.content_length.value_or(0) > core.options.max_body_bytes) {
    return Error{Errc::body_too_large,
                 fmt::format("the body is beyond {}", format_bytes(core.options.max_body_bytes))};
  }
  if (head.content_encoding && !equal_ignoring_case(*head.content_encoding, "identity")) {
    return Error{Errc::invalid_request, "Content-Encoding: compressed bodies are not taken"};
  }
  return ok();
}

// Those of RFC 9110 and PATCH: where one of them has no route, it is the path that lacks it.
bool is_known_method(std::string_view method) {
  constexpr std::array<std::string_view, 9> kKnown = {
      "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};
  return std::ranges::find(kKnown, method) != kKnown.end();
}

Response unknown_method(std::string_view method) {
  Response response = error_response(
      {Errc::invalid_request, fmt::format("{} is no method that is known here", method)});
  response.http_status = 501;  // RFC 9110, 9.1
  return response;
}

Response method_refusal(std::string_view method, const RouteMatch& match) {
  Response response = error_response(
      {Errc::method_not_allowed, fmt::format("{} is not among {}", method, match.allow)});
  response.extra_headers = fmt::format("Allow: {}\r\n", match.allow);
  return response;
}

}  // namespace

std::variant<RouteMatch, Response> admit(ServerCore& core, const RequestHead& head,
                                         Visitor& visitor) {
  if (auto status = core.host_policy.check(head); !status) return error_response(status.error());
  auto match = match_route(head.method, head.path);
  std::string_view caller;
  if (is_token_needed(core, match)) {
    const auto checked = check_token(core, head, visitor);
    if (!checked) return error_response(checked.error());
    caller = *checked;
  }
  if (!is_known_method(head.method)) return unknown_method(head.method);
  if (!match) return error_response(match.error());
  if (match->route == nullptr) return method_refusal(head.method, *match);
  if (auto status = check_body(core, head); !status) return error_response(status.error());
  match->caller = caller;
  return std::move(*match);
}

}  // namespace reprise::server
