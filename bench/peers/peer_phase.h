// PeerPhase: what a run asks of the server. PeerRun owns the connections and the time; a phase
// decides what they do, and counts what the server acknowledged.
//
// Contract: commands are written in refill() and tick(), and in on_claimed() those that end the
// job. PeerRun sends what refill() and the replies before it have left on that connection; what a
// phase writes to another one it flushes itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "clock.h"
#include "load_error.h"
#include "peers/peer_connection.h"

namespace reprise::bench::peers {

class PeerPhase {
 public:
  virtual ~PeerPhase() = default;

  virtual std::size_t connections() const = 0;

  // Once for each connection, in order of their index, before all else.
  virtual void join(PeerConnection&) {}
  // At the beginning, and after each batch of replies.
  virtual void refill(PeerConnection& connection, TimePoint now) = 0;

  virtual void on_pushed(PeerConnection&, TimePoint) { refuse(); }
  virtual void on_claimed(PeerConnection&, std::string_view, std::string_view, TimePoint) {
    refuse();
  }
  virtual void on_none(PeerConnection&, std::size_t, TimePoint) { refuse(); }
  virtual void on_ended(PeerConnection&, TimePoint) { refuse(); }
  virtual void on_kicked(PeerConnection&, std::uint64_t, TimePoint) { refuse(); }

  // Work that depends on time alone. Returns when it wants to be called again.
  virtual TimePoint tick(TimePoint now) { return now + std::chrono::milliseconds(100); }

  // All the jobs it was asked for are done.
  virtual bool done() const = 0;
  // No new jobs from now on; settled() tells when those under way are answered.
  virtual void stop() = 0;
  virtual bool settled() const = 0;

  virtual std::uint64_t duplicates() const { return 0; }

 private:
  [[noreturn]] static void refuse() { throw LoadError("a reply that the phase did not ask for"); }
};

}  // namespace reprise::bench::peers
