// One job whole, as `queue job` shows it: fields, headers, payload, history, and why it died.
#pragma once

#include <string>

#include "base/time.h"
#include "cli/terminal.h"
#include "client/json_view.h"

namespace reprise::cli {

// `job` is the API's reply. `now` turns times into ages on a terminal.
std::string job_record(client::JsonView job, const Terminal& terminal, Timestamp now);

}  // namespace reprise::cli
