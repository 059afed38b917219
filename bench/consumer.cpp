#include "consumer.h"

#include <fmt/format.h>

#include "load_error.h"

namespace reprise::bench {

void Deliveries::add(std::uint64_t serial) {
  if (serial >= seen_.size()) seen_.resize(serial * 2 + 1024);
  if (seen_[serial]) throw LoadError(fmt::format("job {} was delivered twice", serial));
  seen_[serial] = true;
}

void Consumer::claim(HttpConnection& connection, std::size_t max, std::chrono::seconds wait,
                     TimePoint now) {
  context_.requests.claim(connection.request(), max, wait);
  connection.start(now);
}

Consumer::Progress Consumer::on_reply(HttpConnection& connection, const HttpReply& reply,
                                      TimePoint now) {
  if (ending_ == 0) return on_claim_reply(connection, reply, now);
  const std::size_t count = ending_;
  expect_results(reply, context_.ending == Ending::ack ? "acked" : "dead", count);
  context_.measurement.add_jobs(count);
  ending_ = 0;
  return {Step::ended, count, now - connection.sent_at()};
}

Consumer::Progress Consumer::on_claim_reply(HttpConnection& connection, const HttpReply& reply,
                                            TimePoint now) {
  const ClaimedJobs jobs = read_claim_reply(reply, context_.payloads);
  const Nanoseconds latency = now - connection.sent_at();
  if (jobs.tokens.empty()) return {Step::empty, 0, latency};
  for (const Stamp& stamp : jobs.stamps) {
    context_.deliveries.add(stamp.serial);
    context_.measurement.add_delivery(now - stamp.due);
  }
  if (context_.ending == Ending::ack) {
    context_.requests.ack(connection.request(), jobs.tokens);
  } else {
    context_.requests.fail(connection.request(), jobs, /*final=*/true);
  }
  ending_ = jobs.tokens.size();
  connection.start(now);
  return {Step::claimed, ending_, latency};
}

}  // namespace reprise::bench
