// Measurement: what a run counts. Everything is counted as a whole; figures come from the window
// between open() and close(), so that neither the start nor the settling of a run is in them.
#pragma once

#include <cstdint>

#include "clock.h"
#include "latency_histogram.h"

namespace reprise::bench {

class Measurement {
 public:
  void open(TimePoint now) {
    open_ = true;
    opened_at_ = now;
  }
  void close(TimePoint now) {
    open_ = false;
    closed_at_ = now;
  }
  bool is_open() const { return open_; }

  // Jobs that are done, in the sense of the phase: the server has said so.
  void add_jobs(std::uint64_t count) {
    all_jobs_ += count;
    if (open_) jobs_ += count;
  }
  void add_reply() {
    if (open_) requests_++;
  }
  // Of the requests that the phase is about; a long poll, for one, takes as long as it is told.
  void add_latency(Nanoseconds latency) {
    if (open_) latency_.record(latency);
  }
  // From when a push was due to when a consumer had the job.
  void add_delivery(Nanoseconds latency) {
    if (open_) delivery_.record(latency);
  }

  std::uint64_t all_jobs() const { return all_jobs_; }
  std::uint64_t jobs() const { return jobs_; }
  std::uint64_t requests() const { return requests_; }
  const LatencyHistogram& latency() const { return latency_; }
  const LatencyHistogram& delivery() const { return delivery_; }
  Nanoseconds window() const { return closed_at_ - opened_at_; }

 private:
  bool open_ = false;
  TimePoint opened_at_{};
  TimePoint closed_at_{};
  std::uint64_t all_jobs_ = 0;
  std::uint64_t jobs_ = 0;
  std::uint64_t requests_ = 0;
  LatencyHistogram latency_;
  LatencyHistogram delivery_;
};

}  // namespace reprise::bench
