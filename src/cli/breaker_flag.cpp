#include "cli/breaker_flag.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/json_writer.h"
#include "base/result.h"
#include "base/text.h"
#include "cli/flags.h"

namespace reprise::cli {
namespace {

struct Field {
  const char* name;
  std::string (*problem)(const std::string&);
  bool is_number;
};

constexpr std::array kFields{
    Field{"failure_rate", number_problem, true}, Field{"window", duration_problem, false},
    Field{"min", count_problem, true}, Field{"pause", duration_problem, false},
    Field{"canaries", count_problem, true}};

Error refuse(std::string problem) { return {Errc::invalid_field, std::move(problem)}; }

Error unknown_field(const std::string& typed) {
  std::vector<std::string> names;
  for (const auto& field : kFields) names.emplace_back(field.name);
  if (const auto meant = did_you_mean(typed, names)) {
    return refuse(fmt::format("unknown field '{}'; did you mean '{}'?", typed, *meant));
  }
  return refuse(fmt::format("unknown field '{}'; there are {}", typed, fmt::join(names, ", ")));
}

Result<std::map<std::string, std::string>> parse(const std::string& text) {
  std::map<std::string, std::string> values;
  if (text == "on") return values;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, comma - begin);
    begin = comma + 1;
    const std::size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    const auto* const field =
        std::ranges::find_if(kFields, [&](const Field& each) { return each.name == name; });
    if (name.empty()) return refuse("a field is missing; write FIELD=VALUE,…, on or none");
    if (field == kFields.end()) return unknown_field(name);
    if (equals == std::string::npos || equals + 1 == part.size()) {
      return refuse(fmt::format("{} has no value; write {}=VALUE", name, name));
    }
    const std::string value = part.substr(equals + 1);
    if (const auto problem = field->problem(value); !problem.empty()) {
      return refuse(name + ": " + problem);
    }
    if (!values.emplace(name, value).second) return refuse(name + " is given twice");
  }
  return values;
}

}  // namespace

std::string breaker_problem(const std::string& text) {
  const auto values = parse(text);
  return values ? std::string() : values.error().detail;
}

void write_breaker(JsonWriter& json, const std::string& text) {
  const auto values = parse(text);
  json.begin_object();
  for (const auto& field : kFields) {
    json.key(field.name);
    const auto given = values->find(field.name);
    if (given == values->end()) {
      json.null();
    } else if (field.is_number) {
      json.value(parse_number(given->second).value_or(0));
    } else {
      json.value(given->second);
    }
  }
  json.end_object();
}

}  // namespace reprise::cli
