// run PIPELINE: a trial of a pipeline, without a queue.
#pragma once

#include <optional>
#include <string>

#include "cli/command_context.h"

namespace reprise::cli {

struct TrialFlags {
  std::optional<std::string> pipeline;
  std::optional<std::string> item;  // JSON
  bool item_from_stdin = false;
  bool detach = false;
};

// Starts it and prints its output as it comes. An interrupt cancels it, and its end is waited for;
// a second one leaves at once. Returns the exit code that tells how it ended.
int try_pipeline(CommandContext& context, const TrialFlags& flags);

}  // namespace reprise::cli
