// Waiting for a run to end.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/time.h"
#include "cli/command_context.h"

namespace reprise::cli {

// Asks until the run no longer runs, `timeout` is over or `stop` says so, which is asked within a
// second and after every signal. Returns the server's last answer about it, a refusal included;
// stopped, it may be an error.
Result<client::Reply> wait_for_run(CommandContext& context, const std::string& id,
                                   std::optional<Duration> timeout,
                                   const std::function<bool()>& stop);

}  // namespace reprise::cli
