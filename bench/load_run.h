// LoadRun: the connections of one run and its time. One thread, one epoll set; a reply leads to the
// connection's next request before the next reply is read.
//
// A run warms up, measures, stops the phase and waits until everything under way is answered; a
// server that then stays silent for kSettleSeconds is a LoadError.
#pragma once

#include <memory>
#include <vector>

#include "clock.h"
#include "http_connection.h"
#include "load_options.h"
#include "load_phase.h"
#include "measurement.h"

namespace reprise::bench {

class LoadRun {
 public:
  static constexpr std::chrono::seconds kSettleSeconds{30};

  LoadRun(const LoadOptions& options, LoadPhase& phase, Measurement& measurement);
  ~LoadRun();
  LoadRun(const LoadRun&) = delete;
  LoadRun& operator=(const LoadRun&) = delete;

  // Returns when the run has settled; the figures are in the measurement.
  void run();

 private:
  // Moves from warming up to measuring to settling, by time. Returns when that is next.
  TimePoint advance(TimePoint now);
  void wait(TimePoint until);
  void serve(HttpConnection& connection, unsigned events, TimePoint now);

  enum class Stage { warming_up, measuring, settling };

  LoadPhase& phase_;
  Measurement& measurement_;
  Nanoseconds warmup_;
  Nanoseconds length_;
  int epoll_;
  std::vector<std::unique_ptr<HttpConnection>> connections_;
  Stage stage_ = Stage::warming_up;
  TimePoint stage_ends_{};
};

}  // namespace reprise::bench
