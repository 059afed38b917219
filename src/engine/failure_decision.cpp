#include "engine/failure_decision.h"

#include "base/planted_bug.h"

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

// A cap that somebody set. Where a hook decides, "nothing configured" is no cap.
bool is_capped(const QueueConfig& config, std::uint32_t failures) {
  const bool by_default = config.retry.attempts == 0U;
  if (by_default && !config.hook(HookKind::on_failure).empty()) return false;
  return config.retry.is_last(planted(PlantedBug::wrong_death) ? failures + 1 : failures);
}

Decision by_policy(const RetryPolicy& policy, const Failure& failure, std::uint32_t failures,
                   Random& random, Timestamp now) {
  if (policy.is_last(failures)) return {.retry = false, .reason = reason_of(failure.outcome)};
  return {.retry = true, .retry_at = add_saturating(now, wait_of(policy, failures, random))};
}

Decision by_verdict(const FailureVerdict& verdict, Timestamp now) {
  if (verdict.retry) {
    return {.retry = true,
            .retry_at = add_saturating(now, verdict.delay),
            .decided_by = DecidedBy::hook};
  }
  return {.retry = false,
          .reason = DeathReason::hook,
          .decided_by = DecidedBy::hook,
          .note = verdict.reason};
}

}  // namespace

bool hook_has_a_say(const QueueConfig& config, const Failure& failure, std::uint32_t failures) {
  return !config.hook(HookKind::on_failure).empty() && !failure.final && !failure.spared &&
         !failure.delay && !is_capped(config, failures);
}

Decision decide_failure(const QueueConfig& config, const Failure& failure, std::uint32_t failures,
                        const HookOutcome* hook, Random& random, Timestamp now) {
  if (failure.final) {
    return {.retry = false, .reason = DeathReason::final, .decided_by = DecidedBy::client};
  }
  if (failure.spared) {
    const Duration wait = std::max(*failure.spared, failure.delay.value_or(Duration::zero()));
    return {.retry = true, .retry_at = add_saturating(now, wait)};
  }
  if (is_capped(config, failures)) {
    return {.retry = false, .reason = reason_of(failure.outcome)};
  }
  if (failure.delay) {
    return {.retry = true,
            .retry_at = add_saturating(now, *failure.delay),
            .decided_by = DecidedBy::client};
  }
  if (hook == nullptr) return by_policy(config.retry, failure, failures, random, now);
  if (const auto* verdict = std::get_if<FailureVerdict>(hook)) return by_verdict(*verdict, now);
  switch (config.on_hook_error) {
    case OnHookError::retry:
      return {.retry = true, .retry_at = now};
    case OnHookError::policy:
      return by_policy(config.retry, failure, failures, random, now);
    case OnHookError::dlq:
      return {.retry = false, .reason = DeathReason::hook_error};
  }
  return {};
}

}  // namespace reprise
