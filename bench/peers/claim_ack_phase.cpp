#include "peers/claim_ack_phase.h"

namespace reprise::bench::peers {

void ClaimAckPhase::refill(PeerConnection& connection, TimePoint now) {
  if (stopped_) return;
  asked_ += consumers_.refill(connection, jobs_wanted_ - asked_, now);
}

void ClaimAckPhase::on_claimed(PeerConnection& connection, std::string_view job,
                               std::string_view body, TimePoint now) {
  if (consumers_.on_claimed(connection, body, now).before > 0) duplicates_++;
  connection.protocol().ack(job);
}

void ClaimAckPhase::on_none(PeerConnection& connection, std::size_t jobs, TimePoint now) {
  consumers_.on_none(connection, jobs, now);
  asked_ -= jobs;
}

void ClaimAckPhase::on_ended(PeerConnection& connection, TimePoint) {
  consumers_.on_ended(connection);
  measurement_.add_jobs(1);
}

TimePoint ClaimAckPhase::tick(TimePoint now) {
  return consumers_.wake(now, [&](PeerConnection& connection) {
    refill(connection, now);
    connection.flush();
  });
}

}  // namespace reprise::bench::peers
