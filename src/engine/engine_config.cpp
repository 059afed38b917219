// Runtime values: what operators set and hooks look up.
#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {
namespace {

Error config_not_found(const std::string& ns, const std::string& key) {
  return {Errc::config_not_found, "no key '" + key + "' in namespace '" + ns + "'"};
}

}  // namespace

Result<ConfigEntry> Engine::set_config(ConfigEntry entry, Timestamp now) {
  if (entry.value.size() > kMaxConfigValueBytes) {
    return Error{Errc::value_too_large, "the value has " + std::to_string(entry.value.size()) +
                                            " bytes; at most " +
                                            std::to_string(kMaxConfigValueBytes) + " are kept"};
  }
  auto& entries = config_[entry.ns];
  if (entries.size() >= kMaxConfigKeys && !entries.contains(entry.key)) {
    return Error{Errc::too_many_keys, "namespace '" + entry.ns + "' has its " +
                                          std::to_string(kMaxConfigKeys) +
                                          " keys; unset one first"};
  }
  entry.updated_at = now;
  entries.insert_or_assign(entry.key, entry);
  ledger_.put_config(entry);
  server_changed_ = true;  // so that the time it carries is never run behind
  hook_work_.emplace_back(ConfigChange{entry.ns, entry.key, entry.value});
  return entry;
}

Result<ConfigEntry> Engine::unset_config(const std::string& ns, const std::string& key) {
  auto entry = config(ns, key);
  if (!entry) return entry;
  const auto entries = config_.find(ns);
  entries->second.erase(key);
  if (entries->second.empty()) config_.erase(entries);
  ledger_.erase_config(ns, key);
  hook_work_.emplace_back(ConfigChange{ns, key, std::nullopt});
  return entry;
}

Result<ConfigEntry> Engine::config(const std::string& ns, const std::string& key) const {
  const auto entries = config_.find(ns);
  if (entries == config_.end()) return config_not_found(ns, key);
  const auto found = entries->second.find(key);
  if (found == entries->second.end()) return config_not_found(ns, key);
  return found->second;
}

std::vector<ConfigEntry> Engine::list_config(const std::string& ns) const {
  std::vector<ConfigEntry> list;
  if (const auto entries = config_.find(ns); entries != config_.end()) {
    for (const auto& [key, entry] : entries->second) list.push_back(entry);
  }
  return list;
}

}  // namespace reprise
