// QueueState: one queue in memory: what scheduling needs and nothing more. Payloads, errors and
// histories stay in the ledger.
// Invariants: a job that is not dead is in exactly one of scheduled, jobs, cooling, or the engine's
// lease table; `expiries` has it too when it has a ttl that has not fired.
#pragma once

#include <absl/container/btree_map.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "engine/hook_line.h"
#include "engine/lanes.h"
#include "engine/outage_guard.h"
#include "engine/pending_jobs.h"
#include "engine/rate_window.h"
#include "model/payload_vars.h"
#include "model/queue.h"

namespace reprise {

struct QueueState {
  QueueState(const QueueRecord& stored, Throttles& throttles)
      : record(stored), jobs(stored.number, stored.name.ns, throttles) {}

  QueueRecord record;
  std::shared_ptr<const QueueName> shared_name;  // for events
  QueueTotals totals;

  struct Delayed {
    Priority priority{};
    StrandRef strand;
  };
  // A pause that ends by itself; not remembered across a restart.
  struct Rest {
    Timestamp until;
    Duration asked{};
  };
  PendingJobs jobs;                              // before all that refers to strands
  absl::btree_map<TimedSeq, Delayed> scheduled;  // fresh jobs that wait for their delay
  RetryTimes cooling;                            // retries that wait for their time
  LaneShare lane_share;
  std::unique_ptr<OutageGuard> guard;               // null: it has none
  OutageGuard::Trial last_trial = 0;                // of the guard that it had before
  std::unique_ptr<const PayloadVars> payload_vars;  // null: payloads are taken as they come
  bool look_again = false;                          // the last look at its keys was cut short
  std::optional<Rest> rest;                         // nothing: it gives out jobs
  TimedSeqs expiries;                               // jobs with a ttl

  std::uint64_t active = 0;           // leases out
  std::uint64_t retry_in_flight = 0;  // of them, those of retries

  // Index: HookKind; null: it has no such hook.
  std::array<std::unique_ptr<HookLine>, kHookKindCount> hooks;
  HookLimits hook_limits;                                 // what they were last defined with
  std::unique_ptr<std::deque<RequestId>> pushes_in_line;  // in order; null: none ever
  std::uint64_t pushed_bytes_in_line = 0;

  HookLine* hook(HookKind kind) const { return hooks[static_cast<std::size_t>(kind)].get(); }
  bool has_pushes_in_line() const { return pushes_in_line && !pushes_in_line->empty(); }

  RateWindow pushes, claims, completions, failures;

  // When this queue must be looked at next, as registered with the engine; kNever: not at all.
  Timestamp wake_at = kNever;

  // Whether another job of the retry lane may be leased.
  bool may_lease_retry() const {
    const auto& most = record.config.fetch.retry_in_flight;
    return !most || retry_in_flight < *most;
  }
  // How many more jobs may be leased, of any lane.
  std::uint64_t room() const {
    if (record.paused || rest) return 0;
    const std::uint64_t most = record.config.concurrency.value_or(UINT64_MAX);
    const std::uint64_t free = most - std::min(most, active);
    return guard ? std::min(free, guard->room()) : free;
  }
  std::uint64_t pending() const { return jobs.fresh_size() + jobs.retry_size(); }
  std::uint64_t alive() const { return scheduled.size() + cooling.size() + pending() + active; }
};

}  // namespace reprise
