// RetryPolicy: how often a failed job is tried again, and when. Pure arithmetic; the decision that
// uses it is engine/failure_decision.h.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/result.h"
#include "base/time.h"

namespace reprise {

// Waits that grow: base, base·factor, base·factor², … but never more than max.
struct Backoff {
  Duration base = std::chrono::seconds(1);
  double factor = 4;
  Duration max = std::chrono::hours(1);
  double jitter = 0;  // each wait is up to this share longer or shorter
  friend bool operator==(const Backoff&, const Backoff&) = default;
};

// With nothing configured, a job is dead at its first failure.
struct RetryPolicy {
  // Dead at this many failures; 0 and 1: at the first; nothing: never.
  std::optional<std::uint32_t> attempts = 0;
  // Told as max_retries, one less, because that is how it was given.
  bool told_as_retries = false;
  // Before each retry: the same wait, or a growing one.
  std::variant<Duration, Backoff> wait = Duration::zero();
  friend bool operator==(const RetryPolicy&, const RetryPolicy&) = default;

  // Whether a job that has failed so often is given up.
  bool is_last(std::uint32_t failures) const {
    return attempts && failures >= (*attempts < 1 ? 1 : *attempts);
  }
};

// The wait after so many failures (at least 1), before jitter.
Duration nominal_wait(const RetryPolicy& policy, std::uint32_t failures);
// Jitter's share of it; 0 for a policy without.
double jitter_of(const RetryPolicy& policy);
// `wait` made shorter or longer: `luck` from 0 (by the whole share shorter) to 1 (longer).
Duration apply_jitter(Duration wait, double jitter, double luck);

// Changes the fields that `json` names, as in apply_config_json(); null is a whole reset.
Status apply_retry_json(RetryPolicy& policy, const Json& json);
// Names only what is set, so that it can be given back as it is.
void write_retry_json(JsonWriter& out, const RetryPolicy& policy);

}  // namespace reprise
