#include "base/ulid.h"

#include <algorithm>
#include <chrono>

namespace reprise {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr std::size_t kTimeBytes = 6;
constexpr std::int64_t kLastMillisecond = (std::int64_t{1} << 48) - 1;
constexpr unsigned kBitsPerDigit = 5;
// 26 digits have 130 bits, two more than there are: the first digit has only three.
constexpr char kLastFirstDigit = '7';

using Bits = unsigned __int128;

Bits to_bits(const Ulid& ulid) {
  Bits bits = 0;
  for (const std::uint8_t byte : ulid.bytes) bits = (bits << 8) | byte;
  return bits;
}

Ulid from_bits(Bits bits) {
  Ulid ulid;
  for (auto byte = ulid.bytes.rbegin(); byte != ulid.bytes.rend(); ++byte) {
    *byte = static_cast<std::uint8_t>(bits & 0xFF);
    bits >>= 8;
  }
  return ulid;
}

std::int64_t milliseconds_of(const Ulid& ulid) {
  std::int64_t time = 0;
  for (std::size_t i = 0; i < kTimeBytes; ++i) time = (time << 8) | ulid.bytes[i];
  return time;
}

}  // namespace

std::string encode_ulid(const Ulid& ulid) {
  std::string text(kUlidChars, '0');
  Bits bits = to_bits(ulid);
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit) {
    *digit = kDigits[static_cast<std::size_t>(bits & 31)];
    bits >>= kBitsPerDigit;
  }
  return text;
}

std::optional<Ulid> decode_ulid(std::string_view text) {
  if (text.size() != kUlidChars || text.front() > kLastFirstDigit) return std::nullopt;
  Bits bits = 0;
  for (const char c : text) {
    const char upper = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    const std::size_t digit = kDigits.find(upper);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << kBitsPerDigit) | digit;
  }
  return from_bits(bits);
}

Timestamp ulid_time(const Ulid& ulid) {
  return Timestamp(std::chrono::milliseconds(milliseconds_of(ulid)));
}

Ulid UlidSource::next(Timestamp now) {
  const std::int64_t time = std::clamp<std::int64_t>(
      std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch()).count(), 0,
      kLastMillisecond);
  if (last_ && time <= milliseconds_of(*last_)) {
    last_ = from_bits(to_bits(*last_) + 1);
  } else {
    const Bits high = static_cast<std::uint16_t>(random_.next_u64());
    last_ = from_bits((static_cast<Bits>(time) << 80) | (high << 64) | random_.next_u64());
  }
  return *last_;
}

}  // namespace reprise
