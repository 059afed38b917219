#include "daemon/settings_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/json_writer.h"
#include "daemon/settings_table.h"

namespace reprise::daemon {
namespace {

// The value as JSON, which for text, numbers and arrays of text is TOML too.
std::string value_of(const Setting& setting, const Settings& settings) {
  const std::vector<std::string> values = setting.get(settings);
  JsonWriter json;
  if (setting.kind == SettingKind::list) {
    json.begin_array();
    for (const std::string& value : values) json.value(value);
    json.end_array();
  } else if (setting.kind == SettingKind::count) {
    json.raw(values.front());
  } else {
    json.value(values.front());
  }
  return json.take();
}

}  // namespace

std::string settings_as_toml(const LoadedSettings& loaded) {
  std::vector<std::string> lines;
  std::size_t widest = 0;
  for (const Setting& setting : all_settings()) {
    lines.push_back(fmt::format("{} = {}", setting.name, value_of(setting, loaded.settings)));
    widest = std::max(widest, lines.back().size());
  }
  std::string text;
  auto line = lines.begin();
  for (const Setting& setting : all_settings()) {
    text += fmt::format("{:<{}}  # {}\n", *line++, widest, loaded.origins.at(setting.name));
  }
  return text;
}

std::string settings_as_json(const LoadedSettings& loaded) {
  JsonWriter json;
  json.begin_object();
  for (const Setting& setting : all_settings()) {
    json.key(setting.name).begin_object();
    json.key("value").raw(value_of(setting, loaded.settings));
    json.key("origin").value(loaded.origins.at(setting.name));
    json.end_object();
  }
  json.end_object();
  return json.take() + "\n";
}

}  // namespace reprise::daemon
