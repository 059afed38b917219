// LoadPhase: which requests a run sends. LoadRun owns the connections and the time; a phase decides
// what a free connection does next, and counts what the server acknowledged.
//
// Contract: a phase uses a connection only inside begin(), on_reply() and tick(), only while it is
// not busy, and throws LoadError at the first reply that is not what it asked for.
#pragma once

#include "clock.h"
#include "http_connection.h"

namespace reprise::bench {

class LoadPhase {
 public:
  virtual ~LoadPhase() = default;

  // Once for each connection, in order of their index.
  virtual void begin(HttpConnection& connection, TimePoint now) = 0;
  virtual void on_reply(HttpConnection& connection, const HttpReply& reply, TimePoint now) = 0;

  // Work that depends on time alone. Returns when it wants to be called again.
  virtual TimePoint tick(TimePoint now) { return now + std::chrono::milliseconds(100); }

  // All the jobs it was asked for are done.
  virtual bool done() const = 0;

  // No new jobs from now on; settled() tells when those under way are answered.
  virtual void stop() = 0;
  virtual bool settled() const = 0;
};

}  // namespace reprise::bench
