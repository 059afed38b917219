// PeerRun: the connections of one run and its time. One thread, one epoll set; the replies of one
// read lead to that connection's next commands, sent together, before the next read.
//
// A run warms up, measures, stops the phase and waits until everything under way is answered; a
// server that then stays silent for kSettleSeconds is a LoadError.
#pragma once

#include <memory>
#include <vector>

#include "clock.h"
#include "measurement.h"
#include "peers/peer_connection.h"
#include "peers/peer_options.h"
#include "peers/peer_phase.h"

namespace reprise::bench::peers {

class PeerRun {
 public:
  static constexpr std::chrono::seconds kSettleSeconds{30};

  PeerRun(const PeerOptions& options, PeerPhase& phase, Measurement& measurement);
  ~PeerRun();
  PeerRun(const PeerRun&) = delete;
  PeerRun& operator=(const PeerRun&) = delete;

  // Returns when the run has settled; the figures are in the measurement.
  void run();

 private:
  // Moves from warming up to measuring to settling, by time. Returns when that is next.
  TimePoint advance(TimePoint now);
  void wait(TimePoint until);
  void serve(PeerConnection& connection, unsigned events);

  enum class Stage { warming_up, measuring, settling };

  PeerPhase& phase_;
  Measurement& measurement_;
  Nanoseconds warmup_;
  Nanoseconds length_;
  int epoll_;
  std::vector<std::unique_ptr<PeerConnection>> connections_;
  Stage stage_ = Stage::warming_up;
  TimePoint stage_ends_{};
};

}  // namespace reprise::bench::peers
