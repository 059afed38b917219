#include "cli/spool_commands.h"

#include <CLI/CLI.hpp>

namespace reprise::cli {

void add_spool_commands(CLI::App& root, const Commands& commands) {
  CLI::App& spool = add_command(
      root, {.name = "spool",
             .description = "Keep events on this machine, and send them when they can be",
             .examples = "",
             .group = "Spool"});
  spool.require_subcommand(1);
  add_spool_add_command(spool, commands);
  add_spool_import_command(spool, commands);
  add_spool_status_command(spool, commands);
  add_spool_drain_command(spool, commands);
  add_spool_dead_letter_commands(spool, commands);
}

}  // namespace reprise::cli
