// reprise: one binary, the server and the commands that talk to it.
#include <CLI/CLI.hpp>
#include <string_view>

#include "cli/app.h"
#include "daemon/salvage_command.h"
#include "daemon/serve_command.h"
#include "hooks/hook_host_main.h"
#include "worker/step_runner.h"

// jemalloc, where it is linked, reads this before anything else: what is free goes back to the
// system within a second, so that a burst does not stay in the figures for ever.
extern "C" {
const char* malloc_conf = "dirty_decay_ms:1000,muzzy_decay_ms:0";
}

int main(int argc, char** argv) {
  // The server starts these for itself; before anything else, so that their processes begin small.
  const std::string_view command = argc == 2 ? argv[1] : "";
  if (command == "hook-host") return reprise::hooks::hook_host_main();
  if (command == "step-host") return reprise::worker::run_step_host();
  int exit_code = 0;
  CLI::App app;
  reprise::cli::add_commands(app, exit_code);
  reprise::daemon::add_serve_command(app, exit_code);
  reprise::daemon::add_salvage_command(app, exit_code);
  for (const char* name : {"serve", "salvage"}) app.get_subcommand(name)->group("Server");
  return reprise::cli::parse_and_run(app, argc, argv, exit_code);
}
