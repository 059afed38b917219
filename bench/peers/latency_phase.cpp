#include "peers/latency_phase.h"

#include <algorithm>

namespace reprise::bench::peers {

LatencyPhase::Producer* LatencyPhase::next_free() {
  for (std::size_t i = 0; i < producers().size(); i++) {
    Producer& producer = producers()[turn_++ % producers().size()];
    if (producer.window.room() > 0) return &producer;
  }
  return nullptr;
}

TimePoint LatencyPhase::tick(TimePoint now) {
  if (next_due_ == TimePoint{}) next_due_ = now;
  while (next_due_ <= now && allowed() > 0) {
    Producer* const producer = next_free();
    // The next reply calls again.
    if (producer == nullptr) return now + std::chrono::milliseconds(100);
    push(*producer, next_due_);
    producer->connection->flush();
    next_due_ += interval_;
  }
  const TimePoint woken = LifecyclePhase::tick(now);
  return allowed() > 0 ? std::min(next_due_, woken) : woken;
}

}  // namespace reprise::bench::peers
