// LatencyPhase: pushes single jobs at a fixed rate over the first half of the connections, while
// the second half waits in long polls. Tells how long a job takes from its push to a consumer when
// the server is not saturated.
//
// Times start when a push was due, not when it was sent: a stall of the server counts against every
// job that was due meanwhile.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "consumer.h"
#include "load_options.h"
#include "load_phase.h"

namespace reprise::bench {

class LatencyPhase final : public LoadPhase {
 public:
  LatencyPhase(const LoadOptions& options, const ConsumerContext& context);

  void begin(HttpConnection& connection, TimePoint now) override;
  void on_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now) override;
  TimePoint tick(TimePoint now) override;
  bool done() const override { return measurement_.all_jobs() >= jobs_wanted_; }
  void stop() override { stopped_ = true; }
  bool settled() const override { return measurement_.all_jobs() == pushed_; }

 private:
  const QueueRequests& requests_;
  Measurement& measurement_;
  std::uint64_t jobs_wanted_;
  Nanoseconds interval_;
  std::size_t producers_;
  std::vector<Consumer> consumers_;   // by connection; those of producers stay unused
  std::deque<HttpConnection*> free_;  // producers without a request under way
  std::vector<TimePoint> due_of_;     // by connection: when its push was due
  TimePoint next_due_{};              // zero: not begun
  std::uint64_t pushed_ = 0;          // also the next serial
  bool stopped_ = false;
};

}  // namespace reprise::bench
