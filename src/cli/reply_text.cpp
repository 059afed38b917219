#include "cli/reply_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/duration.h"
#include "base/text.h"

namespace reprise::cli {
namespace {

// The digits at `at`, or -1.
int digits_at(std::string_view text, std::size_t at, std::size_t count) {
  int value = 0;
  const char* const begin = text.data() + at;
  const auto parsed = std::from_chars(begin, begin + count, value);
  return parsed.ec == std::errc() && parsed.ptr == begin + count ? value : -1;
}

Duration clamped(Duration duration) { return std::max(duration, Duration::zero()); }

Style style_of(std::string_view status) {
  if (status == "active") return Style::cyan;
  if (status == "failed") return Style::yellow;
  if (status == "dead") return Style::red;
  if (status == "scheduled") return Style::dim;
  return Style::plain;
}

}  // namespace

std::string text_of(JsonView value) {
  if (value.is_null()) return {};
  return value.is_string() ? value.string_or("") : std::string(value.raw());
}

std::optional<Timestamp> parse_timestamp(std::string_view text) {
  constexpr std::string_view kShape = "0000-00-00T00:00:00.000Z";
  if (text.size() != kShape.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool fits = kShape[i] == '0' ? text[i] >= '0' && text[i] <= '9' : text[i] == kShape[i];
    if (!fits) return std::nullopt;
  }
  namespace chrono = std::chrono;
  const chrono::year_month_day date{chrono::year(digits_at(text, 0, 4)),
                                    chrono::month(static_cast<unsigned>(digits_at(text, 5, 2))),
                                    chrono::day(static_cast<unsigned>(digits_at(text, 8, 2)))};
  if (!date.ok()) return std::nullopt;
  return chrono::sys_days(date) + chrono::hours(digits_at(text, 11, 2)) +
         chrono::minutes(digits_at(text, 14, 2)) + chrono::seconds(digits_at(text, 17, 2)) +
         chrono::milliseconds(digits_at(text, 20, 3));
}

Timestamp wall_now() {
  return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
}

std::string age_text(JsonView value, Timestamp now) {
  const auto time = parse_timestamp(value.string_or(""));
  return time ? humanize_duration(clamped(now - *time)) : std::string();
}

std::string until_text(JsonView value, Timestamp now) {
  const auto time = parse_timestamp(value.string_or(""));
  return time ? humanize_duration(clamped(*time - now)) : std::string();
}

std::string seconds_text(JsonView value) {
  const auto seconds = value.number();
  if (!seconds) return {};
  // Beyond a century nothing sensible was meant, and the conversion would overflow.
  const double bounded = std::clamp(*seconds, 0.0, 3.2e9);
  return humanize_duration(
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(bounded)));
}

std::string bytes_text(JsonView value) {
  const auto bytes = value.unsigned_integer();
  return bytes ? format_bytes(*bytes) : text_of(value);
}

std::string rate_text(JsonView value) {
  const auto rate = value.number();
  return rate ? fmt::format("{:.1f}", *rate) : std::string();
}

std::string percent_text(JsonView share) {
  const auto part = share.number();
  return part ? fmt::format("{:.0f}%", *part * 100) : std::string();
}

Cell payload_cell(JsonView job) {
  if (const auto bytes = job["payload_base64"]; bytes.present()) {
    return Cell("base64:" + bytes.string_or(""));
  }
  return Cell::json(job["payload"].raw());
}

Cell status_cell(JsonView status) {
  const std::string text = text_of(status);
  return Cell(text, style_of(text));
}

}  // namespace reprise::cli
