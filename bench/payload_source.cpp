#include "payload_source.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <random>

#include "load_error.h"

namespace reprise::bench {
namespace {

// {"serial":"0123456789abcdef","due":"0123456789abcdef","text":"…"}
constexpr std::string_view kDue = R"(","due":")";
constexpr std::string_view kText = R"(","text":")";
constexpr std::string_view kClosing = R"("})";
constexpr std::size_t kHexChars = 16;
constexpr std::size_t kSerialAt = PayloadSource::kOpening.size();
constexpr std::size_t kDueAt = kSerialAt + kHexChars + kDue.size();
constexpr std::size_t kTextAt = kDueAt + kHexChars + kText.size();

constexpr unsigned kPoolBits = 22;
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void append_hex(std::string& out, std::uint64_t value) {
  std::array<char, kHexChars> digits{};
  for (std::size_t at = kHexChars; at-- > 0; value >>= 4)
    digits[at] = "0123456789abcdef"[value & 15];
  out.append(digits.data(), digits.size());
}

std::uint64_t read_hex(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + kHexChars, value, 16);
  return value;
}

}  // namespace

PayloadSource::PayloadSource(std::size_t payload_bytes) : payload_bytes_(payload_bytes) {
  constexpr std::size_t frame_bytes = kTextAt + kClosing.size();
  if (payload_bytes < frame_bytes) {
    throw LoadError(fmt::format("--payload-bytes: at least {}", frame_bytes));
  }
  text_bytes_ = payload_bytes - frame_bytes;
  std::mt19937_64 random(42);
  pool_.reserve((std::size_t{1} << kPoolBits) + text_bytes_ + 10);
  while (pool_.size() < (std::size_t{1} << kPoolBits) + text_bytes_) {
    std::uint64_t bits = random();
    for (int i = 0; i < 10; i++, bits >>= 6) pool_ += kAlphabet[bits & 63];
  }
}

std::string_view PayloadSource::text_of(std::uint64_t serial) const {
  // The golden ratio spreads neighbours over the pool: their texts do not overlap.
  const std::uint64_t at = (serial * 0x9E3779B97F4A7C15ULL) >> (64 - kPoolBits);
  return std::string_view(pool_).substr(at, text_bytes_);
}

void PayloadSource::append(std::string& out, const Stamp& stamp) const {
  out += kOpening;
  append_hex(out, stamp.serial);
  out += kDue;
  append_hex(out, static_cast<std::uint64_t>(stamp.due.time_since_epoch().count()));
  out += kText;
  out += text_of(stamp.serial);
  out += kClosing;
}

std::optional<Stamp> PayloadSource::check(std::string_view payload) const {
  if (payload.size() != payload_bytes_ || !payload.starts_with(kOpening) ||
      !payload.ends_with(kClosing)) {
    return std::nullopt;
  }
  const std::uint64_t serial = read_hex(payload.substr(kSerialAt));
  const auto due = static_cast<std::int64_t>(read_hex(payload.substr(kDueAt)));
  if (payload.substr(kTextAt, text_bytes_) != text_of(serial)) return std::nullopt;
  return Stamp{serial, TimePoint(Nanoseconds(due))};
}

}  // namespace reprise::bench
