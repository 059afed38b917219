#include "base/time.h"

#include <fmt/format.h>

namespace reprise {

std::string format_timestamp(Timestamp time) {
  using namespace std::chrono;
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{floor<milliseconds>(time - day)};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

Timestamp add_saturating(Timestamp base, Duration by) {
  if (by > Duration::zero() && base > kNever - by) return kNever;
  return base + by;
}

}  // namespace reprise
