#include "latency_phase.h"

namespace reprise::bench {
namespace {

constexpr std::chrono::seconds kDeliveryWait{30};

}  // namespace

LatencyPhase::LatencyPhase(const LoadOptions& options, const ConsumerContext& context)
    : requests_(context.requests),
      measurement_(context.measurement),
      jobs_wanted_(options.jobs),
      interval_(from_seconds(1 / options.rate)),
      producers_(options.connections / 2),
      consumers_(options.connections, Consumer(context)),
      due_of_(options.connections) {}

void LatencyPhase::begin(HttpConnection& connection, TimePoint now) {
  if (connection.index() < producers_) {
    free_.push_back(&connection);
  } else {
    consumers_[connection.index()].claim(connection, 1, kDeliveryWait, now);
  }
}

TimePoint LatencyPhase::tick(TimePoint now) {
  if (next_due_ == TimePoint{}) next_due_ = now;
  while (!stopped_ && pushed_ < jobs_wanted_ && next_due_ <= now && !free_.empty()) {
    HttpConnection& producer = *free_.front();
    free_.pop_front();
    requests_.push(producer.request(), {.serial = pushed_, .due = next_due_}, 1);
    pushed_++;
    due_of_[producer.index()] = next_due_;
    producer.start(now);
    next_due_ += interval_;
  }
  // Without a free producer the next reply calls again.
  return free_.empty() || stopped_ ? now + std::chrono::seconds(1) : next_due_;
}

void LatencyPhase::on_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now) {
  if (connection.index() < producers_) {
    expect_results(reply, "pushed", 1);
    measurement_.add_latency(now - due_of_[connection.index()]);
    free_.push_back(&connection);
    return;
  }
  const auto progress = consumers_[connection.index()].on_reply(connection, reply, now);
  if (progress.step != Consumer::Step::claimed) begin(connection, now);
}

}  // namespace reprise::bench
