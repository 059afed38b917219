// How projects and what is wrong with them read.
#pragma once

#include <string>
#include <vector>

#include "base/json_view.h"
#include "cli/table.h"

namespace reprise::cli {

// "ok", "broken" or "missing".
std::string project_state(JsonView project);

std::vector<Column> project_columns();
std::vector<Cell> project_row(JsonView project);

// ".reprise/shop.toml:12: queue.bugs.poll: no duration", as `runbook check` prints it; warnings
// say so. Not escaped.
std::string finding_text(JsonView finding);
// One for each warning.
std::vector<std::string> warning_texts(JsonView project);

// "runbook of shop is broken, the version of 08:15:10 is in force: …" with the first error; empty
// for one that is not broken. Not escaped.
std::string broken_text(JsonView project);

}  // namespace reprise::cli
