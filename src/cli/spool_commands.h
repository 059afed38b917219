// The commands of `reprise spool` (docs/spool.md), a file for each concern.
#pragma once

#include "cli/commands.h"

namespace reprise::cli {

void add_spool_commands(CLI::App& root, const Commands& commands);

// `spool` is the command group.
void add_spool_add_command(CLI::App& spool, const Commands& commands);
void add_spool_import_command(CLI::App& spool, const Commands& commands);
void add_spool_status_command(CLI::App& spool, const Commands& commands);
void add_spool_drain_command(CLI::App& spool, const Commands& commands);
void add_spool_dead_letter_commands(CLI::App& spool, const Commands& commands);

}  // namespace reprise::cli
