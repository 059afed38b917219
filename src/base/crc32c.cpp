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
__attribute__((target("sse4.2"))) std::uint32_t crc32c_hardware(std::string_view bytes,
                                                                std::uint32_t seed) {
  std::uint64_t crc = ~seed;
  const char* next = bytes.data();
  std::size_t left = bytes.size();
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
