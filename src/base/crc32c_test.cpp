#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace reprise {
namespace {

std::string counting(int first, int step) {
  std::string bytes;
  for (int i = 0; i < 32; ++i) bytes.push_back(static_cast<char>(first + i * step));
  return bytes;
}

TEST(Crc32c, MatchesKnownVectors) {
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  // RFC 3720, B.4.
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  EXPECT_EQ(crc32c(counting(0, 1)), 0x46DD794EU);
  EXPECT_EQ(crc32c(counting(31, -1)), 0x113FDB5CU);
}

TEST(Crc32c, PortableMatchesKnownVectors) {
  EXPECT_EQ(internal::crc32c_portable("", 0), 0U);
  EXPECT_EQ(internal::crc32c_portable("123456789", 0), 0xE3069283U);
  EXPECT_EQ(internal::crc32c_portable(counting(0, 1), 0), 0x46DD794EU);
}

TEST(Crc32c, HardwareEqualsPortable) {
  SeededRandom random(1);
  std::string bytes(4096, '\0');
  for (char& c : bytes) c = static_cast<char>(random.next_u64());
  for (int i = 0; i < 5000; ++i) {
    // Any alignment and any length, so that heads and tails of words occur.
    const std::size_t start = random.below(16);
    const auto part = std::string_view(bytes).substr(start, random.below(i < 4000 ? 40 : 4080));
    const auto seed = static_cast<std::uint32_t>(random.next_u64());
    ASSERT_EQ(crc32c(part, seed), internal::crc32c_portable(part, seed)) << part.size();
  }
}

TEST(Crc32c, SeedContinuesAChecksum) {
  const std::string_view text = "a record in several pieces";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32c(text.substr(cut), crc32c(text.substr(0, cut))), crc32c(text));
  }
}

TEST(Crc32c, SeesEveryFlippedBit) {
  std::string bytes = "some stored record";
  const std::uint32_t before = crc32c(bytes);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    EXPECT_NE(crc32c(bytes), before);
    bytes[bit / 8] ^= static_cast<char>(1 << (bit % 8));
  }
}

}  // namespace
}  // namespace reprise
