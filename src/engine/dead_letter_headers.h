// The headers that a job has in a dead-letter queue on top of its own (docs/failures.md).
#pragma once

#include "model/job.h"
#include "model/queue.h"

namespace reprise {

// The record for the dead-letter queue: where the job died, when and of what. Headers of these
// names that it had before are replaced.
JobRecord with_dead_letter_headers(const JobRecord& record, const QueueName& queue,
                                   const JobState& dead);
// The record as it was before.
JobRecord without_dead_letter_headers(const JobRecord& record);

}  // namespace reprise
