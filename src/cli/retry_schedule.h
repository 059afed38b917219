// RetrySchedule: what a retry policy means for a job that fails each time at once.
// The waits come from the same functions that the server decides with, so the table cannot lie.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/retry_policy.h"

namespace reprise {
class JsonWriter;
}  // namespace reprise

namespace reprise::cli {

struct ScheduledAttempt {
  std::uint32_t attempt = 1;
  // Before it; with jitter anything between the shortest and the longest.
  Duration wait{};
  Duration wait_min{};
  Duration wait_max{};
  Duration after{};  // since the first attempt, when no wait was shortened or prolonged
  bool dead_if_it_fails = false;
};

struct RetrySchedule {
  std::vector<ScheduledAttempt> attempts;
  bool complete = true;  // the last row is the job's last attempt
};

// At most `rows` attempts.
RetrySchedule retry_schedule(const RetryPolicy& policy, std::uint32_t rows);

// "4s", or "3s to 5s" when jitter moves it; nothing for the first attempt.
std::string wait_text(const ScheduledAttempt& attempt);
// The members attempts, schedule and complete of docs/cli.md, "queue policy".
void write_schedule_members(JsonWriter& json, const RetryPolicy& policy,
                            const RetrySchedule& schedule);

}  // namespace reprise::cli
