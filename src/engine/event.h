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
  // Of a queue and no job: its breaker.
  breaker_open,
  breaker_trial,
  breaker_closed,
  // Of a worker.
  worker_started,
  worker_stopped,
  worker_run_started,
  worker_run_ended,
  worker_error,  // a list that failed, a runbook that cannot be used
};
inline constexpr std::size_t kEventTypeCount = 17;
constexpr bool is_about_a_job(EventType type) { return type < EventType::breaker_open; }
constexpr bool is_about_a_worker(EventType type) { return type >= EventType::worker_started; }
// "queue:pushed", "queue:taken" …, "worker:started" …
std::string_view event_type_name(EventType type);

// Why a dead job was deleted.
enum class PurgeCause : std::uint8_t { purge, keep_dead, max_dead };
std::string_view purge_cause_name(PurgeCause cause);

// What a worker's event tells beside its queue.
struct WorkerNews {
  std::string worker;
  std::string run;     // of a run
  std::string job;     // of a run: the job's id, or the key of an external item
  std::string status;  // of a run that has ended
};

struct Event {
  EventType type{};
  Timestamp at;
  std::shared_ptr<const QueueName> queue;
  Seq seq{};                                           // of a job
  std::uint32_t attempts = 0;                          // taken, failed, dead
  Timestamp retry_at = kNever;                         // failed, when it will be tried again
  DeathReason reason = DeathReason::none;              // dead
  std::shared_ptr<const std::string> death_note;       // dead by a hook that gave a reason
  std::shared_ptr<const std::string> error;            // failed, dead, of a worker; may be null
  std::shared_ptr<const QueueName> dead_letter_queue;  // dead; null: it stays in its queue
  std::uint32_t generation = 0;                        // retry
  PurgeCause cause = PurgeCause::purge;                // purged
  std::shared_ptr<const WorkerNews> worker;            // of a worker
};

}  // namespace reprise
