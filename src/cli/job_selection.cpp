#include "cli/job_selection.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "base/json_writer.h"
#include "cli/flags.h"

namespace reprise::cli {
namespace {

// visit(name in the API, value) for each flag of one value that was given.
template <class Visit>
void for_each_given(const FilterFlags& filter, Visit visit) {
  const auto visit_given = [&](const char* name, const std::optional<std::string>& value) {
    if (value) visit(name, *value);
  };
  visit_given("error", filter.error);
  visit_given("error_type", filter.error_type);
  visit_given("fingerprint", filter.fingerprint);
  visit_given("reason", filter.reason);
  visit_given("older_than", filter.older_than);
  visit_given("newer_than", filter.newer_than);
}

}  // namespace

bool FilterFlags::any() const {
  bool given = !headers.empty();
  for_each_given(*this, [&](const char*, const std::string&) { given = true; });
  return given;
}

void add_filter_flags(CLI::App& command, FilterFlags& filter) {
  constexpr char kGroup[] = "Filter (all that are given must hold)";
  const auto add = [&](const char* flag, std::optional<std::string>& target, const char* type,
                       const char* description) {
    command.add_option(flag, target, description)->type_name(type)->group(kGroup);
  };
  add("--error", filter.error, "TEXT", "A part of the last error");
  add("--error-type", filter.error_type, "TEXT", "The last error's type");
  add("--fingerprint", filter.fingerprint, "HEX", "One group of `queue errors`");
  add("--reason", filter.reason, "TEXT", "Why it died");
  add_duration(command, "--older-than", filter.older_than,
               "Dead for longer than this; a job that is not dead: pushed longer ago")
      ->group(kGroup);
  add_duration(command, "--newer-than", filter.newer_than, "Dead, or pushed, within this")
      ->group(kGroup);
  add_headers(command, filter.headers, "With this header; may be repeated")->group(kGroup);
}

client::QueryParameters filter_parameters(const FilterFlags& filter) {
  client::QueryParameters parameters;
  for_each_given(filter, [&](const char* name, const std::string& value) {
    parameters.emplace_back(name, value);
  });
  for (const auto& header : filter.headers) {
    auto [name, value] = split_header(header);
    parameters.emplace_back("header." + name, std::move(value));
  }
  return parameters;
}

void write_filter_members(JsonWriter& json, const FilterFlags& filter) {
  for_each_given(filter,
                 [&](const char* name, const std::string& value) { json.key(name).value(value); });
  if (filter.headers.empty()) return;
  json.key("headers").begin_object();
  for (const auto& header : filter.headers) {
    const auto [name, value] = split_header(header);
    json.key(name).value(value);
  }
  json.end_object();
}

}  // namespace reprise::cli
