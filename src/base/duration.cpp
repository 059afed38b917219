#include "base/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>

namespace reprise {
namespace {

using namespace std::chrono_literals;

struct Suffix {
  std::string_view text;
  Duration unit;
};

// Lower case only: to some people "5M" is five months, and reading it as minutes would be silent.
constexpr auto kSuffixes = std::to_array<Suffix>({
    {"us", 1us},
    {"microsecond", 1us},
    {"microseconds", 1us},
    {"ms", 1ms},
    {"millisecond", 1ms},
    {"milliseconds", 1ms},
    {"s", 1s},
    {"sec", 1s},
    {"secs", 1s},
    {"second", 1s},
    {"seconds", 1s},
    {"m", 1min},
    {"min", 1min},
    {"mins", 1min},
    {"minute", 1min},
    {"minutes", 1min},
    {"h", 1h},
    {"hr", 1h},
    {"hrs", 1h},
    {"hour", 1h},
    {"hours", 1h},
    {"d", 24h},
    {"day", 24h},
    {"days", 24h},
});

constexpr Duration kLongest = std::chrono::years(100);

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string_view take_while(std::string_view& text, bool (*wanted)(char)) {
  const auto end = std::ranges::find_if_not(text, wanted);
  const auto taken = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(taken.size());
  return taken;
}

void skip_spaces(std::string_view& text) {
  take_while(text, [](char c) { return c == ' '; });
}

// What stands where a suffix should: letters, or else the one character that has no place there.
std::string_view take_suffix(std::string_view& text) {
  if (const auto letters = take_while(text, is_letter); !letters.empty()) return letters;
  // A whole character, even of several bytes: the message must stay UTF-8.
  std::size_t size = text.empty() ? 0 : 1;
  while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) ++size;
  const auto taken = text.substr(0, size);
  text.remove_prefix(size);
  return taken;
}

// Reads one duration, front to back.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), rest_(text) {}

  Result<Duration> parse();

 private:
  struct Number {
    std::uint64_t whole = 0;
    double fraction = 0;
  };

  std::optional<Error> take_number(Number& number);
  std::optional<Error> take_unit(Duration& unit);
  std::optional<Error> add(const Number& number, Duration unit);
  Error error(std::string_view problem) const {
    return Error{Errc::invalid_field, fmt::format("{} in '{}'", problem, text_)};
  }
  Error too_long() const {
    return Error{Errc::invalid_field, fmt::format("'{}' is more than 100 years", text_)};
  }

  std::string_view text_;
  std::string_view rest_;
  Duration total_{};
  Duration last_unit_ = Duration::max();
};

std::optional<Error> Parser::take_number(Number& number) {
  const auto digits = take_while(rest_, is_digit);
  if (digits.empty()) {
    return Error{
        Errc::invalid_field,
        fmt::format("'{}' is not a duration: write a number and a unit, like 30s or 1h30m", text_)};
  }
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number.whole);
  if (parsed.ec != std::errc{}) return too_long();
  if (!rest_.starts_with('.')) return std::nullopt;
  const char* point = rest_.data();
  rest_.remove_prefix(1);
  const auto decimals = take_while(rest_, is_digit);
  if (decimals.empty()) return error("no digit after the point");
  // A double is exact enough: a microsecond is the 1e-11th part of a day. Underflow leaves 0.
  std::from_chars(point, decimals.data() + decimals.size(), number.fraction);
  return std::nullopt;
}

std::optional<Error> Parser::take_unit(Duration& unit) {
  if (rest_.empty()) {
    if (last_unit_ != Duration::max()) return error("the last number has no unit");
    unit = 1s;
    return std::nullopt;
  }
  const auto suffix = take_suffix(rest_);
  const auto* row = std::ranges::find(kSuffixes, suffix, &Suffix::text);
  if (row == kSuffixes.end()) {
    return Error{
        Errc::invalid_field,
        fmt::format("unknown duration suffix '{}' in '{}': use ms, s, m, h or d", suffix, text_)};
  }
  unit = row->unit;
  if (unit >= last_unit_) return error("units must go from large to small, each once,");
  return std::nullopt;
}

std::optional<Error> Parser::add(const Number& number, Duration unit) {
  // Dividing cannot overflow, multiplying could.
  const auto whole_max = static_cast<std::uint64_t>(kLongest / unit);
  if (number.whole > whole_max) return too_long();
  const auto fraction = Duration(std::llround(number.fraction * static_cast<double>(unit.count())));
  total_ += unit * static_cast<std::int64_t>(number.whole) + fraction;
  if (total_ > kLongest) return too_long();
  return std::nullopt;
}

Result<Duration> Parser::parse() {
  skip_spaces(rest_);
  if (rest_.empty()) {
    return Error{Errc::invalid_field, "a duration is missing: write one like 30s or 1h30m"};
  }
  if (rest_.starts_with('-')) {
    return Error{Errc::invalid_field, fmt::format("a duration cannot be negative: '{}'", text_)};
  }
  while (!rest_.empty()) {
    Number number;
    Duration unit{};
    if (auto failed = take_number(number)) return *failed;
    skip_spaces(rest_);
    if (auto failed = take_unit(unit)) return *failed;
    if (auto failed = add(number, unit)) return *failed;
    last_unit_ = unit;
    skip_spaces(rest_);
  }
  return total_;
}

// `microseconds` in units of `unit`, whose fraction has `decimals` digits at most: "1.5s".
std::string decimal(std::uint64_t microseconds, std::uint64_t unit, int decimals,
                    std::string_view suffix) {
  std::string text = fmt::format("{}", microseconds / unit);
  if (const std::uint64_t rest = microseconds % unit; rest != 0) {
    text += fmt::format(".{:0{}}", rest, decimals);
    text.erase(text.find_last_not_of('0') + 1);
  }
  return text.append(suffix);
}

std::string seconds_text(std::uint64_t microseconds) {
  if (microseconds >= 1'000'000) return decimal(microseconds, 1'000'000, 6, "s");
  if (microseconds >= 1'000) return decimal(microseconds, 1'000, 3, "ms");
  return fmt::format("{}us", microseconds);
}

// Days, hours and minutes that are not zero, then the seconds with their fraction.
std::string join_units(Duration duration, std::string_view separator) {
  constexpr auto kLargeUnits = std::to_array<Suffix>({{"d", 24h}, {"h", 1h}, {"m", 1min}});
  if (duration == Duration::zero()) return "0s";
  const bool negative = duration < Duration::zero();
  // Unsigned, since -min() does not exist.
  auto rest = static_cast<std::uint64_t>(duration.count());
  if (negative) rest = 0 - rest;
  std::string text;
  const auto append = [&](std::string_view part) {
    if (!text.empty()) text.append(separator);
    text.append(part);
  };
  for (const auto& [suffix, unit] : kLargeUnits) {
    const auto size = static_cast<std::uint64_t>(unit.count());
    if (rest >= size) append(fmt::format("{}{}", rest / size, suffix));
    rest %= size;
  }
  if (rest != 0) append(seconds_text(rest));
  return negative ? "-" + text : text;
}

// Below `limit`, people are shown multiples of `step`.
struct Precision {
  Duration limit;
  Duration step;
};

constexpr auto kPrecisions = std::to_array<Precision>({
    {1ms, 1us},
    {10ms, 100us},
    {1s, 1ms},
    {10s, 100ms},
    {1h, 1s},
    {24h, 1min},
});
constexpr Duration kCoarsestStep = 1h;

Duration round_to(Duration duration, Duration step) {
  const Duration rest = duration % step;
  return duration - rest + (rest * 2 >= step ? step : Duration::zero());
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) { return Parser(text).parse(); }

std::string format_duration(Duration duration) { return join_units(duration, ""); }

std::string humanize_duration(Duration duration) {
  // Beyond centuries nobody counts, and rounding must not overflow.
  const Duration size = std::clamp(duration, -kLongest * 100, kLongest * 100);
  if (size < Duration::zero()) return "-" + humanize_duration(-size);
  for (const auto& [limit, step] : kPrecisions) {
    // Rounded first: 59.7s is "1m", never "60s".
    if (const Duration rounded = round_to(size, step); rounded < limit) {
      return join_units(rounded, " ");
    }
  }
  return join_units(round_to(size, kCoarsestStep), " ");
}

}  // namespace reprise
