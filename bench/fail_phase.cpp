#include "fail_phase.h"

#include <algorithm>

#include "load_error.h"

namespace reprise::bench {

FailPhase::FailPhase(const LoadOptions& options, const ConsumerContext& context)
    : context_(context),
      jobs_wanted_(options.jobs),
      batch_(options.jobs_per_request),
      interval_(from_seconds(1 / options.rate)),
      workers_(options.connections) {}

void FailPhase::begin(HttpConnection& connection, TimePoint now) {
  const std::uint64_t left = jobs_wanted_ - std::min(asked_, jobs_wanted_);
  const std::size_t count = std::min<std::uint64_t>(batch_, left);
  if (stopped_ || count == 0) return;
  asked_ += count;
  busy_++;
  Worker& worker = workers_[connection.index()];
  worker.step = Step::claiming;
  worker.asked = count;
  context_.requests.claim(connection.request(), count, std::chrono::seconds(0));
  connection.start(now);
}

TimePoint FailPhase::tick(TimePoint now) {
  if (next_due_ == TimePoint{} && !waiting_.empty()) next_due_ = now;
  while (!stopped_ && !waiting_.empty() && next_due_ <= now) {
    HttpConnection& connection = *waiting_.front();
    waiting_.pop_front();
    fail(connection, now);
  }
  // Without a connection that has jobs the next reply calls again.
  return waiting_.empty() || stopped_ ? now + std::chrono::seconds(1) : next_due_;
}

void FailPhase::fail(HttpConnection& connection, TimePoint now) {
  Worker& worker = workers_[connection.index()];
  worker.step = Step::failing;
  worker.due = next_due_;
  next_due_ += interval_ * worker.jobs.tokens.size();
  busy_++;
  context_.requests.fail(connection.request(), worker.jobs, /*final=*/false);
  connection.start(now);
}

void FailPhase::on_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now) {
  busy_--;
  Worker& worker = workers_[connection.index()];
  if (worker.step == Step::claiming) {
    take_jobs(connection, reply, now);
    return;
  }
  expect_results(reply, "dead", worker.jobs.tokens.size());
  context_.measurement.add_jobs(worker.jobs.tokens.size());
  context_.measurement.add_latency(now - worker.due);
  begin(connection, now);
}

void FailPhase::take_jobs(HttpConnection& connection, const HttpReply& reply, TimePoint now) {
  Worker& worker = workers_[connection.index()];
  worker.jobs = read_claim_reply(reply, context_.payloads);
  if (worker.jobs.tokens.empty()) {
    throw LoadError("the queue ran empty: fill it with at least --jobs jobs first");
  }
  for (const Stamp& stamp : worker.jobs.stamps) {
    context_.deliveries.add(stamp.serial);
    context_.measurement.add_delivery(now - stamp.due);
  }
  asked_ -= worker.asked - worker.jobs.tokens.size();
  waiting_.push_back(&connection);
}

}  // namespace reprise::bench
