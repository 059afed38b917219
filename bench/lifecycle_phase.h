// LifecyclePhase: the first half of the connections push, the second half claim and ack, all at
// once. A job counts when its ack is acknowledged. Producers pause while `backlog_jobs` jobs are
// between push and ack, so that both sides run at the same rate.
#pragma once

#include <cstdint>
#include <vector>

#include "consumer.h"
#include "load_options.h"
#include "load_phase.h"

namespace reprise::bench {

class LifecyclePhase final : public LoadPhase {
 public:
  LifecyclePhase(const LoadOptions& options, const ConsumerContext& context);

  void begin(HttpConnection& connection, TimePoint now) override;
  void on_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now) override;
  bool done() const override { return measurement_.all_jobs() >= jobs_wanted_; }
  void stop() override { stopped_ = true; }
  // Every job that was pushed has come back: nothing is lost on the way.
  bool settled() const override { return measurement_.all_jobs() == pushed_; }

 private:
  bool produces(const HttpConnection& connection) const { return connection.index() < producers_; }
  bool has_room() const;
  void push(HttpConnection& producer, TimePoint now);
  void wake_producers(TimePoint now);

  const QueueRequests& requests_;
  Measurement& measurement_;
  std::uint64_t jobs_wanted_;
  std::uint64_t backlog_jobs_;
  std::size_t batch_;
  std::size_t producers_;
  std::vector<Consumer> consumers_;      // by connection; those of producers stay unused
  std::vector<HttpConnection*> paused_;  // producers without room
  std::uint64_t pushed_ = 0;             // also the next serial
  bool stopped_ = false;
};

}  // namespace reprise::bench
