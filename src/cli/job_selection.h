// FilterFlags: the filter flags that queue jobs, inspect, retry and purge share (docs/cli.md,
// "Filter"), as parameters of a listing and as the object of a retry or purge.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/url.h"

namespace CLI {
class App;
}  // namespace CLI

namespace reprise {
class JsonWriter;
}  // namespace reprise

namespace reprise::cli {

struct FilterFlags {
  std::optional<std::string> error;
  std::optional<std::string> error_type;
  std::optional<std::string> fingerprint;
  std::optional<std::string> reason;
  std::optional<std::string> older_than;
  std::optional<std::string> newer_than;
  std::vector<std::string> headers;  // NAME=VALUE

  bool any() const;
};

void add_filter_flags(CLI::App& command, FilterFlags& filter);

client::QueryParameters filter_parameters(const FilterFlags& filter);
// Writes members into an object that the caller has begun.
void write_filter_members(JsonWriter& json, const FilterFlags& filter);

}  // namespace reprise::cli
