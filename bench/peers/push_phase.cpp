#include "peers/push_phase.h"

#include <algorithm>

namespace reprise::bench::peers {

PushPhase::PushPhase(const PeerOptions& options, const BodySource& bodies, Measurement& measurement)
    : bodies_(bodies),
      measurement_(measurement),
      jobs_wanted_(options.jobs),
      windows_(options.connections, PushWindow(options.window)) {}

void PushPhase::refill(PeerConnection& connection, TimePoint now) {
  PushWindow& window = windows_[connection.index()];
  const std::uint64_t count = std::min<std::uint64_t>(window.room(), jobs_wanted_ - pushed_);
  for (std::uint64_t i = 0; i < count; i++) {
    connection.protocol().push(bodies_, {.serial = pushed_++, .due = now});
    window.on_push(now);
  }
}

void PushPhase::on_pushed(PeerConnection& connection, TimePoint now) {
  measurement_.add_latency(windows_[connection.index()].on_pushed(now));
  measurement_.add_jobs(1);
}

}  // namespace reprise::bench::peers
