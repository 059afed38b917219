// How findings speak of names that lead nowhere.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runbook/findings.h"

namespace reprise::runbook {

// "unknown queue 'ordrs'; available queues: bugs, orders; did you mean 'orders'?"
std::string unknown_name(std::string_view kind, std::string_view name,
                         std::span<const std::string> available, Findings& findings);

}  // namespace reprise::runbook
