#include "peers/fail_phase.h"

#include <fmt/format.h>

namespace reprise::bench::peers {

void FailPhase::join(PeerConnection& connection) {
  if (connection.index() < workers_) {
    consumers_.join(connection);
  } else {
    kicker_ = &connection;
  }
}

void FailPhase::refill(PeerConnection& connection, TimePoint now) {
  if (&connection != kicker_) consumers_.refill(connection, jobs_, now);
}

void FailPhase::on_claimed(PeerConnection& connection, std::string_view job, std::string_view body,
                           TimePoint now) {
  const auto [serial, before] = consumers_.on_claimed(connection, body, now);
  PeerProtocol& protocol = connection.protocol();
  if (before < kReleases) {
    protocol.release(job);
  } else if (before == kReleases) {
    protocol.bury(job);
  } else {
    if (stage_ == Stage::failing) {
      throw LoadError(fmt::format("job {} was buried and came back", serial));
    }
    if (before > kReleases + 1) duplicates_++;
    protocol.ack(job);
  }
}

void FailPhase::on_none(PeerConnection& connection, std::size_t jobs, TimePoint now) {
  consumers_.on_none(connection, jobs, now);
}

void FailPhase::on_ended(PeerConnection& connection, TimePoint) {
  consumers_.on_ended(connection);
  if (stage_ != Stage::failing) {
    measurement_.add_jobs(1);
  } else if (++failures_ == jobs_ * (kReleases + 1)) {
    stage_ = Stage::kicking;
    kick(*kicker_);
  }
}

void FailPhase::kick(PeerConnection& connection) {
  connection.protocol().kick(jobs_ - kicked_);
  connection.flush();
}

void FailPhase::on_kicked(PeerConnection& connection, std::uint64_t jobs, TimePoint) {
  if (jobs == 0) throw LoadError(fmt::format("{} of {} jobs were kicked", kicked_, jobs_));
  kicked_ += jobs;
  if (kicked_ < jobs_) {
    kick(connection);
  } else {
    stage_ = Stage::acking;
  }
}

TimePoint FailPhase::tick(TimePoint now) {
  return consumers_.wake(now, [&](PeerConnection& connection) {
    refill(connection, now);
    connection.flush();
  });
}

void FailPhase::stop() {
  if (!done()) {
    throw LoadError(fmt::format("{} failures and {} acks of {} jobs in the time given", failures_,
                                measurement_.all_jobs(), jobs_));
  }
}

}  // namespace reprise::bench::peers
