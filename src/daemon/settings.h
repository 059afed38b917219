// Settings: everything `reprise serve` can be told, and where each value came from.
//
// A value comes from the first of: its flag, its environment variable, the settings file, its
// default. The table of settings itself is in settings_table.h; adding one there is enough to have
// it as a flag, as a variable, in the file, in --help and in --print-config.
//
// Every source is checked, also where a stronger one wins: a mistake that is harmless today would
// bite on the day the stronger source goes away.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "broker/broker.h"
#include "server/beanstalk_server.h"
#include "server/http_server.h"
#include "storage/durable/durable_storage.h"
#include "worker/worker_service.h"

namespace reprise::daemon {

enum class LogLevel : std::uint8_t { debug, info, warn, error };
enum class LogFormat : std::uint8_t { text, json };

// The options of the layers below, with the daemon's own beside them, so that a default is written
// down once: where it is used. Settings() holds the defaults.
struct Settings {
  Settings();

  storage::DurableOptions storage;
  BrokerOptions broker;
  server::HttpServerOptions http;            // its tokens are read from token_file by the daemon
  server::BeanstalkServerOptions beanstalk;  // its max_connections are those of http
  std::string token_file;                    // empty: no tokens
  bool workers = true;                       // load projects and run their workers
  worker::WorkerOptions worker;
  std::string project_dir;  // empty: the one found from the current directory; "none": none
  std::string project;      // its name; empty: its own
  Duration shutdown_grace = std::chrono::seconds(4);
  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::text;
};

// What the world says, before anybody has looked at it.
struct SettingSources {
  // By the name of the setting; only what stood on the command line.
  std::map<std::string, std::vector<std::string>> flags;
  // The process's REPRISE_* variables. An empty one counts as absent.
  std::map<std::string, std::string> environment;
  // --config; without it REPRISE_CONFIG; without that ./reprise.toml, if there is one.
  std::optional<std::string> config_file;
};

struct LoadedSettings {
  Settings settings;
  // By the name of the setting: "--data", "REPRISE_DATA", "reprise.toml:3" or "default".
  std::map<std::string, std::string> origins;
  std::vector<std::string> warnings;
};

// The error is Errc::invalid_field; its detail has a line for each thing that is wrong, and each
// line names the setting, where it came from, and the fix.
Result<LoadedSettings> load_settings(const SettingSources& sources);

// The REPRISE_* variables of this process.
std::map<std::string, std::string> reprise_environment();

}  // namespace reprise::daemon
