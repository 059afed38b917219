#include "engine/event.h"

#include <array>

namespace reprise {

std::string_view event_type_name(EventType type) {
  static constexpr std::array<std::string_view, kEventTypeCount> kNames = {
      "queue:pushed", "queue:taken",   "queue:completed", "queue:failed",
      "queue:dead",   "queue:dropped", "queue:released"};
  return kNames[static_cast<std::size_t>(type)];
}

}  // namespace reprise
