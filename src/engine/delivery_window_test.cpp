#include "engine/delivery_window.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/random.h"
#include "support/fake_clock.h"
#include "support/seeds.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;

class DeliveryWindowTest : public testing::Test {
 protected:
  Timestamp now() const { return clock_.now(); }
  void add(const std::string& key, int count = 1) {
    for (int i = 0; i < count; ++i) window_.add(key, now());
  }
  std::uint64_t count_of(const std::string& key) {
    const auto sum = window_.sum(now());
    const auto found = sum.by_key.find(key);
    return found == sum.by_key.end() ? 0 : found->second;
  }

  test::FakeClock clock_;
  DeliveryWindow window_;
};

TEST_F(DeliveryWindowTest, CountsAMinute) {
  add("a", 3);
  add("b");
  EXPECT_EQ(window_.sum(now()).delivered, 4U);
  clock_.advance(55s);
  add("a");
  EXPECT_EQ(count_of("a"), 4U);
  EXPECT_EQ(count_of("b"), 1U);
  clock_.advance(5s);
  EXPECT_EQ(count_of("a"), 1U) << "what is older than a minute is over";
  EXPECT_EQ(window_.sum(now()).delivered, 1U);
  clock_.advance(1h);
  EXPECT_EQ(window_.sum(now()).delivered, 0U);
  EXPECT_TRUE(window_.sum(now()).by_key.empty());
}

TEST_F(DeliveryWindowTest, IsExactUpTo256KeysInASlice) {
  SeededRandom dice(1);
  std::map<std::string, std::uint64_t> exact;
  for (int slice = 0; slice < 12; ++slice) {
    // Other keys in each slice, so that there are more than 256 in all.
    for (int i = 0; i < 3'000; ++i) {
      const std::string key = std::to_string(slice * 100 + static_cast<int>(dice.below(256)));
      add(key);
      ++exact[key];
    }
    if (slice < 11) clock_.advance(5s);
  }
  const auto sum = window_.sum(now());
  EXPECT_EQ(sum.delivered, 36'000U);
  EXPECT_GT(sum.by_key.size(), 256U);
  EXPECT_EQ((std::map<std::string, std::uint64_t>(sum.by_key.begin(), sum.by_key.end())), exact);
}

// With more, a count is short by at most one 256th of all, and never too high, whatever the order.
TEST_F(DeliveryWindowTest, IsShortByAtMostOneIn256) {
  for (std::uint64_t seed = 1; seed <= test::seed_count(10); ++seed) {
    SeededRandom dice(seed);
    clock_.advance(1h);
    std::map<std::string, std::uint64_t> exact;
    const std::uint64_t keys = 257 + dice.below(2'000);
    for (int i = 0; i < 20'000; ++i) {
      // A few that are served often, as many others in turns as would wear them down, or at random.
      const std::string key = dice.below(3) == 0 ? "often" + std::to_string(dice.below(5))
                              : seed % 2 == 0    ? std::to_string(i % static_cast<int>(keys))
                                                 : std::to_string(dice.below(keys));
      add(key);
      ++exact[key];
      if (i % 4'000 == 0) clock_.advance(5s);
    }
    const auto sum = window_.sum(now());
    ASSERT_EQ(sum.delivered, 20'000U);
    std::uint64_t counted = 0;
    for (const auto& [key, count] : exact) {
      const auto found = sum.by_key.find(key);
      const std::uint64_t seen = found == sum.by_key.end() ? 0 : found->second;
      counted += seen;
      ASSERT_LE(seen, count) << key;
      ASSERT_GE(seen + sum.delivered / 256, count) << key;
    }
    ASSERT_LE(counted, sum.delivered);
    ASSERT_LE(sum.by_key.size(), 12 * DeliveryWindow::kKeysMax);
  }
}

}  // namespace
}  // namespace reprise
