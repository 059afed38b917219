// The hooks of a queue as `queue show` tells them: by their versions, with the state of their
// breakers and what they have answered. The sources are `hook show`'s business.
#pragma once

#include <string>

#include "base/json_view.h"
#include "base/time.h"
#include "cli/table.h"
#include "model/hook_kind.h"

namespace reprise::cli {

// `queue` is the API's reply. The version of a hook; empty: the queue has no such hook.
std::string version_of_hook(JsonView queue, HookKind hook);
// "3f9a1c0b22d4 (12 lines)" on a terminal, the version alone piped.
Cell hook_source_cell(JsonView queue, HookKind hook, const Terminal& terminal);
// A section for each hook that the queue has; piped, its fields as deep as the reply.
void add_hooks(Record& record, JsonView queue, const Terminal& terminal, Timestamp now);

}  // namespace reprise::cli
