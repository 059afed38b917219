// Reads [pipeline.NAME], and resolves where its steps lead.
#pragma once

#include <optional>

#include "runbook/findings.h"
#include "runbook/node.h"
#include "runbook/runbook.h"

namespace reprise::runbook {

inline constexpr std::size_t kMostSteps = 100;

// Nothing: it cannot be used, as the findings say. `table` is one; `subject` is the pipeline.
std::optional<Pipeline> read_pipeline(const std::string& name, const Node& table,
                                      const Subject& subject, Findings& findings);

}  // namespace reprise::runbook
