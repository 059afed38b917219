#include "base/time.h"

#include <fmt/format.h>

namespace reprise {
namespace {

// Takes the parts of a time off the front of a text. The first that is not there sticks.
class TimeReader {
 public:
  explicit TimeReader(std::string_view text) : text_(text) {}

  // A number of exactly `digits` digits, at most `most`.
  int number(std::size_t digits, int most) {
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) value = value * 10 + digit();
    ok_ = ok_ && value <= most;
    return value;
  }

  // Microseconds of a fraction of a second, which has one digit or more.
  int fraction() {
    int micros = 0;
    int weight = 100'000;
    do {
      micros += digit() * weight;
      weight /= 10;
    } while (ok_ && next_is_digit());
    return micros;
  }

  bool take_any(std::string_view characters) {
    if (text_.empty() || characters.find(text_.front()) == std::string_view::npos) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect_any(std::string_view characters) { ok_ = take_any(characters) && ok_; }
  bool next_is_digit() const {
    return !text_.empty() && text_.front() >= '0' && text_.front() <= '9';
  }

  bool at_end() const { return text_.empty(); }
  bool ok() const { return ok_; }

 private:
  int digit() {
    if (!next_is_digit()) {
      ok_ = false;
      return 0;
    }
    const int value = text_.front() - '0';
    text_.remove_prefix(1);
    return value;
  }

  std::string_view text_;
  bool ok_ = true;
};

std::optional<std::chrono::sys_days> read_date(TimeReader& in) {
  const std::chrono::year year(in.number(4, 9999));
  in.expect_any("-");
  const auto month = static_cast<unsigned>(in.number(2, 12));
  in.expect_any("-");
  const auto day = static_cast<unsigned>(in.number(2, 31));
  const std::chrono::year_month_day date = year / month / day;
  if (!in.ok() || !date.ok()) return std::nullopt;
  return std::chrono::sys_days(date);
}

Duration read_time_of_day(TimeReader& in) {
  Duration time = std::chrono::hours(in.number(2, 23));
  in.expect_any(":");
  time += std::chrono::minutes(in.number(2, 59));
  if (!in.take_any(":")) return time;
  time += std::chrono::seconds(in.number(2, 60));  // 60: a leap second
  if (in.take_any(".,")) time += Duration(in.fraction());
  return time;
}

// What is ahead of UTC.
Duration read_offset(TimeReader& in) {
  if (in.at_end() || in.take_any("Zz")) return Duration::zero();
  const bool behind = in.take_any("-");
  if (!behind) in.expect_any("+");
  Duration offset = std::chrono::hours(in.number(2, 23));
  if (in.take_any(":") || !in.at_end()) offset += std::chrono::minutes(in.number(2, 59));
  return behind ? -offset : offset;
}

}  // namespace

std::optional<Timestamp> parse_timestamp(std::string_view text) {
  TimeReader in(text);
  const auto date = read_date(in);
  if (!date) return std::nullopt;
  in.expect_any("Tt ");
  const Duration time = read_time_of_day(in);
  const Duration offset = read_offset(in);
  if (!in.ok() || !in.at_end()) return std::nullopt;
  return Timestamp(*date) + time - offset;
}

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
