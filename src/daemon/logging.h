// Logging: lines on stderr, for people or as one JSON object each. Tokens and payloads are never
// logged, at any level.
#pragma once

#include "daemon/settings.h"

namespace reprise::daemon {

// Makes spdlog's default logger the one the settings ask for. Call it before there are threads.
void set_up_logging(LogLevel level, LogFormat format);

}  // namespace reprise::daemon
