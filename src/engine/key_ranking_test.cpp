#include "engine/key_ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <set>
#include <string>

#include "base/random.h"
#include "engine/pending_jobs.h"
#include "support/seeds.h"

namespace reprise {
namespace {

class KeyRankingTest : public testing::Test {
 protected:
  FairKey& make() {
    const auto serial = static_cast<std::uint32_t>(keys_.size());
    return keys_.emplace_back(owner_, std::to_string(serial), serial);
  }
  void set(FairKey& key, std::uint32_t pending) {
    key.pending = pending;
    ranking_.update(key);
  }
  // None that is left out has more than one that is in by a whole power of two, and all with two or
  // more are in while they are few.
  void check(std::size_t count) const {
    const auto top = ranking_.top(count);
    const std::set<const FairKey*> in(top.begin(), top.end());
    ASSERT_EQ(in.size(), top.size()) << "each once";
    const auto several =
        std::ranges::count_if(keys_, [](const FairKey& key) { return key.pending >= 2; });
    ASSERT_GE(top.size(), std::min(count, static_cast<std::size_t>(several)));
    std::uint32_t least = UINT32_MAX;
    for (const FairKey* key : top) {
      ASSERT_GE(key->pending, 2U);
      least = std::min(least, key->pending);
    }
    for (const FairKey& key : keys_) {
      if (!in.contains(&key) && key.pending >= 2) {
        ASSERT_LT(std::bit_width(key.pending), std::bit_width(least));
      }
    }
  }

  Throttles throttles_;
  PendingJobs owner_{QueueNumber{1}, "default", throttles_};
  std::deque<FairKey> keys_;
  KeyRanking ranking_;
};

TEST_F(KeyRankingTest, KnowsThoseWithTheMost) {
  for (std::uint32_t i = 0; i < 100; ++i) set(make(), i * 100);
  const auto top = ranking_.top(20);
  for (std::size_t i = 80; i < 100; ++i) {
    EXPECT_TRUE(std::ranges::find(top, &keys_[i]) != top.end()) << i;
  }
  check(20);
}

TEST_F(KeyRankingTest, KeysWithOneJobAreNotKept) {
  set(make(), 1);
  set(make(), 0);
  EXPECT_TRUE(ranking_.top(20).empty());
}

TEST_F(KeyRankingTest, TheLargestNumberFits) {
  set(make(), UINT32_MAX);
  EXPECT_EQ(ranking_.top(1).size(), 1U);
  set(keys_[0], 0);
  EXPECT_TRUE(ranking_.top(1).empty());
}

TEST_F(KeyRankingTest, LooksAtAPartOfARowThatIsTooLong) {
  for (int i = 0; i < 5'000; ++i) set(make(), 3);
  set(make(), 4);
  const auto top = ranking_.top(20);
  EXPECT_EQ(top.size(), 1'001U);
  EXPECT_EQ(top.front(), &keys_.back());
}

TEST_F(KeyRankingTest, FollowsAnyChange) {
  for (std::uint64_t seed = 1; seed <= test::seed_count(10); ++seed) {
    SeededRandom dice(seed);
    while (keys_.size() < 200) make();
    for (int step = 0; step < 2'000; ++step) {
      FairKey& key = keys_[dice.below(keys_.size())];
      const std::uint32_t pending = key.pending;
      switch (dice.below(4)) {
        case 0:
          set(key, static_cast<std::uint32_t>(dice.below(1'000)));
          break;
        case 1:
          set(key, 0);
          break;
        case 2:
          set(key, pending + 1);
          break;
        default:
          set(key, pending / 2);
      }
      if (step % 20 == 0) check(1 + dice.below(40));
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace reprise
