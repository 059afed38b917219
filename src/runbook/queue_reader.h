// Reads [queue.NAME].
#pragma once

#include <optional>

#include "runbook/findings.h"
#include "runbook/node.h"
#include "runbook/runbook.h"

namespace reprise::runbook {

// Nothing: it cannot be used, as the findings say. `table` is one; `subject` is the queue.
std::optional<QueueDeclaration> read_queue(const std::string& name, const Node& table,
                                           const Subject& subject, Findings& findings);

}  // namespace reprise::runbook
