#include "hooks/call_watch.h"

#include <algorithm>

namespace reprise::hooks {

void CallWatch::begin(Steady now, Nanoseconds cpu) {
  seen_.reset();
  looked_at_ = now;
  cpu_then_ = cpu;
}

CallWatch::Verdict CallWatch::look(std::optional<RunningCall> running, Steady now,
                                   Nanoseconds cpu) {
  if (running) running->started = std::min(running->started, now);  // the page may say anything
  if (running && running != seen_) {
    const Nanoseconds since_last_look =
        std::max(running->started - looked_at_, Steady::duration::zero());
    cpu_at_start_ = std::min(cpu, cpu_then_ + since_last_look);
  }
  seen_ = running;
  looked_at_ = now;
  cpu_then_ = cpu;

  if (!running) return {.look_again = now + timeout_};
  const Nanoseconds taken = now - running->started;
  if (taken < timeout_) return {.look_again = running->started + timeout_};
  const bool starved = cpu - cpu_at_start_ < timeout_ / 2;
  if (starved && taken < 2 * timeout_) return {.look_again = running->started + 2 * timeout_};
  return {.overdue = true};
}

}  // namespace reprise::hooks
