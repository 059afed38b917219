// The one place where it is decided what becomes of a job after a failure: an explicit fail, a
// lease that expired and a lost worker alike. The policy comes in as it is at that moment, so an
// edit counts from the next failure on.
#pragma once

#include <cstdint>
#include <optional>

#include "base/random.h"
#include "base/time.h"
#include "model/job.h"
#include "model/queue.h"

namespace reprise {

struct Failure {
  AttemptOutcome outcome = AttemptOutcome::failed;  // or lease_expired, worker_lost
  bool final = false;                               // the client gives up
  std::optional<Duration> delay;                    // the client's own wait
};

struct Decision {
  bool retry = false;
  Timestamp retry_at{};                    // when retry
  DeathReason reason = DeathReason::none;  // when not
  DecidedBy decided_by = DecidedBy::policy;
};

// `failures` counts this one already. First that applies: the client's `final`; the policy's cap;
// the client's delay; the policy's wait, for whose jitter `random` is asked.
Decision decide_failure(const RetryPolicy& policy, const Failure& failure, std::uint32_t failures,
                        Random& random, Timestamp now);

}  // namespace reprise
