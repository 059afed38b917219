#include "model/ingest_routes.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/pattern.h"
#include "model/limits.h"

namespace reprise {
namespace {

// Characters, not bytes, that a type must have to fit.
std::size_t fixed_characters(std::string_view pattern) {
  return static_cast<std::size_t>(std::ranges::count_if(pattern, [](char c) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    return c != '*' && !continues;
  }));
}

Error bad_route(std::string_view text, const std::string& problem) {
  return {Errc::invalid_field, "route '" + std::string(text) + "': " + problem};
}

}  // namespace

Result<IngestRoutes::Route> IngestRoutes::parse_route(std::string_view text) {
  // The last one: a type may hold '=', the name of a queue cannot.
  const std::size_t equals = text.rfind('=');
  if (equals == std::string_view::npos) {
    return bad_route(text, "has no '='; write PATTERN=QUEUE, as in order.*=orders");
  }
  Route route{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
  if (const std::string problem = event_type_problem(route.pattern); !problem.empty()) {
    return bad_route(text, "the pattern " + problem);
  }
  if (const Status name = check_name("queue", route.queue); !name) {
    return bad_route(text, name.error().detail);
  }
  return route;
}

Result<IngestRoutes> IngestRoutes::parse(std::span<const std::string> routes) {
  IngestRoutes parsed;
  for (const std::string& text : routes) {
    auto route = parse_route(text);
    if (!route) return route.error();
    if (std::ranges::find(parsed.routes_, route->pattern, &Route::pattern) !=
        parsed.routes_.end()) {
      return bad_route(text, "the pattern '" + route->pattern + "' is given twice; keep one");
    }
    parsed.routes_.push_back(std::move(*route));
  }
  std::ranges::sort(parsed.routes_, [](const Route& a, const Route& b) {
    const std::size_t a_fixed = fixed_characters(a.pattern);
    const std::size_t b_fixed = fixed_characters(b.pattern);
    return std::tie(b_fixed, a.pattern) < std::tie(a_fixed, b.pattern);
  });
  return parsed;
}

std::string_view IngestRoutes::queue_of(std::string_view type) const {
  const auto route = std::ranges::find_if(
      routes_, [&](const Route& candidate) { return matches_pattern(candidate.pattern, type); });
  return route == routes_.end() ? kDefaultEventQueue : std::string_view(route->queue);
}

std::vector<std::string> IngestRoutes::texts() const {
  std::vector<std::string> texts;
  texts.reserve(routes_.size());
  for (const Route& route : routes_) texts.push_back(route.pattern + "=" + route.queue);
  return texts;
}

}  // namespace reprise
