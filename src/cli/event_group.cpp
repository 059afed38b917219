#include "cli/event_group.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "spool/event.h"

namespace reprise::cli {
namespace {

// A request has an object and an array around its events, and the receiver counts them too.
constexpr std::size_t kMaxEventDepth = kMaxJsonDepth - 2;

// Of valid JSON.
std::size_t depth_of(std::string_view json) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') {
      while (json[++i] != '"') i += json[i] == '\\' ? 1 : 0;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Result<std::string> make_event(const Ulid& id, const std::string& type, std::string_view data) {
  auto json = spool::new_event_json(
      {.id = encode_ulid(id), .type = type, .timestamp = ulid_time(id), .data = data});
  if (json.size() > spool::kMaxEventBytes) {
    return Error{Errc::payload_too_large,
                 fmt::format("the event has {} bytes; at most {} can be sent", json.size(),
                             spool::kMaxEventBytes)};
  }
  if (const std::size_t depth = depth_of(json); depth > kMaxEventDepth) {
    return Error{Errc::invalid_request,
                 fmt::format("the event is nested {} levels deep; at most {} can be sent", depth,
                             kMaxEventDepth)};
  }
  return json;
}

}  // namespace reprise::cli
