#include "lifecycle_phase.h"

#include <algorithm>

namespace reprise::bench {
namespace {

constexpr std::chrono::seconds kClaimWait{30};

}  // namespace

LifecyclePhase::LifecyclePhase(const LoadOptions& options, const ConsumerContext& context)
    : requests_(context.requests),
      measurement_(context.measurement),
      jobs_wanted_(options.jobs),
      backlog_jobs_(options.backlog_jobs),
      batch_(options.jobs_per_request),
      producers_(options.connections / 2),
      consumers_(options.connections, Consumer(context)) {}

bool LifecyclePhase::has_room() const {
  return pushed_ - measurement_.all_jobs() + batch_ <=
         std::max<std::uint64_t>(backlog_jobs_, batch_);
}

void LifecyclePhase::begin(HttpConnection& connection, TimePoint now) {
  if (produces(connection)) {
    push(connection, now);
  } else {
    consumers_[connection.index()].claim(connection, batch_, kClaimWait, now);
  }
}

void LifecyclePhase::push(HttpConnection& producer, TimePoint now) {
  if (stopped_ || pushed_ >= jobs_wanted_) return;
  if (!has_room()) {
    paused_.push_back(&producer);
    return;
  }
  requests_.push(producer.request(), {.serial = pushed_, .due = now}, batch_);
  pushed_ += batch_;
  producer.start(now);
}

void LifecyclePhase::wake_producers(TimePoint now) {
  while (!paused_.empty() && has_room()) {
    HttpConnection* producer = paused_.back();
    paused_.pop_back();
    push(*producer, now);
  }
}

void LifecyclePhase::on_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now) {
  if (produces(connection)) {
    expect_results(reply, "pushed", batch_);
    measurement_.add_latency(now - connection.sent_at());
    push(connection, now);
    return;
  }
  const auto progress = consumers_[connection.index()].on_reply(connection, reply, now);
  if (progress.step == Consumer::Step::claimed) return;
  if (progress.step == Consumer::Step::ended) measurement_.add_latency(progress.latency);
  begin(connection, now);
  wake_producers(now);
}

}  // namespace reprise::bench
