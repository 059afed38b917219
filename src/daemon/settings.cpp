#include "daemon/settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>

#include "daemon/process.h"
#include "daemon/settings_file.h"
#include "daemon/settings_table.h"

namespace reprise::daemon {
namespace {

constexpr std::string_view kPrefix = "REPRISE_";
constexpr std::string_view kConfigVariable = "REPRISE_CONFIG";
constexpr const char* kDefaultFile = "reprise.toml";
// Those of the command-line client: a shell that has them set may well start a server.
constexpr std::array<std::string_view, 4> kClientVariables = {"REPRISE_URL", "REPRISE_TOKEN",
                                                              "REPRISE_NAMESPACE", "REPRISE_SPOOL"};

class Loader {
 public:
  explicit Loader(const SettingSources& sources) : sources_(sources) {
    for (const Setting& setting : all_settings()) loaded_.origins[setting.name] = "default";
  }

  Result<LoadedSettings> load() {
    // From the weakest source to the strongest: a later one overwrites.
    read_file();
    read_environment();
    read_flags();
    if (problems_.empty()) check_together();
    if (problems_.empty()) return std::move(loaded_);
    return Error{Errc::invalid_field, fmt::format("{}", fmt::join(problems_, "\n"))};
  }

 private:
  void apply(const Setting& setting, const std::vector<std::string>& values,
             const std::string& origin, const std::string& named) {
    if (const Status set = setting.set(loaded_.settings, values); !set) {
      problems_.push_back(fmt::format("{}: {}", named, set.error().detail));
      return;
    }
    loaded_.origins[setting.name] = origin;
  }

  void read_file() {
    const std::string* path = chosen_file();
    const std::string name = path != nullptr ? *path : kDefaultFile;
    std::error_code ignored;
    if (path == nullptr && !std::filesystem::exists(name, ignored)) return;
    const auto text = read_whole_file(name);
    if (!text) {
      problems_.push_back(text.error().detail);
      return;
    }
    SettingsFile file = parse_settings_file(*text, name);
    for (const FileValue& value : file.values) {
      apply(*value.setting, value.values, value.origin,
            fmt::format("{}: {}", value.origin, value.setting->name));
    }
    problems_.insert(problems_.end(), file.problems.begin(), file.problems.end());
  }

  // Null: nobody named one.
  const std::string* chosen_file() const {
    if (sources_.config_file) return &*sources_.config_file;
    const auto variable = sources_.environment.find(std::string(kConfigVariable));
    if (variable == sources_.environment.end() || variable->second.empty()) return nullptr;
    return &variable->second;
  }

  void read_environment() {
    for (const auto& [variable, value] : sources_.environment) {
      const auto settings = all_settings();
      const auto setting = std::ranges::find(settings, variable, &Setting::variable);
      if (setting == settings.end()) {
        warn_of_unknown(variable);
      } else if (!value.empty()) {
        apply(*setting, split(value, setting->kind), variable, variable);
      }
    }
  }

  static std::vector<std::string> split(const std::string& value, SettingKind kind) {
    if (!takes_many(kind)) return {value};
    std::vector<std::string> items;
    for (std::size_t at = 0; at <= value.size();) {
      const std::size_t comma = std::min(value.find(',', at), value.size());
      items.push_back(value.substr(at, comma - at));
      at = comma + 1;
    }
    return items;
  }

  void warn_of_unknown(const std::string& variable) {
    if (variable == kConfigVariable) return;
    if (std::ranges::find(kClientVariables, variable) != kClientVariables.end()) return;
    std::vector<std::string> candidates{std::string(kConfigVariable)};
    for (const Setting& setting : all_settings()) candidates.push_back(setting.variable);
    loaded_.warnings.push_back(
        fmt::format("{}: no such setting{}", variable, suggestion(variable, candidates)));
  }

  void read_flags() {
    for (const auto& [name, values] : sources_.flags) {
      const Setting* setting = find_setting(name);
      apply(*setting, values, setting->flag, setting->flag);
    }
  }

  // Limits that contradict each other would refuse what one of them allows, with a puzzling error.
  void check_together() {
    const auto& limits = loaded_.settings.broker.limits;
    at_most("max_payload_bytes", limits.max_payload_bytes, "max_batch_bytes",
            limits.max_batch_bytes);
    at_most("max_batch_bytes", limits.max_batch_bytes, "max_body_bytes",
            loaded_.settings.http.max_body_bytes);
  }

  void at_most(const std::string& smaller, std::uint64_t small_value, const std::string& larger,
               std::uint64_t large_value) {
    if (small_value <= large_value) return;
    const auto shown = [&](const std::string& name) {
      return fmt::format("{} = {} ({})", name, find_setting(name)->get(loaded_.settings).front(),
                         loaded_.origins[name]);
    };
    problems_.push_back(fmt::format("{} is more than {}: lower the one or raise the other",
                                    shown(smaller), shown(larger)));
  }

  const SettingSources& sources_;
  LoadedSettings loaded_;
  std::vector<std::string> problems_;
};

}  // namespace

Settings::Settings() {
  storage.directory = "./.reprise-data";
  // More threads than two win nothing for one broker thread; on one core they only take turns.
  http.io_threads = std::clamp(std::thread::hardware_concurrency(), 1U, 2U);
  http.max_connections = 4096;
}

Result<LoadedSettings> load_settings(const SettingSources& sources) {
  return Loader(sources).load();
}

std::map<std::string, std::string> reprise_environment() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (!text.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace reprise::daemon
