#include "peers/lifecycle_phase.h"

#include <algorithm>

namespace reprise::bench::peers {

LifecyclePhase::LifecyclePhase(const PeerOptions& options, const BodySource& bodies,
                               Measurement& measurement)
    : bodies_(bodies),
      measurement_(measurement),
      connections_(options.connections),
      window_(options.window),
      jobs_wanted_(options.jobs),
      backlog_jobs_(options.backlog_jobs),
      consumers_(options.window, bodies, measurement) {}

void LifecyclePhase::join(PeerConnection& connection) {
  if (produces(connection)) {
    producers_.push_back({&connection, PushWindow(window_)});
  } else {
    consumers_.join(connection);
  }
}

std::uint64_t LifecyclePhase::allowed() const {
  // A job that came twice may have been acked twice.
  const std::uint64_t between = pushed_ - std::min(pushed_, measurement_.all_jobs());
  return std::min(jobs_wanted_ - pushed_, backlog_jobs_ - std::min(backlog_jobs_, between));
}

void LifecyclePhase::push(Producer& producer, TimePoint due) {
  producer.connection->protocol().push(bodies_, {.serial = pushed_++, .due = due});
  producer.window.on_push(due);
}

void LifecyclePhase::produce(Producer& producer, TimePoint now) {
  const std::uint64_t count = std::min<std::uint64_t>(producer.window.room(), allowed());
  for (std::uint64_t i = 0; i < count; i++) push(producer, now);
}

void LifecyclePhase::refill(PeerConnection& connection, TimePoint now) {
  if (produces(connection)) {
    produce(producers_[connection.index()], now);
  } else {
    consumers_.refill(connection, kNoLimit, now);
  }
}

void LifecyclePhase::on_pushed(PeerConnection& connection, TimePoint now) {
  measurement_.add_latency(producers_[connection.index()].window.on_pushed(now));
}

void LifecyclePhase::on_claimed(PeerConnection& connection, std::string_view job,
                                std::string_view body, TimePoint now) {
  if (consumers_.on_claimed(connection, body, now).before > 0) duplicates_++;
  connection.protocol().ack(job);
}

void LifecyclePhase::on_none(PeerConnection& connection, std::size_t jobs, TimePoint now) {
  consumers_.on_none(connection, jobs, now);
}

void LifecyclePhase::on_ended(PeerConnection& connection, TimePoint) {
  consumers_.on_ended(connection);
  measurement_.add_jobs(1);
}

// Called after every batch of events: acks have made room for producers that paused.
TimePoint LifecyclePhase::tick(TimePoint now) {
  for (Producer& producer : producers_) {
    produce(producer, now);
    producer.connection->flush();
  }
  return consumers_.wake(now, [&](PeerConnection& connection) {
    refill(connection, now);
    connection.flush();
  });
}

}  // namespace reprise::bench::peers
