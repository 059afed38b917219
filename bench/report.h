// The one line of JSON that a run prints.
#pragma once

#include <string>

#include "load_options.h"
#include "measurement.h"

namespace reprise::bench {

std::string format_report(const LoadOptions& options, const Measurement& measurement,
                          double cpu_seconds, double wall_seconds);

}  // namespace reprise::bench
