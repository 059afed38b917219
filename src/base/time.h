// Timestamp and Duration: the only time types. Microseconds, so that a throttle of 1000/s is exact.
// Text form of a Timestamp is ISO 8601 UTC with milliseconds: 2026-01-31T08:15:00.250Z.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace reprise {

using Duration = std::chrono::microseconds;
using Timestamp = std::chrono::sys_time<Duration>;

inline constexpr Timestamp kNever = Timestamp::max();

std::string format_timestamp(Timestamp time);

// ISO 8601: a date, 'T' or a blank, a time of day with or without seconds and a fraction of them,
// and "Z" or an offset (+02:00, +0200, +02); without either it is UTC. Digits beyond microseconds
// are dropped. nullopt: anything else.
std::optional<Timestamp> parse_timestamp(std::string_view text);

// base + by, or the largest Timestamp when that would overflow.
Timestamp add_saturating(Timestamp base, Duration by);

}  // namespace reprise
