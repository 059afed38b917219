// Clock: where time comes from. Only daemon/ and broker/'s threads hold one; the engine takes
// `now` as an argument.
#pragma once

#include <chrono>

#include "base/time.h"

namespace reprise {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Timestamp now() const = 0;
};

// Wall time at construction plus the steady clock since: a jump of the wall clock while the
// process runs moves no deadline. `not_before` is the latest time an earlier run has seen, so that
// time never runs backwards across a restart either.
class SteadyWallClock final : public Clock {
 public:
  explicit SteadyWallClock(Timestamp not_before = Timestamp::min());
  Timestamp now() const override;

 private:
  const Timestamp wall_at_start_;
  const std::chrono::steady_clock::time_point steady_at_start_;
};

}  // namespace reprise
