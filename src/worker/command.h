// A command of an external queue (list, take, done, failed): started, bounded in time and output,
// and told about on the loop when it is over.
#pragma once

#include <absl/functional/any_invocable.h>

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "worker/loop.h"
#include "worker/step_runner.h"

namespace reprise::worker {

struct CommandOrder {
  std::string name;  // for the timer
  StepSpec spec;
  Duration timeout{};
  std::uint64_t output_max = 16ULL << 20;
};

// `done` gets its standard output, or an error that says how it failed with the end of its standard
// error. It is called on the loop, once.
using CommandDone = absl::AnyInvocable<void(Result<std::string> output)>;
// What it returns ends the command at once; `done` is still called. Harmless when it is over.
[[nodiscard]] std::function<void()> run_command(Loop& loop, StepRunner& steps, CommandOrder order,
                                                CommandDone done);

}  // namespace reprise::worker
