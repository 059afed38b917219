// The table of settings: one row each, from which flags, environment variables, the keys of
// reprise.toml, --help, --print-config and docs/configuration.md all come.
//
// Adding a setting: a row in settings_table.cpp, and the line in docs/configuration.md that the
// unit test then asks for.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "daemon/settings.h"

namespace reprise::daemon {

// A table is a list of "KEY=VALUE"; in reprise.toml it is a table of its own.
enum class SettingKind : std::uint8_t {
  text,
  duration,
  bytes,
  count,
  boolean,
  choice,
  list,
  table
};
constexpr bool takes_many(SettingKind kind) {
  return kind == SettingKind::list || kind == SettingKind::table;
}

struct Setting {
  std::string name;          // "sync_interval", also the key in reprise.toml
  std::string flag;          // "--sync-interval"
  std::string variable;      // "REPRISE_SYNC_INTERVAL"
  std::string group;         // the heading in --help
  std::string help;          // one line, with the range
  std::string default_text;  // as people read it; "none" for nothing
  std::string placeholder;   // "DURATION": the flag's value in --help
  SettingKind kind{};
  std::string table{};  // "ingest.routes": its name in reprise.toml; empty unless it is one

  // Values are text, as a flag gives them: one for most kinds, any number for a list or a table.
  // `set` says what is wrong with a value, without naming the setting; `get` gives text that `set`
  // reads back.
  std::function<Status(Settings&, std::span<const std::string>)> set;
  std::function<std::vector<std::string>(const Settings&)> get;
};

// In the order in which people read them.
std::span<const Setting> all_settings();
// Null when there is none of that name.
const Setting* find_setting(std::string_view name);

// "; did you mean sync_interval?", or nothing when no name is close.
std::string suggestion(std::string_view typed, std::span<const std::string> candidates);

}  // namespace reprise::daemon
