// The one place where it is decided what becomes of a job after a failure: an explicit fail, a
// lease that expired and a lost worker alike. The queue's config comes in as it is at that moment,
// so an edit counts from the next failure on.
#pragma once

#include <cstdint>
#include <optional>

#include "base/random.h"
#include "base/time.h"
#include "model/hook.h"
#include "model/job.h"
#include "model/queue.h"

namespace reprise {

struct Failure {
  AttemptOutcome outcome = AttemptOutcome::failed;  // or lease_expired, worker_lost
  bool final = false;                               // the client gives up
  std::optional<Duration> delay;                    // the client's own wait
  // The queue's breaker is not closed: it does not count, and is tried again after this at least.
  std::optional<Duration> spared;
};

struct Decision {
  bool retry = false;
  Timestamp retry_at{};                    // when retry
  DeathReason reason = DeathReason::none;  // when not
  DecidedBy decided_by = DecidedBy::policy;
  std::string note;  // a hook's own words on the death
};

// Whether on_failure is to be asked: the queue has it, and nothing that goes before it applies.
bool hook_has_a_say(const QueueConfig& config, const Failure& failure, std::uint32_t failures);

// `failures` counts this one already, unless it is spared. First that applies: the client's
// `final`; the breaker's; the policy's cap; the client's delay; what on_failure said (`hook`; null:
// it was not asked); the policy's wait, for whose jitter `random` is asked.
Decision decide_failure(const QueueConfig& config, const Failure& failure, std::uint32_t failures,
                        const HookOutcome* hook, Random& random, Timestamp now);

}  // namespace reprise
