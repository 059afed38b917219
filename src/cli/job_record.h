// One job whole, as `queue job` shows it: fields, headers, payload, history, and why it died.
#pragma once

#include <string>

#include "base/json_view.h"
#include "base/time.h"
#include "cli/terminal.h"

namespace reprise::cli {

// `job` is the API's reply. `now` turns times into ages on a terminal.
std::string job_record(JsonView job, const Terminal& terminal, Timestamp now);

}  // namespace reprise::cli
