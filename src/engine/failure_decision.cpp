#include "engine/failure_decision.h"

namespace reprise {
namespace {

// Why a job is given up at its last allowed failure: by how that one ended.
DeathReason reason_of(AttemptOutcome outcome) {
  switch (outcome) {
    case AttemptOutcome::lease_expired:
      return DeathReason::lease_expired;
    case AttemptOutcome::worker_lost:
      return DeathReason::worker_lost;
    default:
      return DeathReason::max_attempts;
  }
}

// 0 to 1, with the 53 bits that a double can tell apart.
double luck(Random& random) { return static_cast<double>(random.next_u64() >> 11) * 0x1p-53; }

Duration wait_of(const RetryPolicy& policy, std::uint32_t failures, Random& random) {
  const Duration wait = nominal_wait(policy, failures);
  const double jitter = jitter_of(policy);
  return jitter > 0 ? apply_jitter(wait, jitter, luck(random)) : wait;
}

}  // namespace

Decision decide_failure(const RetryPolicy& policy, const Failure& failure, std::uint32_t failures,
                        Random& random, Timestamp now) {
  if (failure.final) {
    return {.retry = false, .reason = DeathReason::final, .decided_by = DecidedBy::client};
  }
  if (policy.is_last(failures)) return {.retry = false, .reason = reason_of(failure.outcome)};
  if (failure.delay) {
    return {.retry = true,
            .retry_at = add_saturating(now, *failure.delay),
            .decided_by = DecidedBy::client};
  }
  return {.retry = true, .retry_at = add_saturating(now, wait_of(policy, failures, random))};
}

}  // namespace reprise
