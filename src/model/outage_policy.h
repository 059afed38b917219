// OutagePolicy: when a queue stops handing out jobs because nearly all of them fail
// (docs/scheduling.md).
#pragma once

#include <cstdint>

#include "base/time.h"

namespace reprise {

struct OutagePolicy {
  // Whole parts, as with FetchPolicy: of the attempts in the window, so many millionths.
  std::uint32_t failure_rate_ppm = 500'000;
  Duration window = std::chrono::minutes(1);
  std::uint32_t min = 20;
  Duration pause = std::chrono::seconds(30);
  std::uint32_t canaries = 1;
  friend bool operator==(const OutagePolicy&, const OutagePolicy&) = default;

  static constexpr Duration kShortestWindow = std::chrono::seconds(1);
  static constexpr Duration kLongestWindow = std::chrono::hours(1);
  static constexpr std::uint32_t kMostMin = 1'000'000;
  static constexpr Duration kShortestPause = std::chrono::milliseconds(100);
  static constexpr Duration kLongestPause = std::chrono::hours(24);
  static constexpr std::uint32_t kMostCanaries = 1'000;
};

}  // namespace reprise
