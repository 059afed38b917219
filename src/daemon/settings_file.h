// reprise.toml: a flat TOML file whose keys are the names of settings. Settings that are tables
// themselves, like [ingest.routes], stand beside them under a name of their own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/settings_table.h"

namespace reprise::daemon {

struct FileValue {
  const Setting* setting;
  std::vector<std::string> values;  // as the setting's flag would have them
  std::string origin;               // "reprise.toml:7"
};

// What a file says. `problems` holds a line for each key that is unknown or of a wrong type, or a
// single one when it is no TOML; the other keys are in `values` all the same.
struct SettingsFile {
  std::vector<FileValue> values;
  std::vector<std::string> problems;
};

// `name` stands for the file in messages.
SettingsFile parse_settings_file(std::string_view text, const std::string& name);

}  // namespace reprise::daemon
