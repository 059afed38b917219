// The dead-letter envelope of docs/failures.md: one format, wherever a dead job is shown whole.
// This is the only place that writes it.
#pragma once

#include "base/ids.h"
#include "base/json_writer.h"
#include "model/job.h"
#include "model/queue.h"

namespace reprise {

// {"event": {…}, "meta": {…}} of a job that is dead.
void write_dead_letter(JsonWriter& out, const QueueName& queue, Seq seq, const JobRecord& record,
                       const JobState& state);

}  // namespace reprise
