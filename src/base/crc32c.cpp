#include "base/crc32c.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace reprise {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // reflected

// kTables[n][b]: the checksum of byte b followed by n zero bytes, so that eight bytes take eight
// independent lookups.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t n = 1; n < tables.size(); ++n) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[n - 1][byte];
      tables[n][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}
constexpr Tables kTables = make_tables();

// The first byte in the lowest bits, which is the order both versions work in.
std::uint64_t load_word(const char* from) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

#if defined(__x86_64__)
// What a checksum becomes when a stretch of zeros follows. It is linear, so a table for each byte
// of it, found by running zeros through once, is enough.
class Shift {
 public:
  explicit Shift(std::size_t zeros) {
    std::array<std::uint32_t, 32> of_bit{};
    for (std::size_t bit = 0; bit < of_bit.size(); ++bit) {
      std::uint32_t crc = 1U << bit;
      for (std::size_t i = 0; i < zeros; ++i) crc = (crc >> 8) ^ kTables[0][crc & 0xFF];
      of_bit[bit] = crc;
    }
    for (std::size_t byte = 0; byte < tables_.size(); ++byte) {
      for (std::size_t value = 0; value < 256; ++value) {
        for (std::size_t bit = 0; bit < 8; ++bit) {
          if ((value >> bit & 1) != 0) tables_[byte][value] ^= of_bit[byte * 8 + bit];
        }
      }
    }
  }
  std::uint64_t operator()(std::uint64_t crc) const {
    return tables_[0][crc & 0xFF] ^ tables_[1][crc >> 8 & 0xFF] ^ tables_[2][crc >> 16 & 0xFF] ^
           tables_[3][crc >> 24 & 0xFF];
  }

 private:
  std::array<std::array<std::uint32_t, 256>, 4> tables_{};
};

// The instruction takes three cycles and one can be begun in each, so three stretches are worked on
// at once and put together afterwards: as often as three of them fit.
template <std::size_t kStretch>
__attribute__((target("sse4.2"))) std::uint64_t crc32c_of_thirds(std::uint64_t crc,
                                                                 const char*& next,
                                                                 std::size_t& left) {
  static const Shift over_one(kStretch);
  static const Shift over_two(2 * kStretch);
  for (; left >= 3 * kStretch; left -= 3 * kStretch, next += 3 * kStretch) {
    std::uint64_t second = 0;
    std::uint64_t third = 0;
    for (std::size_t i = 0; i < kStretch; i += 8) {
      crc = _mm_crc32_u64(crc, load_word(next + i));
      second = _mm_crc32_u64(second, load_word(next + kStretch + i));
      third = _mm_crc32_u64(third, load_word(next + 2 * kStretch + i));
    }
    crc = over_two(crc) ^ over_one(second) ^ third;
  }
  return crc;
}

__attribute__((target("sse4.2"))) std::uint32_t crc32c_hardware(std::string_view bytes,
                                                                std::uint32_t seed) {
  std::uint64_t crc = ~seed;
  const char* next = bytes.data();
  std::size_t left = bytes.size();
  constexpr std::size_t kLeastBytes = std::size_t{3} * 128;
  if (left >= kLeastBytes) {
    crc = crc32c_of_thirds<512>(crc, next, left);  // a batch
    crc = crc32c_of_thirds<128>(crc, next, left);  // a job
  }
  for (; left >= 8; left -= 8, next += 8) {
    crc = _mm_crc32_u64(crc, load_word(next));
  }
  auto crc_of_tail = static_cast<std::uint32_t>(crc);
  for (; left > 0; --left, ++next) {
    crc_of_tail = _mm_crc32_u8(crc_of_tail, static_cast<unsigned char>(*next));
  }
  return ~crc_of_tail;
}
#endif

using Function = std::uint32_t (*)(std::string_view, std::uint32_t);

Function choose_function() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return crc32c_hardware;
#endif
  return internal::crc32c_portable;
}

}  // namespace

namespace internal {

std::uint32_t crc32c_portable(std::string_view bytes, std::uint32_t seed) {
  std::uint32_t crc = ~seed;
  const char* next = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, next += 8) {
    const std::uint64_t word = load_word(next) ^ crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][(word >> (8 * i)) & 0xFF];
  }
  for (; left > 0; --left, ++next) {
    crc = (crc >> 8) ^ kTables[0][(crc ^ static_cast<unsigned char>(*next)) & 0xFF];
  }
  return ~crc;
}

}  // namespace internal

std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed) {
  // Local, so that a checksum taken while another file's globals are built works too.
  static const Function function = choose_function();
  return function(bytes, seed);
}

}  // namespace reprise
