#include "engine/event.h"

#include <array>

namespace reprise {

std::string_view event_type_name(EventType type) {
  static constexpr std::array<std::string_view, kEventTypeCount> kNames = {
      "queue:pushed",   "queue:taken",        "queue:completed",     "queue:failed",
      "queue:dead",     "queue:dropped",      "queue:released",      "queue:retry",
      "queue:purged",   "queue:breaker_open", "queue:breaker_trial", "queue:breaker_closed",
      "worker:started", "worker:stopped",     "worker:run_started",  "worker:run_ended",
      "worker:error"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string_view purge_cause_name(PurgeCause cause) {
  switch (cause) {
    case PurgeCause::purge:
      return "purge";
    case PurgeCause::keep_dead:
      return "keep_dead";
    case PurgeCause::max_dead:
      return "max_dead";
  }
  return "unknown";
}

}  // namespace reprise
