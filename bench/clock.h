// The one clock of the benchmark's programs: steady, in nanoseconds.
#pragma once

#include <chrono>

namespace reprise::bench {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Nanoseconds = std::chrono::nanoseconds;

inline Nanoseconds from_seconds(double seconds) {
  return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
}

inline double to_seconds(Nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

inline double to_microseconds(Nanoseconds duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

}  // namespace reprise::bench
