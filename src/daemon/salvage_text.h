// How a salvage's report reads: a table for people and pipes, JSON for programs, and the words
// beside them (docs/cli.md, "salvage").
#pragma once

#include <string>
#include <vector>

#include "storage/durable/salvage_report.h"

namespace reprise::daemon {

// One row a queue. Aligned for a terminal, else a tab between columns and nothing padded.
std::string salvage_table(const storage::SalvageReport& report, bool aligned, bool header);

struct SalvagePaths {
  std::string from;
  std::string to;
};
std::string salvage_json(const storage::SalvageReport& report, const SalvagePaths& paths);

// What was damaged, what that cost, and what to do next; a line each.
std::vector<std::string> salvage_notes(const storage::SalvageReport& report,
                                       const SalvagePaths& paths);

}  // namespace reprise::daemon
