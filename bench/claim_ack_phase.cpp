#include "claim_ack_phase.h"

#include <algorithm>

#include "load_error.h"

namespace reprise::bench {

ClaimAckPhase::ClaimAckPhase(const LoadOptions& options, const ConsumerContext& context)
    : measurement_(context.measurement),
      jobs_wanted_(options.jobs),
      batch_(options.jobs_per_request),
      consumers_(options.connections, Consumer(context)),
      asked_of_(options.connections) {}

void ClaimAckPhase::begin(HttpConnection& connection, TimePoint now) {
  const std::uint64_t left = jobs_wanted_ - std::min(asked_, jobs_wanted_);
  const std::size_t count = std::min<std::uint64_t>(batch_, left);
  if (stopped_ || count == 0) return;
  asked_ += count;
  asked_of_[connection.index()] = count;
  busy_++;
  consumers_[connection.index()].claim(connection, count, std::chrono::seconds(0), now);
}

void ClaimAckPhase::on_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now) {
  const auto progress = consumers_[connection.index()].on_reply(connection, reply, now);
  measurement_.add_latency(progress.latency);
  switch (progress.step) {
    case Consumer::Step::empty:
      throw LoadError("the queue ran empty: fill it with at least --jobs jobs first");
    case Consumer::Step::claimed:
      asked_ -= asked_of_[connection.index()] - progress.jobs;
      break;
    case Consumer::Step::ended:
      busy_--;
      begin(connection, now);
      break;
  }
}

}  // namespace reprise::bench
