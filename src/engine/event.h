// Event: something that happened to a job, told to whoever watches. Small and cheap to make; it
// becomes text only when somebody listens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/time.h"
#include "model/job.h"
#include "model/queue.h"

namespace reprise {

enum class EventType : std::uint8_t { pushed, taken, completed, failed, dead, dropped, released };
inline constexpr std::size_t kEventTypeCount = 7;
// "queue:pushed", "queue:taken" …
std::string_view event_type_name(EventType type);

struct Event {
  EventType type{};
  Timestamp at;
  std::shared_ptr<const QueueName> queue;
  Seq seq{};
  std::uint32_t attempts = 0;                // taken, failed, dead
  Timestamp retry_at = kNever;               // failed, when it will be tried again
  DeathReason reason = DeathReason::none;    // dead
  std::shared_ptr<const std::string> error;  // failed, dead; may be null
};

}  // namespace reprise
