// LatencyPhase: a lifecycle with pushes at a fixed rate, one after another over the producers.
// Tells how long a job takes from its push to a consumer when the server is not saturated.
//
// Times start when a push was due, not when it was sent: a stall of the server counts against every
// job that was due meanwhile.
#pragma once

#include <cstddef>

#include "peers/lifecycle_phase.h"

namespace reprise::bench::peers {

class LatencyPhase final : public LifecyclePhase {
 public:
  LatencyPhase(const PeerOptions& options, const BodySource& bodies, Measurement& measurement)
      : LifecyclePhase(options, bodies, measurement), interval_(from_seconds(1 / options.rate)) {}

  TimePoint tick(TimePoint now) override;

 private:
  // Time alone decides.
  void produce(Producer&, TimePoint) override {}
  Producer* next_free();

  Nanoseconds interval_;
  TimePoint next_due_{};  // zero: not begun
  std::size_t turn_ = 0;
};

}  // namespace reprise::bench::peers
