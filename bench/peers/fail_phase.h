// FailPhase: what becomes of jobs whose workers fail. Every job of a queue that was filled before
// is claimed and released three times, then claimed and buried; when all are, they are kicked; then
// they are claimed and acked. Counted are jobs that are through all of that, from the first claim
// to the last ack.
//
// The kick has a connection of its own: all others may be waiting for jobs.
#pragma once

#include <cstdint>

#include "peers/consumers.h"
#include "peers/peer_options.h"
#include "peers/peer_phase.h"

namespace reprise::bench::peers {

class FailPhase final : public PeerPhase {
 public:
  static constexpr unsigned kReleases = 3;

  FailPhase(const PeerOptions& options, const BodySource& bodies, Measurement& measurement)
      : measurement_(measurement),
        workers_(options.connections),
        jobs_(options.jobs),
        consumers_(options.window, bodies, measurement) {}

  std::size_t connections() const override { return workers_ + 1; }
  void join(PeerConnection& connection) override;
  void refill(PeerConnection& connection, TimePoint now) override;
  void on_claimed(PeerConnection& connection, std::string_view job, std::string_view body,
                  TimePoint now) override;
  void on_none(PeerConnection& connection, std::size_t jobs, TimePoint now) override;
  void on_ended(PeerConnection& connection, TimePoint now) override;
  void on_kicked(PeerConnection& connection, std::uint64_t jobs, TimePoint now) override;
  TimePoint tick(TimePoint now) override;
  bool done() const override { return measurement_.all_jobs() >= jobs_; }
  // Too early is a LoadError: a part of this path says nothing of the whole.
  void stop() override;
  bool settled() const override { return true; }
  std::uint64_t duplicates() const override { return duplicates_; }

 private:
  enum class Stage { failing, kicking, acking };

  void kick(PeerConnection& connection);

  Measurement& measurement_;
  std::size_t workers_;
  std::uint64_t jobs_;
  Consumers consumers_;
  PeerConnection* kicker_ = nullptr;
  Stage stage_ = Stage::failing;
  std::uint64_t failures_ = 0;  // releases and buries that are done
  std::uint64_t kicked_ = 0;
  std::uint64_t duplicates_ = 0;
};

}  // namespace reprise::bench::peers
