#include "cli/retry_schedule.h"

#include <algorithm>

#include "base/duration.h"
#include "base/json_writer.h"

namespace reprise::cli {
namespace {

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Duration add_saturating(Duration a, Duration b) {
  return b > Duration::max() - a ? Duration::max() : a + b;
}

// The attempt that follows so many failures.
ScheduledAttempt attempt_after(const RetryPolicy& policy, std::uint32_t failures) {
  const Duration wait = nominal_wait(policy, failures);
  const double jitter = jitter_of(policy);
  return {.attempt = failures + 1,
          .wait = wait,
          .wait_min = apply_jitter(wait, jitter, 0),
          .wait_max = apply_jitter(wait, jitter, 1)};
}

void write_attempt(JsonWriter& json, const ScheduledAttempt& attempt) {
  json.begin_object();
  json.key("attempt").value(attempt.attempt);
  json.key("wait").value(seconds(attempt.wait));
  json.key("wait_min").value(seconds(attempt.wait_min));
  json.key("wait_max").value(seconds(attempt.wait_max));
  json.key("after").value(seconds(attempt.after));
  json.key("if_it_fails").value(attempt.dead_if_it_fails ? "dead" : "retry");
  json.end_object();
}

}  // namespace

RetrySchedule retry_schedule(const RetryPolicy& policy, std::uint32_t rows) {
  RetrySchedule schedule;
  Duration after{};
  for (std::uint32_t failures = 0; failures < rows; ++failures) {
    auto attempt = failures == 0 ? ScheduledAttempt{} : attempt_after(policy, failures);
    after = add_saturating(after, attempt.wait);
    attempt.after = after;
    attempt.dead_if_it_fails = policy.is_last(failures + 1);
    schedule.attempts.push_back(attempt);
    if (attempt.dead_if_it_fails) return schedule;
  }
  schedule.complete = false;
  return schedule;
}

std::string wait_text(const ScheduledAttempt& attempt) {
  if (attempt.attempt == 1) return {};
  if (attempt.wait_min == attempt.wait_max) return humanize_duration(attempt.wait);
  return humanize_duration(attempt.wait_min) + " to " + humanize_duration(attempt.wait_max);
}

void write_schedule_members(JsonWriter& json, const RetryPolicy& policy,
                            const RetrySchedule& schedule) {
  json.key("attempts");
  // 0 and 1 both mean a single attempt.
  policy.attempts ? json.value(std::max<std::uint32_t>(*policy.attempts, 1)) : json.null();
  json.key("schedule").begin_array();
  for (const auto& attempt : schedule.attempts) write_attempt(json, attempt);
  json.end_array();
  json.key("complete").value(schedule.complete);
}

}  // namespace reprise::cli
