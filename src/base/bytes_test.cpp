#include "base/bytes.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/random.h"

namespace reprise {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

std::string varint(std::uint64_t value) {
  std::string out;
  ByteWriter(out).varint(value);
  return out;
}

TEST(BigEndian, OrdersBytesAsItOrdersNumbers) {
  SeededRandom random(1);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t a = random.next_u64() >> random.below(64);
    const std::uint64_t b = random.next_u64() >> random.below(64);
    std::string a_bytes;
    std::string b_bytes;
    append_big_endian(a_bytes, a);
    append_big_endian(b_bytes, b);
    ASSERT_EQ(a < b, a_bytes < b_bytes) << a << " and " << b;
    ASSERT_EQ(read_big_endian<std::uint64_t>(a_bytes.data()), a);
  }
}

TEST(BigEndian, WritesEachWidthWhole) {
  std::string out;
  append_big_endian(out, std::uint8_t{0xFE});
  append_big_endian(out, std::uint16_t{0x0102});
  append_big_endian(out, std::uint32_t{0x03040506});
  EXPECT_EQ(out, "\xFE\x01\x02\x03\x04\x05\x06");
  EXPECT_EQ(read_big_endian<std::uint8_t>(out.data()), 0xFE);
  EXPECT_EQ(read_big_endian<std::uint16_t>(out.data() + 1), 0x0102);
  EXPECT_EQ(read_big_endian<std::uint32_t>(out.data() + 3), 0x03040506U);
}

TEST(ByteReader, ReadsWhatByteWriterWrote) {
  std::string out;
  ByteWriter writer(out);
  writer.fixed(std::uint32_t{0xDEADBEEF});
  writer.fixed(std::int64_t{-5});
  writer.varint(300);
  writer.bytes("payload");
  writer.bytes("");
  ByteReader reader(out);
  EXPECT_EQ(reader.fixed<std::uint32_t>(), 0xDEADBEEF);
  EXPECT_EQ(reader.fixed<std::int64_t>(), -5);
  EXPECT_EQ(reader.varint(), 300U);
  EXPECT_EQ(reader.bytes(), "payload");
  EXPECT_FALSE(reader.done());
  EXPECT_EQ(reader.bytes(), "");
  EXPECT_TRUE(reader.done());
}

TEST(ByteReader, FixedIsLittleEndian) {
  std::string out;
  ByteWriter(out).fixed(std::uint32_t{0x01020304});
  EXPECT_EQ(out, "\x04\x03\x02\x01");
}

TEST(Varint, TakesOneToTenBytes) {
  EXPECT_EQ(varint(0).size(), 1U);
  EXPECT_EQ(varint(127).size(), 1U);
  EXPECT_EQ(varint(128).size(), 2U);
  EXPECT_EQ(varint(kMax).size(), 10U);
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, kMax}) {
    const std::string bytes = varint(value);
    ByteReader reader(bytes);
    EXPECT_EQ(reader.varint(), value);
    EXPECT_TRUE(reader.done());
  }
}

TEST(Varint, RefusesMoreThan64Bits) {
  const std::string nine(9, '\xFF');
  ByteReader fits(std::string_view("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 10));
  EXPECT_EQ(fits.varint(), kMax);
  EXPECT_FALSE(fits.failed());
  for (const std::string& bytes :
       {nine + '\x02', nine + '\x81' + '\x00', std::string(20, '\xFF')}) {
    ByteReader reader(bytes);
    EXPECT_EQ(reader.varint(), 0U);
    EXPECT_TRUE(reader.failed());
  }
}

TEST(ByteReader, EveryTruncationFails) {
  std::string out;
  ByteWriter writer(out);
  writer.fixed(std::uint64_t{1});
  writer.varint(100'000);
  writer.bytes("abc");
  for (std::size_t size = 0; size < out.size(); ++size) {
    ByteReader reader(std::string_view(out).substr(0, size));
    reader.fixed<std::uint64_t>();
    reader.varint();
    reader.bytes();
    EXPECT_TRUE(reader.failed()) << size << " bytes";
    EXPECT_FALSE(reader.done());
  }
}

TEST(ByteReader, LengthBeyondTheEndFails) {
  for (const std::uint64_t length : {std::uint64_t{4}, std::uint64_t{1} << 40, kMax}) {
    const std::string bytes = varint(length) + "abc";
    ByteReader reader(bytes);
    EXPECT_EQ(reader.bytes(), "");
    EXPECT_TRUE(reader.failed());
  }
}

TEST(ByteReader, YieldsNothingAfterAFailure) {
  const std::string bytes = varint(99) + "abcdefgh";
  ByteReader reader(bytes);
  reader.bytes();
  ASSERT_TRUE(reader.failed());
  EXPECT_EQ(reader.fixed<std::uint8_t>(), 0);
  EXPECT_EQ(reader.varint(), 0U);
  EXPECT_EQ(reader.bytes(), "");
  EXPECT_EQ(reader.rest(), "");
  EXPECT_FALSE(reader.done());
}

TEST(ByteReader, SurvivesRandomInput) {
  SeededRandom random(2);
  for (int i = 0; i < 20'000; ++i) {
    std::string in(random.below(40), '\0');
    for (char& c : in) c = static_cast<char>(random.next_u64());
    const std::vector<char> exact(in.begin(), in.end());  // so that ASan sees a read past the end
    ByteReader reader(std::string_view(exact.data(), exact.size()));
    while (!reader.failed() && !reader.rest().empty()) {
      switch (random.below(3)) {
        case 0:
          reader.fixed<std::uint32_t>();
          break;
        case 1:
          reader.varint();
          break;
        default:
          ASSERT_LE(reader.bytes().size(), in.size());
      }
    }
  }
}

}  // namespace
}  // namespace reprise
