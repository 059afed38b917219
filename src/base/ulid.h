// Ulid: ids that sort by the time they were made (docs/spool.md): 48 bits of milliseconds, 80
// random ones, written as 26 characters of Crockford base32.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/random.h"
#include "base/time.h"

namespace reprise {

inline constexpr std::size_t kUlidChars = 26;

struct Ulid {
  std::array<std::uint8_t, 16> bytes{};  // big endian: they compare as the text does
  friend auto operator<=>(const Ulid&, const Ulid&) = default;
};

std::string encode_ulid(const Ulid& ulid);
// Any case, but no look-alikes (I, L, O, U). nullopt: not 26 such characters, or more than 128
// bits.
std::optional<Ulid> decode_ulid(std::string_view text);
Timestamp ulid_time(const Ulid& ulid);

// Each one is greater than the one before, also within a millisecond and when time runs backwards.
// Threads: one owner.
class UlidSource {
 public:
  // `random` must outlive it.
  explicit UlidSource(Random& random) : random_(random) {}
  Ulid next(Timestamp now);

 private:
  Random& random_;
  std::optional<Ulid> last_;
};

}  // namespace reprise
