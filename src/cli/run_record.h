// How runs read, and what a shell learns of how they ended.
#pragma once

#include <string>
#include <vector>

#include "base/json_view.h"
#include "base/time.h"
#include "cli/command_context.h"
#include "cli/table.h"

namespace reprise::cli {

bool run_is_running(JsonView run);

// kExitOk, kExitRefused for one that has failed, kExitCancelled, kExitLost or kExitStillRunning.
int run_exit_code(JsonView run);
// Why it has not succeeded; the code is what kind of error it was, or its status.
Problem run_problem(JsonView run);

std::vector<Column> run_columns(bool with_namespace);
std::vector<Cell> run_row(JsonView run, bool with_namespace, const Terminal& terminal,
                          Timestamp now);

// Sections and a table of steps on a terminal; piped, all fields as deep as the reply.
std::string run_text(JsonView run, const Terminal& terminal, Timestamp now);

}  // namespace reprise::cli
