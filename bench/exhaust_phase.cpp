#include "exhaust_phase.h"

namespace reprise::bench {
namespace {

// Others may hold what is left; what they fail comes back at once.
constexpr std::chrono::seconds kExhaustWait{1};

}  // namespace

void ExhaustPhase::begin(HttpConnection& connection, TimePoint now) {
  if (stopped_) return;
  requests_.claim(connection.request(), batch_, kExhaustWait);
  connection.start(now);
}

void ExhaustPhase::fail(HttpConnection& connection, const ClaimedJobs& jobs, TimePoint now) {
  failing_[connection.index()] = jobs.tokens.size();
  busy_++;
  requests_.fail(connection.request(), jobs, /*final=*/false);
  connection.start(now);
}

void ExhaustPhase::on_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now) {
  std::size_t& failing = failing_[connection.index()];
  if (failing > 0) {
    measurement_.add_jobs(expect_failed(reply, failing));
    measurement_.add_latency(now - connection.sent_at());
    failing = 0;
    busy_--;
    begin(connection, now);
    return;
  }
  const ClaimedJobs jobs = read_claim_reply(reply, payloads_);
  if (jobs.tokens.empty()) {
    begin(connection, now);
  } else {
    fail(connection, jobs, now);
  }
}

}  // namespace reprise::bench
