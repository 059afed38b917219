// PushPhase: every connection pushes its next batch as soon as the last one is acknowledged.
#pragma once

#include <cstdint>

#include "load_options.h"
#include "load_phase.h"
#include "measurement.h"
#include "queue_requests.h"

namespace reprise::bench {

class PushPhase final : public LoadPhase {
 public:
  PushPhase(const LoadOptions& options, const QueueRequests& requests, Measurement& measurement);

  void begin(HttpConnection& connection, TimePoint now) override;
  void on_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now) override;
  bool done() const override { return measurement_.all_jobs() >= jobs_wanted_; }
  void stop() override { stopped_ = true; }
  bool settled() const override { return measurement_.all_jobs() == pushed_; }

 private:
  const QueueRequests& requests_;
  Measurement& measurement_;
  std::uint64_t jobs_wanted_;
  std::size_t batch_;
  std::vector<std::size_t> under_way_;  // by connection: jobs in its request
  std::uint64_t pushed_ = 0;            // sent, acknowledged or not; also the next serial
  bool stopped_ = false;
};

}  // namespace reprise::bench
