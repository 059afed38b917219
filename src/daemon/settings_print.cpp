#include "daemon/settings_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "daemon/settings_table.h"

namespace reprise::daemon {
namespace {

// "KEY=VALUE" in its two parts; the key may hold '=', the value cannot.
std::pair<std::string, std::string> split_entry(const std::string& entry) {
  const std::size_t equals = entry.rfind('=');
  return {entry.substr(0, equals), entry.substr(equals + 1)};
}

// The value as JSON, which for text, numbers, true and false, and arrays of text is TOML too.
std::string value_of(const Setting& setting, const Settings& settings) {
  const std::vector<std::string> values = setting.get(settings);
  JsonWriter json;
  if (setting.kind == SettingKind::list) {
    json.begin_array();
    for (const std::string& value : values) json.value(value);
    json.end_array();
  } else if (setting.kind == SettingKind::table) {
    json.begin_object();
    for (const std::string& entry : values) {
      const auto [key, value] = split_entry(entry);
      json.key(key).value(value);
    }
    json.end_object();
  } else if (setting.kind == SettingKind::count || setting.kind == SettingKind::boolean) {
    json.raw(values.front());
  } else {
    json.value(values.front());
  }
  return json.take();
}

std::string table_text(const Setting& setting, const Settings& settings,
                       const std::string& origin) {
  std::string text = fmt::format("\n[{}]  # {}\n", setting.table, origin);
  for (const std::string& entry : setting.get(settings)) {
    const auto [key, value] = split_entry(entry);
    append_json_string(text, key);
    text += " = ";
    append_json_string(text, value);
    text += '\n';
  }
  return text;
}

}  // namespace

std::string settings_as_toml(const LoadedSettings& loaded) {
  struct Line {
    std::string text;
    std::string origin;
  };
  std::vector<Line> lines;
  std::string tables;  // after all else: whatever follows a table's name is in it
  std::size_t widest = 0;
  for (const Setting& setting : all_settings()) {
    const std::string& origin = loaded.origins.at(setting.name);
    if (setting.kind == SettingKind::table) {
      tables += table_text(setting, loaded.settings, origin);
      continue;
    }
    lines.push_back(
        {fmt::format("{} = {}", setting.name, value_of(setting, loaded.settings)), origin});
    widest = std::max(widest, lines.back().text.size());
  }
  std::string text;
  for (const Line& line : lines) {
    text += fmt::format("{:<{}}  # {}\n", line.text, widest, line.origin);
  }
  return text + tables;
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
