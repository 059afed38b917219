// PushPhase: every connection pushes jobs, `window` of them under way. A job counts, by itself,
// when the server says that it is stored.
#pragma once

#include <cstdint>
#include <vector>

#include "measurement.h"
#include "peers/peer_options.h"
#include "peers/peer_phase.h"
#include "peers/windows.h"

namespace reprise::bench::peers {

class PushPhase final : public PeerPhase {
 public:
  PushPhase(const PeerOptions& options, const BodySource& bodies, Measurement& measurement);

  std::size_t connections() const override { return windows_.size(); }
  void refill(PeerConnection& connection, TimePoint now) override;
  void on_pushed(PeerConnection& connection, TimePoint now) override;
  bool done() const override { return measurement_.all_jobs() >= jobs_wanted_; }
  void stop() override { jobs_wanted_ = pushed_; }
  bool settled() const override { return measurement_.all_jobs() == pushed_; }

 private:
  const BodySource& bodies_;
  Measurement& measurement_;
  std::uint64_t jobs_wanted_;
  std::uint64_t pushed_ = 0;         // also the next serial
  std::vector<PushWindow> windows_;  // by connection
};

}  // namespace reprise::bench::peers
