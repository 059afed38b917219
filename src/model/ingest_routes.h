// IngestRoutes: which queue an ingested event goes to, by its type.
// Of the patterns that fit a type the one with the most characters other than '*' counts, of equals
// the first in the order of the alphabet; so the order in which they were given means nothing.
// Immutable once made; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace reprise {

// Where events go that no route fits.
inline constexpr std::string_view kDefaultEventQueue = "events";

class IngestRoutes {
 public:
  IngestRoutes() = default;  // none: all events go to kDefaultEventQueue

  // Each as "PATTERN=QUEUE"; '*' in a pattern stands for any characters, also none.
  // Errc::invalid_field names the route that is wrong, and the fix.
  static Result<IngestRoutes> parse(std::span<const std::string> routes);

  std::string_view queue_of(std::string_view type) const;

  // As parse() takes them, those that count first at the front.
  std::vector<std::string> texts() const;

 private:
  struct Route {
    std::string pattern;
    std::string queue;
  };
  static Result<Route> parse_route(std::string_view text);

  std::vector<Route> routes_;  // those that count first at the front
};

}  // namespace reprise
