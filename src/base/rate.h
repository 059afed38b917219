// Rate: so many in so long. The one parser for rates, used by the API and the command line alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace reprise {

// Kept as it was written: 60/m and 1/s pace the same and are not equal.
// Invariant of one that was parsed: count > 0, per > 0, at most kFastestPerSecond.
struct Rate {
  // One in a microsecond, the smallest step of a Duration.
  static constexpr std::uint64_t kFastestPerSecond = 1'000'000;

  std::uint64_t count = 1;
  Duration per = std::chrono::seconds(1);

  double per_second() const;
  // From one to the next, rounded up: who waits so long never goes faster than the rate. Over a
  // long run that is a little slow where it does not divide; allowed_in() is exact.
  Duration interval() const;
  // How many may have been done when `elapsed` has passed since the first was allowed to begin.
  std::uint64_t allowed_in(Duration elapsed) const;

  friend bool operator==(const Rate&, const Rate&) = default;
};

// "100/s", "30/m", "1000/h", "5/d", "10/30s": a whole number, a slash, and what parse_duration
// reads or only its unit.
// The error is Errc::invalid_field and says what was wrong with which text; callers prefix the
// field's name.
Result<Rate> parse_rate(std::string_view text);

// The shortest text that parse_rate reads back: "100/s", "10/30s".
std::string format_rate(const Rate& rate);

}  // namespace reprise
