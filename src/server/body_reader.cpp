#include "server/body_reader.h"

#include <fmt/format.h>

#include <utility>

#include "base/json_problem.h"
#include "base/text.h"

namespace reprise::server {

bool BodyReader::skip_null() {
  if (scanner_.kind() != JsonScanner::Kind::null) return false;
  scanner_.raw_value();
  return true;
}

Error BodyReader::syntax_error() const {
  const auto found = find_json_problem(body_);
  if (!found) return Error{Errc::invalid_request, "not valid JSON"};
  return Error{Errc::invalid_request, fmt::format("not valid JSON: {} at {}", found->problem,
                                                  describe_position(body_, found->offset))};
}

Error BodyReader::wrong_kind(std::string_view what, std::string_view expected) {
  if (scanner_.kind() == JsonScanner::Kind::nothing) return syntax_error();
  return Error{Errc::invalid_request, fmt::format("{}: expected {}", what, expected)};
}

Error BodyReader::duplicate_field(std::string_view name) {
  return Error{Errc::invalid_request, fmt::format("duplicate field '{}'", name)};
}

Error BodyReader::unknown_field(std::string_view name, const std::vector<std::string>& known) {
  std::string detail = fmt::format("unknown field '{}'", name);
  if (const auto meant = did_you_mean(name, known)) {
    detail += fmt::format("; did you mean '{}'?", *meant);
  }
  return Error{Errc::unknown_field, std::move(detail)};
}

}  // namespace reprise::server
