// FailPhase: jobs of a queue that was filled before fail at a fixed rate. Connections claim ahead
// and wait with their jobs until the next fail is due, so that claims are not in its time. Each job
// must then be dead, by the policy or by a hook. Tells how long the server takes to decide.
//
// Times start when a fail was due, not when it was sent: a stall of the server counts against every
// one that was due meanwhile.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "consumer.h"
#include "load_options.h"
#include "load_phase.h"

namespace reprise::bench {

class FailPhase final : public LoadPhase {
 public:
  FailPhase(const LoadOptions& options, const ConsumerContext& context);

  void begin(HttpConnection& connection, TimePoint now) override;
  // An empty claim is a LoadError: the queue held fewer jobs than the run was told.
  void on_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now) override;
  TimePoint tick(TimePoint now) override;
  bool done() const override { return context_.measurement.all_jobs() >= jobs_wanted_; }
  void stop() override { stopped_ = true; }
  bool settled() const override { return busy_ == 0; }

 private:
  enum class Step { claiming, failing };
  struct Worker {
    Step step = Step::claiming;  // under way, or the one before
    std::size_t asked = 0;       // `max` of its claim
    ClaimedJobs jobs;            // claimed, and not failed yet
    TimePoint due{};             // of its fail
  };

  void take_jobs(HttpConnection& connection, const HttpReply& reply, TimePoint now);
  void fail(HttpConnection& connection, TimePoint now);

  ConsumerContext context_;
  std::uint64_t jobs_wanted_;
  std::size_t batch_;
  Nanoseconds interval_;                 // from job to job
  std::vector<Worker> workers_;          // by connection
  std::deque<HttpConnection*> waiting_;  // those that have jobs
  TimePoint next_due_{};                 // zero: not begun
  std::uint64_t asked_ = 0;              // jobs asked for and not refused
  std::size_t busy_ = 0;                 // connections with a request under way
  bool stopped_ = false;
};

}  // namespace reprise::bench
