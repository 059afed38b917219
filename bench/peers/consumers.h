// Consumers: the connections that claim jobs, of any phase: their windows, and the bodies and
// deliveries of what they are given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "measurement.h"
#include "peers/body_source.h"
#include "peers/peer_connection.h"
#include "peers/windows.h"

namespace reprise::bench::peers {

// How often each job was delivered.
class Deliveries {
 public:
  // Counts one more; returns how many there were before.
  unsigned add(std::uint64_t serial);

 private:
  std::vector<std::uint8_t> counts_;
};

class Consumers {
 public:
  Consumers(std::size_t window, const BodySource& bodies, Measurement& measurement)
      : window_(window), bodies_(bodies), measurement_(measurement) {}

  // Those that do not join are no consumers.
  void join(PeerConnection& connection);
  bool has(const PeerConnection& connection) const {
    return connection.index() < windows_.size() && windows_[connection.index()].connection;
  }

  // Asks for as many jobs as its window has room for, and for `allowed` at most; returns how many.
  std::size_t refill(PeerConnection& connection, std::uint64_t allowed, TimePoint now);

  struct Delivery {
    std::uint64_t serial;
    unsigned before;  // its deliveries until now
  };
  // Checks the body and counts the delivery. The caller ends the job, one way or the other.
  Delivery on_claimed(PeerConnection& connection, std::string_view body, TimePoint now);
  void on_none(PeerConnection& connection, std::size_t jobs, TimePoint now);
  void on_ended(PeerConnection& connection);

  // Jobs that were claimed and are not ended yet.
  std::uint64_t held() const { return held_; }

  // Those whose rest is over; the earliest that another one's is.
  template <class Refill>
  TimePoint wake(TimePoint now, Refill refill);

 private:
  struct Entry {
    PeerConnection* connection = nullptr;
    ClaimWindow window{ClaimStyle::single, 1};
    bool rests = false;
  };
  ClaimWindow& window_of(const PeerConnection& connection) {
    return windows_[connection.index()].window;
  }

  std::size_t window_;
  const BodySource& bodies_;
  Measurement& measurement_;
  Deliveries deliveries_;
  std::vector<Entry> windows_;  // by connection
  std::uint64_t held_ = 0;
};

template <class Refill>
TimePoint Consumers::wake(TimePoint now, Refill refill) {
  TimePoint next = now + std::chrono::milliseconds(100);
  for (Entry& entry : windows_) {
    if (!entry.rests) continue;
    if (entry.window.rests_until() > now) {
      next = std::min(next, entry.window.rests_until());
    } else {
      entry.rests = false;
      refill(*entry.connection);
    }
  }
  return next;
}

}  // namespace reprise::bench::peers
