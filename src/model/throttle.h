// Throttle: how many jobs that name a key may be started in a time; by namespace and key.
#pragma once

#include <cstdint>
#include <string>

#include "base/rate.h"
#include "base/time.h"

namespace reprise {

inline constexpr std::size_t kMaxThrottles = 1000;  // of a namespace
inline constexpr std::uint32_t kMaxBurst = 1'000'000;

// Where one that names no burst has its limit: what comes in a second, at least 1.
std::uint32_t default_burst(const Rate& rate);

struct Throttle {
  std::string ns;
  std::string key;
  Rate rate;
  std::uint32_t burst = 1;
  Timestamp updated_at{};
  friend bool operator==(const Throttle&, const Throttle&) = default;
};

// How full its bucket is. In parts of a token: one is `rate.per` in microseconds, and `rate.count`
// come in each microsecond. So nothing is ever rounded.
struct ThrottleLevel {
  std::uint64_t parts = 0;
  Timestamp at{};  // as of then
  friend bool operator==(const ThrottleLevel&, const ThrottleLevel&) = default;
};

// As it is stored.
struct ThrottleRecord {
  Throttle throttle;
  ThrottleLevel level;
  friend bool operator==(const ThrottleRecord&, const ThrottleRecord&) = default;
};

// As people see it.
struct ThrottleStats {
  Throttle throttle;
  double tokens = 0;
  std::uint64_t waiting = 0;  // lines of jobs, of one fairness key and lane, that wait for it
};

}  // namespace reprise
