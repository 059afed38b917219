#include "daemon/settings_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace reprise::daemon {
namespace {

std::string_view wanted(SettingKind kind) {
  switch (kind) {
    case SettingKind::text:
    case SettingKind::choice:
      return "text";
    case SettingKind::duration:
      return "a duration like \"30s\", or a number of seconds";
    case SettingKind::bytes:
      return "a size like \"16MiB\", or a number of bytes";
    case SettingKind::count:
      return "a whole number";
    case SettingKind::boolean:
      return "true or false";
    case SettingKind::list:
      return "an array of text";
    case SettingKind::table:
      return "a table of text";
  }
  return "something else";
}

std::string_view kind_of(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return "text";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "a boolean";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::table:
      return "a table";
    default:
      return "a date or time";
  }
}

std::optional<std::vector<std::string>> text_list(const toml::node& node) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return std::nullopt;
  std::vector<std::string> values;
  for (const toml::node& item : *array) {
    const auto* text = item.as_string();
    if (text == nullptr) return std::nullopt;
    values.push_back(text->get());
  }
  return values;
}

// Numbers become the text a flag would have; which numbers fit is the setting's business.
std::optional<std::vector<std::string>> texts_of(const toml::node& node, SettingKind kind) {
  if (kind == SettingKind::list) return text_list(node);
  if (kind == SettingKind::boolean) {
    const auto* flag = node.as_boolean();
    if (flag == nullptr) return std::nullopt;
    return std::vector{std::string(flag->get() ? "true" : "false")};
  }
  const bool takes_text = kind != SettingKind::count;
  if (const auto* text = node.as_string(); text != nullptr && takes_text) {
    return std::vector{text->get()};
  }
  const bool takes_integers =
      kind == SettingKind::duration || kind == SettingKind::bytes || kind == SettingKind::count;
  if (const auto* integer = node.as_integer(); integer != nullptr && takes_integers) {
    return std::vector{fmt::format("{}", integer->get())};
  }
  if (const auto* number = node.as_floating_point();
      number != nullptr && kind == SettingKind::duration) {
    return std::vector{fmt::format("{}", number->get())};
  }
  return std::nullopt;
}

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const Setting& setting : all_settings()) names.push_back(setting.name);
  return names;
}

std::string origin_of(const std::string& name, const toml::key& key) {
  return fmt::format("{}:{}", name, key.source().begin.line);
}

// "KEY=VALUE" for each line of a table.
void read_table(const Setting& setting, const toml::table& table, const std::string& origin,
                const std::string& name, SettingsFile& file) {
  std::vector<std::string> values;
  for (const auto& [key, node] : table) {
    const auto* text = node.as_string();
    if (text == nullptr) {
      file.problems.push_back(fmt::format("{}: {}.\"{}\": must be text, not {}",
                                          origin_of(name, key), setting.table, key.str(),
                                          kind_of(node)));
      return;
    }
    values.push_back(fmt::format("{}={}", key.str(), text->get()));
  }
  file.values.push_back({&setting, std::move(values), origin});
}

// A table of tables, [ingest], that the names of some settings begin with.
bool read_group(std::string_view group, const toml::node& node, const std::string& name,
                SettingsFile& file) {
  const toml::table* members = node.as_table();
  const std::string prefix = fmt::format("{}.", group);
  const auto in_group = [&](const Setting& setting) { return setting.table.starts_with(prefix); };
  if (members == nullptr || std::ranges::none_of(all_settings(), in_group)) return false;
  for (const auto& [key, member] : *members) {
    const std::string full = fmt::format("{}{}", prefix, key.str());
    const auto setting = std::ranges::find(all_settings(), full, &Setting::table);
    const std::string origin = origin_of(name, key);
    if (setting == all_settings().end()) {
      file.problems.push_back(fmt::format("{}: {}: no such setting", origin, full));
    } else if (const toml::table* table = member.as_table()) {
      read_table(*setting, *table, origin, name, file);
    } else {
      file.problems.push_back(fmt::format("{}: {}: must be {}, not {}", origin, full,
                                          wanted(setting->kind), kind_of(member)));
    }
  }
  return true;
}

void read_key(std::string_view key, const toml::node& node, const std::string& origin,
              SettingsFile& file) {
  const Setting* setting = find_setting(key);
  if (setting == nullptr) {
    file.problems.push_back(
        fmt::format("{}: {}: no such setting{}", origin, key, suggestion(key, setting_names())));
    return;
  }
  if (!setting->table.empty()) {
    file.problems.push_back(
        fmt::format("{}: {}: write it as a table [{}]", origin, key, setting->table));
    return;
  }
  auto values = texts_of(node, setting->kind);
  if (!values) {
    file.problems.push_back(fmt::format("{}: {}: must be {}, not {}", origin, key,
                                        wanted(setting->kind), kind_of(node)));
    return;
  }
  file.values.push_back({setting, std::move(*values), origin});
}

}  // namespace

SettingsFile parse_settings_file(std::string_view text, const std::string& name) {
  SettingsFile file;
  try {
    const toml::table table = toml::parse(text);
    for (const auto& [key, node] : table) {
      if (read_group(key.str(), node, name, file)) continue;
      read_key(key.str(), node, origin_of(name, key), file);
    }
  } catch (const toml::parse_error& error) {
    file.problems.push_back(
        fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()));
  }
  return file;
}

}  // namespace reprise::daemon
