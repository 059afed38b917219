// ClaimAckPhase: every connection claims and acks jobs of a queue that was filled before with the
// serials from 0 on, `window` of them asked for or held. A job counts when its ack is acknowledged.
#pragma once

#include <cstdint>

#include "peers/consumers.h"
#include "peers/peer_options.h"
#include "peers/peer_phase.h"

namespace reprise::bench::peers {

class ClaimAckPhase final : public PeerPhase {
 public:
  ClaimAckPhase(const PeerOptions& options, const BodySource& bodies, Measurement& measurement)
      : measurement_(measurement),
        connections_(options.connections),
        jobs_wanted_(options.jobs),
        consumers_(options.window, bodies, measurement) {}

  std::size_t connections() const override { return connections_; }
  void join(PeerConnection& connection) override { consumers_.join(connection); }
  void refill(PeerConnection& connection, TimePoint now) override;
  void on_claimed(PeerConnection& connection, std::string_view job, std::string_view body,
                  TimePoint now) override;
  void on_none(PeerConnection& connection, std::size_t jobs, TimePoint now) override;
  void on_ended(PeerConnection& connection, TimePoint now) override;
  TimePoint tick(TimePoint now) override;
  bool done() const override { return measurement_.all_jobs() >= jobs_wanted_; }
  void stop() override { stopped_ = true; }
  bool settled() const override { return consumers_.held() == 0; }
  std::uint64_t duplicates() const override { return duplicates_; }

 private:
  Measurement& measurement_;
  std::size_t connections_;
  std::uint64_t jobs_wanted_;
  std::uint64_t asked_ = 0;  // for, and not refused
  std::uint64_t duplicates_ = 0;
  bool stopped_ = false;
  Consumers consumers_;
};

}  // namespace reprise::bench::peers
