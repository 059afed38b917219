// The fairness keys of a queue as `queue show` tells them.
#pragma once

#include "base/json_view.h"
#include "cli/table.h"

namespace reprise::cli {

// `keys` is the API's `stats.keys`. On a terminal a section with a table, when there is another key
// than the default one; piped, its fields as deep as the reply.
void add_keys(Record& record, JsonView keys, const Terminal& terminal);

}  // namespace reprise::cli
