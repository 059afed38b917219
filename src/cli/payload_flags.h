// --var of queue push: fields on the command line that become a payload (docs/cli.md, "queue
// push").
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace reprise::cli {

// An object with these fields in their order. `NAME=VALUE` is a text, `NAME:=JSON` any value, sent
// as it is written. Errc::invalid_field names the flag: no name, a name twice, no JSON.
Result<std::string> payload_of_vars(const std::vector<std::string>& vars);

}  // namespace reprise::cli
