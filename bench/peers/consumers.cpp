#include "peers/consumers.h"

namespace reprise::bench::peers {

unsigned Deliveries::add(std::uint64_t serial) {
  if (serial >= counts_.size()) counts_.resize(serial * 2 + 1024);
  return counts_[serial]++;
}

void Consumers::join(PeerConnection& connection) {
  if (windows_.size() <= connection.index()) windows_.resize(connection.index() + 1);
  windows_[connection.index()] = {
      .connection = &connection,
      .window = ClaimWindow(connection.protocol().claim_style(), window_)};
}

std::size_t Consumers::refill(PeerConnection& connection, std::uint64_t allowed, TimePoint now) {
  const ClaimWindow::Ask ask = window_of(connection).next(allowed, now);
  if (ask.jobs > 0) connection.protocol().claim(ask.jobs, ask.wait);
  return ask.jobs;
}

Consumers::Delivery Consumers::on_claimed(PeerConnection& connection, std::string_view body,
                                          TimePoint now) {
  const Stamp stamp = bodies_.check(body);
  window_of(connection).on_job();
  held_++;
  measurement_.add_delivery(now - stamp.due);
  return {stamp.serial, deliveries_.add(stamp.serial)};
}

void Consumers::on_none(PeerConnection& connection, std::size_t jobs, TimePoint now) {
  ClaimWindow& window = window_of(connection);
  window.on_none(jobs, now);
  if (window.rests_until() > now) windows_[connection.index()].rests = true;
}

void Consumers::on_ended(PeerConnection& connection) {
  window_of(connection).on_ended();
  held_--;
}

}  // namespace reprise::bench::peers
