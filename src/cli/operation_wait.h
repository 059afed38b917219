// Waiting for a retry or purge that the server works off by itself.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/command_context.h"

namespace reprise::cli {

// Asks until the operation no longer runs, with a bar on stderr when that is a terminal. Returns
// the server's last answer about it, a refusal included. The operation needs nobody who waits: a
// command that is interrupted leaves it running.
Result<client::Reply> wait_for_operation(CommandContext& context, const std::string& id);

}  // namespace reprise::cli
