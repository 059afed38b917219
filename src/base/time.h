// Timestamp and Duration: the only time types. Microseconds, so that a throttle of 1000/s is exact.
// Text form of a Timestamp is ISO 8601 UTC with milliseconds: 2026-01-31T08:15:00.250Z.
#pragma once

#include <chrono>
#include <string>

namespace reprise {

using Duration = std::chrono::microseconds;
using Timestamp = std::chrono::sys_time<Duration>;

inline constexpr Timestamp kNever = Timestamp::max();

std::string format_timestamp(Timestamp time);

// base + by, or the largest Timestamp when that would overflow.
Timestamp add_saturating(Timestamp base, Duration by);

}  // namespace reprise
