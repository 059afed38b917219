// ConfigEntry: a runtime value that hooks may look up, by namespace and key.
#pragma once

#include <cstdint>
#include <string>

#include "base/time.h"

namespace reprise {

inline constexpr std::size_t kMaxConfigKeys = 1000;  // of a namespace
inline constexpr std::size_t kMaxConfigValueBytes = 4096;

struct ConfigEntry {
  std::string ns;
  std::string key;
  std::string value;
  Timestamp updated_at{};
  friend bool operator==(const ConfigEntry&, const ConfigEntry&) = default;
};

}  // namespace reprise
