// reprise: one binary, the server and the commands that talk to it.
#include <CLI/CLI.hpp>

#include "cli/app.h"
#include "daemon/salvage_command.h"
#include "daemon/serve_command.h"

int main(int argc, char** argv) {
  int exit_code = 0;
  CLI::App app;
  reprise::cli::add_commands(app, exit_code);
  reprise::daemon::add_serve_command(app, exit_code);
  reprise::daemon::add_salvage_command(app, exit_code);
  for (const char* name : {"serve", "salvage"}) app.get_subcommand(name)->group("Server");
  return reprise::cli::parse_and_run(app, argc, argv, exit_code);
}
