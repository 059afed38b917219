#include "daemon/serve_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "daemon/daemon.h"
#include "daemon/settings.h"
#include "daemon/settings_print.h"
#include "daemon/settings_table.h"

namespace reprise::daemon {
namespace {

struct ServeFlags {
  std::map<std::string, CLI::Option*> settings;  // by the setting's name
  std::string config_file;
  PortFiles port_files;
  bool print_config = false;
  bool json = false;
};

void add_setting_flags(CLI::App& serve, ServeFlags& flags) {
  for (const Setting& setting : all_settings()) {
    const auto help = fmt::format("{} (default {})", setting.help, setting.default_text);
    CLI::Option* option = serve.add_option(setting.flag, help);
    option->group(setting.group)->type_name(setting.placeholder);
    if (takes_many(setting.kind)) {
      // One value a flag, any number of flags.
      option->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args(false);
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    flags.settings.emplace(setting.name, option);
  }
}

SettingSources sources_of(const ServeFlags& flags) {
  SettingSources sources;
  for (const auto& [name, option] : flags.settings) {
    if (option->count() > 0) sources.flags.emplace(name, option->results());
  }
  sources.environment = reprise_environment();
  if (!flags.config_file.empty()) sources.config_file = flags.config_file;
  return sources;
}

int serve(const ServeFlags& flags) {
  const auto loaded = load_settings(sources_of(flags));
  if (!loaded) {
    std::istringstream problems(loaded.error().detail);
    for (std::string line; std::getline(problems, line);) fmt::print(stderr, "reprise: {}\n", line);
    return kExitBadSettings;
  }
  if (!flags.print_config) return run_daemon(*loaded, flags.port_files);
  for (const std::string& warning : loaded->warnings) {
    fmt::print(stderr, "reprise: {}\n", warning);
  }
  fmt::print("{}", flags.json ? settings_as_json(*loaded) : settings_as_toml(*loaded));
  return kExitStopped;
}

}  // namespace

void add_serve_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("serve", "Run the server");
  const auto flags = std::make_shared<ServeFlags>();
  add_setting_flags(*command, *flags);
  command
      ->add_option("--config", flags->config_file,
                   "Settings file; without it REPRISE_CONFIG, else ./reprise.toml if it is there")
      ->type_name("FILE");
  command
      ->add_option("--port-file", flags->port_files.http,
                   "Write host:port to this file when ready, for use with port 0")
      ->type_name("FILE");
  command
      ->add_option("--beanstalk-port-file", flags->port_files.beanstalk, "The same for --beanstalk")
      ->type_name("FILE");
  CLI::Option* print = command->add_flag("--print-config", flags->print_config,
                                         "Show the settings and where each comes from, then exit");
  command->add_flag("--json", flags->json, "With --print-config: as JSON")->needs(print);
  command->footer(
      "Each setting --some-name is also some_name in the settings file and REPRISE_SOME_NAME in "
      "the\n"
      "environment. A flag wins over the environment, the environment over the file.\n"
      "\n"
      "Examples:\n"
      "  reprise serve                                  on 127.0.0.1:7333, data in "
      "./.reprise-data\n"
      "  reprise serve --data /var/lib/reprise --listen 0.0.0.0:7333 --token-file tokens\n"
      "  reprise serve --print-config                   which setting comes from where\n"
      "\n"
      "Exit codes: 0 stopped, 1 cannot start, 2 wrong usage or settings, 70 the storage failed.");
  command->callback([flags, &exit_code] { exit_code = serve(*flags); });
}

}  // namespace reprise::daemon
