// QueueState: one queue in memory: what scheduling needs and nothing more. Payloads, errors and
// histories stay in the ledger.
// Invariants: a job that is not dead is in exactly one of scheduled, fresh, cooling, retry, or the
// engine's lease table; `expiries` has it too when it has a ttl that has not fired.
#pragma once

#include <absl/container/btree_map.h>

#include <cstdint>
#include <memory>

#include "engine/lanes.h"
#include "engine/rate_window.h"
#include "model/queue.h"

namespace reprise {

struct QueueState {
  QueueRecord record;
  std::shared_ptr<const QueueName> shared_name;  // for events
  QueueTotals totals;

  absl::btree_map<TimedSeq, Priority> scheduled;  // fresh jobs that wait for their delay
  FreshLane fresh;
  RetryLane cooling;  // retries that wait for their time
  RetryLane retry;    // retries that are due
  LaneShare lane_share;
  TimedSeqs expiries;  // jobs with a ttl

  std::uint64_t active = 0;           // leases out
  std::uint64_t retry_in_flight = 0;  // of them, those of retries

  RateWindow pushes, claims, completions, failures;

  // When this queue must be looked at next, as registered with the engine; kNever: not at all.
  Timestamp wake_at = kNever;

  // Whether a job may be given from the retry lane.
  bool retry_waits() const {
    const auto& most = record.config.fetch.retry_in_flight;
    return !retry.empty() && (!most || retry_in_flight < *most);
  }
  std::uint64_t pending() const { return fresh.size() + retry.size(); }
  std::uint64_t alive() const { return scheduled.size() + cooling.size() + pending() + active; }
};

}  // namespace reprise
