// ClaimAckPhase: every connection claims up to jobs_per_request jobs of a queue that was filled
// before, acks (or fails) them in one request, and goes on. A job counts when that is acknowledged.
#pragma once

#include <cstdint>
#include <vector>

#include "consumer.h"
#include "load_options.h"
#include "load_phase.h"

namespace reprise::bench {

class ClaimAckPhase final : public LoadPhase {
 public:
  ClaimAckPhase(const LoadOptions& options, const ConsumerContext& context);

  void begin(HttpConnection& connection, TimePoint now) override;
  // An empty claim is a LoadError: the queue held fewer jobs than the run was told.
  void on_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now) override;
  bool done() const override { return measurement_.all_jobs() >= jobs_wanted_; }
  void stop() override { stopped_ = true; }
  bool settled() const override { return busy_ == 0; }

 private:
  Measurement& measurement_;
  std::uint64_t jobs_wanted_;
  std::size_t batch_;
  std::vector<Consumer> consumers_;    // by connection
  std::vector<std::size_t> asked_of_;  // by connection: `max` of its claim
  std::uint64_t asked_ = 0;            // jobs asked for and not refused
  std::size_t busy_ = 0;               // connections with a request under way
  bool stopped_ = false;
};

}  // namespace reprise::bench
