// What `runbook check` and `runbook show` print: a runbook, or what is wrong with it, as text and
// as JSON (docs/cli.md).
#pragma once

#include <string>

#include "cli/terminal.h"
#include "runbook/load.h"

namespace reprise::cli {

bool has_errors(const runbook::LoadResult& loaded);

// One line for each finding; control characters escaped.
std::string findings_text(const runbook::LoadResult& loaded);
// ".reprise/shop.toml: 2 queues, 1 pipeline, 1 worker", a line for each file.
std::string files_text(const runbook::Runbook& runbook);
std::string check_json(const runbook::LoadResult& loaded, const std::string& root);

// Tables of queues, steps and workers, those that there are.
std::string show_text(const runbook::Runbook& runbook, const Terminal& terminal);
std::string show_json(const runbook::Runbook& runbook);

}  // namespace reprise::cli
