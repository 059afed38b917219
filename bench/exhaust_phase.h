// ExhaustPhase: every connection claims up to jobs_per_request jobs of a queue that was filled
// before and fails them, until all are dead by the queue's policy. A job counts when it is dead.
#pragma once

#include <cstdint>
#include <vector>

#include "claim_reply.h"
#include "load_options.h"
#include "load_phase.h"
#include "measurement.h"
#include "payload_source.h"
#include "queue_requests.h"

namespace reprise::bench {

class ExhaustPhase final : public LoadPhase {
 public:
  ExhaustPhase(const LoadOptions& options, const QueueRequests& requests,
               const PayloadSource& payloads, Measurement& measurement)
      : requests_(requests),
        payloads_(payloads),
        measurement_(measurement),
        jobs_wanted_(options.jobs),
        batch_(options.jobs_per_request),
        failing_(options.connections) {}

  void begin(HttpConnection& connection, TimePoint now) override;
  void on_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now) override;
  bool done() const override { return measurement_.all_jobs() >= jobs_wanted_; }
  void stop() override { stopped_ = true; }
  bool settled() const override { return busy_ == 0; }

 private:
  void fail(HttpConnection& connection, const ClaimedJobs& jobs, TimePoint now);

  const QueueRequests& requests_;
  const PayloadSource& payloads_;
  Measurement& measurement_;
  std::uint64_t jobs_wanted_;
  std::size_t batch_;
  std::vector<std::size_t> failing_;  // by connection: jobs in its fail under way; 0: a claim is
  std::size_t busy_ = 0;              // connections with a fail under way
  bool stopped_ = false;
};

}  // namespace reprise::bench
