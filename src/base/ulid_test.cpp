#include "base/ulid.h"

#include <gtest/gtest.h>

#include <set>

namespace reprise {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// The example of the specification: this time has this text.
const Timestamp kTime{milliseconds(1469918176385)};
constexpr std::string_view kTimeText = "01ARYZ6S41";

// Gives the same number for ever.
class FixedRandom final : public Random {
 public:
  explicit FixedRandom(std::uint64_t value) : value_(value) {}
  std::uint64_t next_u64() override { return value_; }

 private:
  std::uint64_t value_;
};

TEST(Ulid, BeginsWithItsTimeAsTheSpecificationWritesIt) {
  SeededRandom random(1);
  const Ulid ulid = UlidSource(random).next(kTime);
  EXPECT_EQ(encode_ulid(ulid).substr(0, 10), kTimeText);
  EXPECT_EQ(ulid_time(ulid), kTime);
}

TEST(Ulid, TextComesBackAsTheSameUlid) {
  SeededRandom random(1);
  for (int i = 0; i < 1000; ++i) {
    Ulid ulid;
    for (auto& byte : ulid.bytes) byte = static_cast<std::uint8_t>(random.next_u64());
    const std::string text = encode_ulid(ulid);
    ASSERT_EQ(text.size(), kUlidChars);
    ASSERT_EQ(decode_ulid(text), ulid) << text;
  }
}

TEST(Ulid, TextSortsAsTheBytesDo) {
  SeededRandom random(2);
  for (int i = 0; i < 1000; ++i) {
    Ulid a;
    Ulid b;
    for (auto& byte : a.bytes) byte = static_cast<std::uint8_t>(random.next_u64());
    for (auto& byte : b.bytes) byte = static_cast<std::uint8_t>(random.next_u64());
    ASSERT_EQ(a < b, encode_ulid(a) < encode_ulid(b));
  }
}

TEST(Ulid, IsReadInAnyCase) {
  EXPECT_EQ(decode_ulid("01arz3ndektsv4rrffq69g5fav"), decode_ulid("01ARZ3NDEKTSV4RRFFQ69G5FAV"));
  EXPECT_TRUE(decode_ulid("01arz3ndektsv4rrffq69g5fav"));
}

TEST(Ulid, TheLargestHas128Bits) {
  Ulid largest;
  largest.bytes.fill(0xFF);
  EXPECT_EQ(decode_ulid("7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), largest);
  EXPECT_FALSE(decode_ulid("80000000000000000000000000"));
  EXPECT_FALSE(decode_ulid("ZZZZZZZZZZZZZZZZZZZZZZZZZZ"));
}

TEST(Ulid, OtherTextIsNone) {
  EXPECT_FALSE(decode_ulid(""));
  EXPECT_FALSE(decode_ulid("01ARZ3NDEKTSV4RRFFQ69G5FA"));
  EXPECT_FALSE(decode_ulid("01ARZ3NDEKTSV4RRFFQ69G5FAVV"));
  for (const char c : {'I', 'L', 'O', 'U', 'i', 'l', 'o', 'u', '-', ' ', '\0', '\xC3'}) {
    std::string text = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    text[20] = c;
    EXPECT_FALSE(decode_ulid(text)) << c;
  }
}

TEST(UlidSource, EachIsGreaterWithinAMillisecond) {
  SeededRandom random(3);
  UlidSource source(random);
  Ulid last = source.next(kTime);
  for (int i = 0; i < 1000; ++i) {
    const Ulid next = source.next(kTime + microseconds(i % 1000));
    ASSERT_LT(last, next);
    ASSERT_EQ(ulid_time(next), kTime);
    last = next;
  }
}

TEST(UlidSource, EachIsGreaterWhenTimeRunsBackwards) {
  SeededRandom random(4);
  UlidSource source(random);
  const Ulid first = source.next(kTime);
  const Ulid second = source.next(kTime - std::chrono::hours(1));
  EXPECT_LT(first, second);
  EXPECT_LT(second, source.next(kTime + milliseconds(1)));
}

TEST(UlidSource, ARandomPartAtItsEndCarriesIntoTheTime) {
  FixedRandom random(~std::uint64_t{0});
  UlidSource source(random);
  const Ulid first = source.next(kTime);
  const Ulid second = source.next(kTime);
  EXPECT_LT(first, second);
  EXPECT_EQ(ulid_time(second), kTime + milliseconds(1));
}

TEST(UlidSource, TimesThatDoNotFitAreTheNearestThatDo) {
  SeededRandom random(5);
  EXPECT_EQ(ulid_time(UlidSource(random).next(Timestamp(milliseconds(-5)))), Timestamp());
  EXPECT_EQ(ulid_time(UlidSource(random).next(kNever)),
            Timestamp(milliseconds((std::int64_t{1} << 48) - 1)));
}

TEST(UlidSource, TwoSourcesAtOneMomentDiffer) {
  SystemRandom random;
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(encode_ulid(UlidSource(random).next(kTime)));
  EXPECT_EQ(seen.size(), 1000U);
}

}  // namespace
}  // namespace reprise
