// Breakers, of queues and of hooks, as people read them.
#pragma once

#include <string>

#include "base/json_view.h"
#include "base/time.h"
#include "cli/table.h"

namespace reprise::cli {

// "open for another 8s", with `more` behind it, in the colour of the state.
Cell breaker_cell(JsonView state, JsonView open_until, Timestamp now, const std::string& more = {});
// `breaker` is that of the API's queue: a section when it has one; piped, its fields as deep as the
// reply.
void add_breaker(Record& record, JsonView breaker, const Terminal& terminal, Timestamp now);

}  // namespace reprise::cli
