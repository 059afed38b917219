#include "paced_push_phase.h"

namespace reprise::bench {

PacedPushPhase::PacedPushPhase(const LoadOptions& options, const QueueRequests& requests,
                               Measurement& measurement)
    : requests_(requests),
      measurement_(measurement),
      jobs_wanted_(options.jobs),
      batch_(options.jobs_per_request),
      interval_(from_seconds(static_cast<double>(options.jobs_per_request) / options.rate)),
      due_of_(options.connections) {}

TimePoint PacedPushPhase::tick(TimePoint now) {
  if (next_due_ == TimePoint{}) next_due_ = now;
  while (!stopped_ && pushed_ < jobs_wanted_ && next_due_ <= now && !free_.empty()) {
    HttpConnection& connection = *free_.front();
    free_.pop_front();
    requests_.push(connection.request(), {.serial = pushed_, .due = next_due_}, batch_);
    pushed_ += batch_;
    due_of_[connection.index()] = next_due_;
    connection.start(now);
    next_due_ += interval_;
  }
  // Without a free connection the next reply calls again.
  return free_.empty() || stopped_ ? now + std::chrono::seconds(1) : next_due_;
}

void PacedPushPhase::on_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now) {
  expect_results(reply, "pushed", batch_);
  measurement_.add_jobs(batch_);
  measurement_.add_latency(now - due_of_[connection.index()]);
  free_.push_back(&connection);
}

}  // namespace reprise::bench
