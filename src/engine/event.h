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

enum class EventType : std::uint8_t {
  pushed,
  taken,
  completed,
  failed,
  dead,
  dropped,
  released,
  retry,   // brought back by hand
  purged,  // deleted from among the dead
};
inline constexpr std::size_t kEventTypeCount = 9;
// "queue:pushed", "queue:taken" …
std::string_view event_type_name(EventType type);

// Why a dead job was deleted.
enum class PurgeCause : std::uint8_t { purge, keep_dead, max_dead };
std::string_view purge_cause_name(PurgeCause cause);

struct Event {
  EventType type{};
  Timestamp at;
  std::shared_ptr<const QueueName> queue;
  Seq seq{};
  std::uint32_t attempts = 0;                          // taken, failed, dead
  Timestamp retry_at = kNever;                         // failed, when it will be tried again
  DeathReason reason = DeathReason::none;              // dead
  std::shared_ptr<const std::string> error;            // failed, dead; may be null
  std::shared_ptr<const QueueName> dead_letter_queue;  // dead; null: it stays in its queue
  std::uint32_t generation = 0;                        // retry
  PurgeCause cause = PurgeCause::purge;                // purged
};

}  // namespace reprise
