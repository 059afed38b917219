// How workers, and what became of a command to them, read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json_view.h"
#include "cli/table.h"

namespace reprise::cli {

std::vector<Column> worker_columns(bool with_namespace);
std::vector<Cell> worker_row(JsonView worker, bool with_namespace);

// "started shipper", "stopping shipper: 2 jobs still run"; `verb` is start, stop, restart or
// resize, `result` one of the API's results that is no error. Not escaped.
std::string worker_result_text(std::string_view verb, JsonView result);

}  // namespace reprise::cli
