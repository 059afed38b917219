#include "base/random.h"

#include <gtest/gtest.h>

#include <set>

namespace reprise {
namespace {

TEST(SeededRandom, RepeatsWithTheSameSeed) {
  SeededRandom a(7);
  SeededRandom b(7);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(a.next_u64(), b.next_u64());
}

TEST(SeededRandom, DiffersWithAnotherSeed) {
  SeededRandom a(7);
  SeededRandom b(8);
  EXPECT_NE(a.next_u64(), b.next_u64());
}

TEST(SeededRandom, BelowStaysBelow) {
  SeededRandom random(9);
  for (int i = 0; i < 1000; ++i) ASSERT_LT(random.below(10), 10U);
}

TEST(SystemRandom, DoesNotRepeatAcrossItsBlocks) {
  SystemRandom random;
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(seen.insert(random.next_u64()).second);
}

}  // namespace
}  // namespace reprise
