#include "engine/failure_decision.h"

#include <algorithm>

namespace reprise {

Decision decide_failure(const RetryPolicy& policy, const Failure& failure, std::uint32_t failures,
                        Timestamp now) {
  if (failure.final) {
    return {.retry = false, .reason = DeathReason::final, .decided_by = DecidedBy::client};
  }
  if (failures >= std::max<std::uint32_t>(policy.attempts, 1)) {
    const bool silent = failure.outcome == AttemptOutcome::lease_expired;
    return {.retry = false,
            .reason = silent ? DeathReason::lease_expired : DeathReason::max_attempts};
  }
  if (failure.delay) {
    return {.retry = true,
            .retry_at = add_saturating(now, *failure.delay),
            .decided_by = DecidedBy::client};
  }
  return {.retry = true, .retry_at = add_saturating(now, policy.cooldown)};
}

}  // namespace reprise
