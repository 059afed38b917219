// PacedPushPhase: pushes at a fixed rate over all connections, `jobs_per_request` at a time. Tells
// how long a push takes when the server is busy but not saturated.
//
// Times start when a push was due, not when it was sent: a stall of the server counts against every
// push that was due meanwhile.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "load_options.h"
#include "load_phase.h"
#include "measurement.h"
#include "queue_requests.h"

namespace reprise::bench {

class PacedPushPhase final : public LoadPhase {
 public:
  PacedPushPhase(const LoadOptions& options, const QueueRequests& requests,
                 Measurement& measurement);

  void begin(HttpConnection& connection, TimePoint) override { free_.push_back(&connection); }
  void on_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now) override;
  TimePoint tick(TimePoint now) override;
  bool done() const override { return measurement_.all_jobs() >= jobs_wanted_; }
  void stop() override { stopped_ = true; }
  bool settled() const override { return measurement_.all_jobs() == pushed_; }

 private:
  const QueueRequests& requests_;
  Measurement& measurement_;
  std::uint64_t jobs_wanted_;
  std::size_t batch_;
  Nanoseconds interval_;              // from request to request
  std::deque<HttpConnection*> free_;  // without a request under way
  std::vector<TimePoint> due_of_;     // by connection: when its push was due
  TimePoint next_due_{};              // zero: not begun
  std::uint64_t pushed_ = 0;          // also the next serial
  bool stopped_ = false;
};

}  // namespace reprise::bench
