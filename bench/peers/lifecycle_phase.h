// LifecyclePhase: the first half of the connections push, the second half claim and ack, all at
// once. A job counts when its ack is acknowledged. Producers pause while `backlog_jobs` jobs are
// between push and ack, so that both sides run at the same rate.
#pragma once

#include <cstdint>
#include <vector>

#include "peers/consumers.h"
#include "peers/peer_options.h"
#include "peers/peer_phase.h"

namespace reprise::bench::peers {

class LifecyclePhase : public PeerPhase {
 public:
  LifecyclePhase(const PeerOptions& options, const BodySource& bodies, Measurement& measurement);

  std::size_t connections() const final { return connections_; }
  void join(PeerConnection& connection) final;
  void refill(PeerConnection& connection, TimePoint now) final;
  void on_pushed(PeerConnection& connection, TimePoint now) final;
  void on_claimed(PeerConnection& connection, std::string_view job, std::string_view body,
                  TimePoint now) final;
  void on_none(PeerConnection& connection, std::size_t jobs, TimePoint now) final;
  void on_ended(PeerConnection& connection, TimePoint now) final;
  TimePoint tick(TimePoint now) override;
  bool done() const final { return measurement_.all_jobs() >= jobs_wanted_; }
  void stop() final { jobs_wanted_ = pushed_; }
  // Every job that was pushed has come back: nothing is lost on the way.
  bool settled() const final { return measurement_.all_jobs() >= pushed_; }
  std::uint64_t duplicates() const final { return duplicates_; }

 protected:
  struct Producer {
    PeerConnection* connection;
    PushWindow window;
  };

  // Fills a producer's window, as far as there is something to push.
  virtual void produce(Producer& producer, TimePoint now);
  void push(Producer& producer, TimePoint due);
  // How many jobs may be pushed now.
  std::uint64_t allowed() const;
  std::vector<Producer>& producers() { return producers_; }

 private:
  bool produces(const PeerConnection& connection) const {
    return connection.index() < connections_ / 2;
  }

  const BodySource& bodies_;
  Measurement& measurement_;
  std::size_t connections_;
  std::size_t window_;
  std::uint64_t jobs_wanted_;
  std::uint64_t backlog_jobs_;
  std::vector<Producer> producers_;
  Consumers consumers_;
  std::uint64_t pushed_ = 0;  // also the next serial
  std::uint64_t duplicates_ = 0;
};

}  // namespace reprise::bench::peers
