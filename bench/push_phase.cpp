#include "push_phase.h"

#include <algorithm>

namespace reprise::bench {

PushPhase::PushPhase(const LoadOptions& options, const QueueRequests& requests,
                     Measurement& measurement)
    : requests_(requests),
      measurement_(measurement),
      jobs_wanted_(options.jobs),
      batch_(options.jobs_per_request),
      under_way_(options.connections) {}

void PushPhase::begin(HttpConnection& connection, TimePoint now) {
  const std::uint64_t left = jobs_wanted_ - std::min(pushed_, jobs_wanted_);
  const std::size_t count = std::min<std::uint64_t>(batch_, left);
  if (stopped_ || count == 0) return;
  requests_.push(connection.request(), {.serial = pushed_, .due = now}, count);
  pushed_ += count;
  under_way_[connection.index()] = count;
  connection.start(now);
}

void PushPhase::on_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now) {
  const std::size_t count = under_way_[connection.index()];
  expect_results(reply, "pushed", count);
  measurement_.add_jobs(count);
  measurement_.add_latency(now - connection.sent_at());
  begin(connection, now);
}

}  // namespace reprise::bench
