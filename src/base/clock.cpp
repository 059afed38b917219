#include "base/clock.h"

#include <algorithm>

namespace reprise {

SteadyWallClock::SteadyWallClock(Timestamp not_before)
    : wall_at_start_(
          std::max(not_before, std::chrono::floor<Duration>(std::chrono::system_clock::now()))),
      steady_at_start_(std::chrono::steady_clock::now()) {}

Timestamp SteadyWallClock::now() const {
  return wall_at_start_ +
         std::chrono::floor<Duration>(std::chrono::steady_clock::now() - steady_at_start_);
}

}  // namespace reprise
