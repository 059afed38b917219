#include "base/rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/duration.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
__extension__ using Wide = unsigned __int128;

// Written without their 1.
struct Unit {
  std::string_view text;
  Duration size;
};
constexpr auto kUnits = std::to_array<Unit>({{"s", 1s}, {"m", 1min}, {"h", 1h}, {"d", 24h}});

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

Error refused(std::string problem) { return {Errc::invalid_field, std::move(problem)}; }

Error no_rate(std::string_view text) {
  return refused(fmt::format("'{}' is no rate; write 100/s, 30/m or 1000/h", text));
}

Error too_fast(std::string_view text) {
  return refused(fmt::format("'{}' is more than {}/s", text, Rate::kFastestPerSecond));
}

// What is wrong with text that should be a whole number and is not.
Error no_count(std::string_view text, std::string_view count) {
  if (count.starts_with('-')) return refused(fmt::format("a rate cannot be negative: '{}'", text));
  const bool fraction = !count.empty() && is_digit(count.front()) &&
                        std::ranges::all_of(count, [](char c) { return is_digit(c) || c == '.'; });
  if (!fraction) return no_rate(text);
  return refused(
      fmt::format("'{}' needs a whole number before the slash; write 30/m, not 0.5/s", text));
}

Result<std::uint64_t> parse_count(std::string_view text, std::string_view digits) {
  if (digits.empty() || !std::ranges::all_of(digits, is_digit)) return no_count(text, digits);
  std::uint64_t count = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (parsed.ec != std::errc{}) return too_fast(text);
  if (count == 0) return refused(fmt::format("a rate cannot be zero: '{}'", text));
  return count;
}

Result<Duration> parse_per(std::string_view text, std::string_view per) {
  if (per.empty()) return no_rate(text);
  const bool only_unit = is_letter(per.front());
  const auto parsed = parse_duration(only_unit ? fmt::format("1{}", per) : std::string(per));
  if (!parsed) {
    // Its message would quote the 1 that nobody wrote.
    return only_unit ? no_rate(text) : parsed.error();
  }
  if (*parsed == Duration::zero()) {
    return refused(fmt::format("a rate needs a time longer than zero: '{}'", text));
  }
  return *parsed;
}

Wide microseconds(Duration duration) { return static_cast<std::uint64_t>(duration.count()); }

bool is_too_fast(const Rate& rate) {
  return Wide{rate.count} * microseconds(1s) >
         Wide{Rate::kFastestPerSecond} * microseconds(rate.per);
}

}  // namespace

double Rate::per_second() const {
  return static_cast<double>(count) / std::chrono::duration<double>(per).count();
}

Duration Rate::interval() const {
  REPRISE_CHECK(count > 0 && per > Duration::zero());
  return Duration(static_cast<std::int64_t>((microseconds(per) + count - 1) / count));
}

std::uint64_t Rate::allowed_in(Duration elapsed) const {
  REPRISE_CHECK(count > 0 && per > Duration::zero());
  if (elapsed < Duration::zero()) return 0;
  // The first may go at once, each next one when its share of the time has passed.
  const Wide allowed = Wide{count} * microseconds(elapsed) / microseconds(per) + 1;
  return static_cast<std::uint64_t>(
      std::min<Wide>(allowed, std::numeric_limits<std::uint64_t>::max()));
}

Result<Rate> parse_rate(std::string_view text) {
  if (trimmed(text).empty()) return refused("a rate is missing: write one like 100/s or 30/m");
  const std::size_t slash = text.find('/');
  if (slash == text.npos) return no_rate(text);
  const auto count = parse_count(text, trimmed(text.substr(0, slash)));
  if (!count) return count.error();
  const auto per = parse_per(text, trimmed(text.substr(slash + 1)));
  if (!per) return per.error();
  const Rate rate{.count = *count, .per = *per};
  if (is_too_fast(rate)) return too_fast(text);
  return rate;
}

std::string format_rate(const Rate& rate) {
  const auto* unit = std::ranges::find(kUnits, rate.per, &Unit::size);
  if (unit != kUnits.end()) return fmt::format("{}/{}", rate.count, unit->text);
  return fmt::format("{}/{}", rate.count, format_duration(rate.per));
}

}  // namespace reprise
