// CallWatch: whether the call that a host runs has had its time.
//
// A call may take `timeout` of wall clock. A call that got less than half of that in processor
// time was kept from running by the machine, not by its script, and may take twice as long.
// Processor time is known for moments at which somebody looked; what a call used is judged in its
// disfavour only by what is certain: before it began its host used no more than all the time since
// the look before.
//
// Threads: one owner. Time: passed in, never read.
#pragma once

#include <cstdint>
#include <optional>

#include "hooks/steady_time.h"

namespace reprise::hooks {

struct RunningCall {
  std::uint32_t batch{};
  std::uint32_t place{};  // in the batch
  Steady started{};
  friend bool operator==(const RunningCall&, const RunningCall&) = default;
};

class CallWatch {
 public:
  explicit CallWatch(Nanoseconds timeout) : timeout_(timeout) {}

  // The host has just been given something to do, and had nothing before.
  void begin(Steady now, Nanoseconds cpu);

  struct Verdict {
    bool overdue = false;
    Steady look_again{};  // when not: no call can be overdue before
  };
  // `cpu`: the processor time of the host since it started.
  Verdict look(std::optional<RunningCall> running, Steady now, Nanoseconds cpu);

 private:
  const Nanoseconds timeout_;
  Steady looked_at_{};
  Nanoseconds cpu_then_{};
  std::optional<RunningCall> seen_;
  Nanoseconds cpu_at_start_{};  // of `seen_`: at most this
};

}  // namespace reprise::hooks
