// The dead-letter envelope of docs/failures.md: one format, wherever a dead job or a dead event of
// the spool is shown whole. This is the only place that writes it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/ids.h"
#include "base/json_writer.h"
#include "base/time.h"
#include "model/job.h"
#include "model/queue.h"

namespace reprise {

// {"event": {…}, "meta": {…}} of a job that is dead.
void write_dead_letter(JsonWriter& out, const QueueName& queue, Seq seq, const JobRecord& record,
                       const JobState& state);

// An event of the spool that was given up (docs/spool.md).
struct DeadEvent {
  std::string_view event;  // its JSON, spliced in as it is; empty: it was none, null
  std::uint32_t attempts = 0;
  std::string_view last_error;
  std::string_view first_attempt_at;  // ISO 8601; empty: never sent
  Timestamp dead_lettered_at;
  std::string_view queue_file;
  std::string_view reason;
  std::string_view raw_file;  // empty: none
};
void write_dead_event(JsonWriter& out, const DeadEvent& dead);

}  // namespace reprise
