// Showing settings: the effective ones with their origin, for people and for machines.
#pragma once

#include <string>

#include "daemon/settings.h"

namespace reprise::daemon {

// A valid reprise.toml: each line ends with a comment that says where the value came from.
std::string settings_as_toml(const LoadedSettings& loaded);

// {"data": {"value": "./.reprise-data", "origin": "default"}, ...}
std::string settings_as_json(const LoadedSettings& loaded);

}  // namespace reprise::daemon
