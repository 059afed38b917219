// What a drain did, for people, machines and shells (docs/spool.md, "Draining").
#pragma once

#include <optional>
#include <string>

#include "cli/output.h"
#include "spool/drain.h"

namespace reprise::cli {

// "accepted 1, duplicates 0, …", a line.
std::string drain_text(const spool::DrainResult& result);
// The same as an object, a line.
std::string drain_json(const spool::DrainResult& result);
// What to do about events that died; empty: none did.
std::string deaths_note(const spool::DrainResult& result);
// Why something was left that could not be sent, or not dealt with; no value: nothing was.
std::optional<Problem> drain_problem(const spool::DrainResult& result);
int drain_exit_code(const spool::DrainResult& result);

}  // namespace reprise::cli
