#include "server/admission.h"

#include <fmt/format.h>

#include "base/text.h"

namespace reprise::server {
namespace {

bool is_token_needed(const ServerCore& core, const Result<RouteMatch>& match) {
  if (core.tokens.empty()) return false;
  return !match || match->route == nullptr || match->route->needs_token;
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

Response method_refusal(std::string_view method, const RouteMatch& match) {
  Response response = error_response(
      {Errc::method_not_allowed, fmt::format("{} is not among {}", method, match.allow)});
  response.extra_headers = fmt::format("Allow: {}\r\n", match.allow);
  return response;
}

}  // namespace

std::variant<RouteMatch, Response> admit(const ServerCore& core, const RequestHead& head) {
  if (auto status = core.host_policy.check(head); !status) return error_response(status.error());
  auto match = match_route(head.method, head.path);
  const auto caller = core.tokens.match(head.authorization.value_or(""));
  if (is_token_needed(core, match) && !caller) {
    return error_response({Errc::unauthorized, head.authorization
                                                   ? "the token is not one of this server's"
                                                   : "a token is needed: Authorization: Bearer …"});
  }
  if (!match) return error_response(match.error());
  if (match->route == nullptr) return method_refusal(head.method, *match);
  if (auto status = check_body(core, head); !status) return error_response(status.error());
  match->caller = caller.value_or("");
  return std::move(*match);
}

}  // namespace reprise::server
