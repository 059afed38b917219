// Reads the fields that hold commands.
#pragma once

#include <optional>
#include <string_view>

#include "runbook/command_template.h"
#include "runbook/table_reader.h"

namespace reprise::runbook {

// Nothing: it is absent, or wrong, which the findings say then.
std::optional<CommandTemplate> read_command(TableReader& reader, std::string_view name,
                                            TemplateScope scope);

}  // namespace reprise::runbook
