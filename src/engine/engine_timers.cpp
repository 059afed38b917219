// Time: leases expire, delays end, ttls run out, claims stop waiting. Every step is bounded.
#include <algorithm>

#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {
namespace {

// Ending a delay is a move in memory; what reads and writes records has a StepBudget.
constexpr int kDelaysPerTick = 50'000;

}  // namespace

void Engine::tick(Timestamp now) {
  expire_leases(now);
  // Only queues that are due; each rearm() moves its queue to its next time.
  std::vector<QueueNumber> due;
  for (const auto& [at, number] : wakes_) {
    if (at > now) break;
    due.push_back(number);
  }
  StepBudget budget;
  for (const QueueNumber number : due) {
    QueueState& queue = *by_number_.at(number);
    expire_jobs(queue, budget, now);
    end_delays(queue, now);
    advance_guard(queue, now);
    queue.look_again = false;
    if (queue.rest && queue.rest->until <= now) queue.rest.reset();
    rearm(queue);
    serve_waiting(queue, now);
  }
  wake_throttled(now);
  while (const auto claim = waiting_.take_expired(now)) {
    answers_.push_back({claim->id, ClaimReply{}});
  }
}

Timestamp Engine::next_wake() const {
  Timestamp next = waiting_.next_deadline();
  if (const Lease* first = leases_.first()) next = std::min(next, first->deadline);
  if (!wakes_.empty()) next = std::min(next, wakes_.begin()->first);
  return std::min(next, throttles_.next_wake());
}

void Engine::expire_leases(Timestamp now) {
  for (StepBudget budget; !budget.spent();) {
    const Lease* first = leases_.first();
    if (first == nullptr || first->deadline > now) return;
    const Lease lease = *first;
    budget.spend(lease.byte_size);
    QueueState& queue = *by_number_.at(lease.job.queue);
    const auto failed = end_in_failure(queue,
                                       {.lease = lease,
                                        .failure = {.outcome = AttemptOutcome::lease_expired},
                                        .end = {AttemptOutcome::lease_expired, "lease expired", ""},
                                        .failed_at = now,
                                        .request = std::nullopt},
                                       now);
    if (failed && !*failed) {
      // Its state cannot be read, so nothing can be said about its attempts: out of the way with
      // it.
      ++queue.totals.lease_expired;
      end_lease(queue, lease, LeaseEnd::failed, now);
      quarantine(queue, lease.job, failed->error(), now);
      serve_waiting(queue, now);
    }
  }
}

void Engine::end_delays(QueueState& queue, Timestamp now) {
  int left = kDelaysPerTick;
  auto scheduled_end = queue.scheduled.begin();
  for (; scheduled_end != queue.scheduled.end() && scheduled_end->first.at <= now && left > 0;
       ++scheduled_end, --left) {
    const auto& [priority, strand] = scheduled_end->second;
    queue.jobs.insert_fresh(*strand, priority, scheduled_end->first.seq);
  }
  queue.scheduled.erase(queue.scheduled.begin(), scheduled_end);
  for (; !queue.cooling.empty() && queue.cooling.front().at <= now && left > 0; --left) {
    const RetryTimes::Retry due = queue.cooling.pop_front();
    queue.jobs.insert_retry(due.strand, due.job, due.failures);
  }
}

void Engine::expire_jobs(QueueState& queue, StepBudget& budget, Timestamp now) {
  while (!budget.spent()) {
    if (queue.expiries.empty() || queue.expiries.begin()->at > now) return;
    const JobKey key{queue.record.number, queue.expiries.begin()->seq};
    queue.expiries.erase(queue.expiries.begin());
    // A job that is being worked on may still finish; if it comes back, it dies then.
    if (!is_leased(key)) expire_job(queue, key, budget, now);
  }
}

void Engine::expire_job(QueueState& queue, JobKey key, StepBudget& budget, Timestamp now) {
  const auto record = ledger_.record(key);
  const auto state = ledger_.state(key);
  // An unreadable job stays where it is: the claim that meets it sends it to the dead as corrupt.
  if (!record || !state || *record == nullptr) return;
  budget.spend((*record)->byte_size());
  forget_waiting(queue, key, **record, state->get());
  forget_job(queue, key, (*record)->expires_at, (*record)->byte_size());
  bury(queue, key, *record,
       *state ? std::make_shared<JobState>(**state) : std::make_shared<JobState>(),
       DeathReason::expired, DecidedBy::policy, now);
}

}  // namespace reprise
