// Throttles: what operators allow jobs with a throttle key to be started with.
#include <utility>

#include "engine/engine.h"
#include "engine/queue_state.h"

namespace reprise {
namespace {

// What a bucket holds in its smallest parts must fit into 64 bits.
constexpr Duration kLongestPer = std::chrono::hours(24 * 30);

Error throttle_not_found(const std::string& ns, const std::string& key) {
  return {Errc::throttle_not_found,
          "no throttle is set for '" + key + "' in namespace '" + ns + "'"};
}

}  // namespace

void Engine::restore_throttle(const ThrottleRecord& record) { throttles_.restore(record); }

Result<ThrottleStats> Engine::set_throttle(Throttle throttle, Timestamp now) {
  if (throttle.rate.per > kLongestPer) {
    return Error{Errc::invalid_field, "rate: counts over 30d at most"};
  }
  const bool is_new = !throttles_.find(throttle.ns, throttle.key, now);
  if (is_new && throttles_.count(throttle.ns) >= kMaxThrottles) {
    return Error{Errc::too_many_throttles, "namespace '" + throttle.ns + "' has its " +
                                               std::to_string(kMaxThrottles) +
                                               " throttles; unset one first"};
  }
  throttle.updated_at = now;
  throttles_.set(throttle, now);
  server_changed_ = true;  // so that the time it carries is never run behind
  return *throttles_.find(throttle.ns, throttle.key, now);
}

Result<ThrottleStats> Engine::unset_throttle(const std::string& ns, const std::string& key,
                                             Timestamp now) {
  auto stats = throttle(ns, key, now);
  if (!stats) return stats;
  throttles_.unset(ns, key, now);
  ledger_.erase_throttle(ns, key);
  return stats;
}

Result<ThrottleStats> Engine::throttle(const std::string& ns, const std::string& key,
                                       Timestamp now) const {
  const auto found = throttles_.find(ns, key, now);
  if (!found) return throttle_not_found(ns, key);
  return *found;
}

std::vector<ThrottleStats> Engine::list_throttles(const std::string& ns, Timestamp now) const {
  return throttles_.list(ns, now);
}

// Tokens that have come meanwhile are for those in line, whether or not a tick has told them. Who
// waits elsewhere, and who is left over here, is served by the tick that is due.
void Engine::wake_throttled_of(const std::vector<QueueState*>& queues, Timestamp now) {
  if (throttles_.next_wake() > now) return;
  for (QueueState* queue : queues) {
    bool any = false;
    throttles_.wake_lines_of(queue->record.number, now, [&](Strand& strand, Lane lane) {
      queue->jobs.look_again(strand, lane);
      any = true;
    });
    if (any) look_again_later(*queue);
  }
}

void Engine::wake_throttled(Timestamp now) {
  if (throttles_.next_wake() > now) return;
  std::vector<QueueNumber> turns;
  throttles_.wake(now, [&](Strand& strand, Lane lane) {
    PendingJobs& jobs = strand.key.jobs;
    jobs.look_again(strand, lane);
    if (turns.empty() || turns.back() != jobs.queue()) turns.push_back(jobs.queue());
  });
  for (const QueueNumber number : turns) serve_waiting(*by_number_.at(number), now);
  throttles_.settle(now);
}

}  // namespace reprise
