#include "cli/json_input.h"

#include <fmt/format.h>

#include "base/json_problem.h"

namespace reprise::cli {
namespace {

// The first line is not named: mostly there is no other.
std::string describe(std::string_view text, const JsonProblem& problem) {
  std::string where = describe_position(text, problem.offset);
  if (constexpr std::string_view kFirstLine = "line 1, "; where.starts_with(kFirstLine)) {
    where.erase(0, kFirstLine.size());
  }
  return fmt::format("not valid JSON: {} at {}", problem.problem, where);
}

}  // namespace

Result<Json> parse_json_input(std::string_view what, std::string_view text) {
  auto parsed = Json::parse(text);
  if (parsed) return parsed;
  const auto found = find_json_problem(text);
  return Error{
      Errc::invalid_request,
      fmt::format("{} is {}", what, found ? describe(text, *found) : parsed.error().detail)};
}

Status check_json_input(std::string_view what, std::string_view text) {
  const auto found = find_json_problem(text, JsonNumbers::any);
  if (!found) return ok();
  return Error{Errc::invalid_request, fmt::format("{} is {}", what, describe(text, *found))};
}

}  // namespace reprise::cli
