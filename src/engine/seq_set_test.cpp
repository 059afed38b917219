#include "engine/seq_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"

namespace reprise {
namespace {

using testing::ElementsAre;

std::vector<Seq> drained(SeqSet& set) {
  std::vector<Seq> order;
  while (!set.empty()) {
    order.push_back(set.first());
    EXPECT_TRUE(set.erase(order.back()));
  }
  return order;
}

TEST(SeqSet, IsEmptyAtFirst) {
  SeqSet set;
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.size(), 0U);
  EXPECT_FALSE(set.erase(1));
  set.insert_all({});
  EXPECT_TRUE(set.empty());
}

TEST(SeqSet, HoldsEachSeqOnce) {
  SeqSet set;
  EXPECT_TRUE(set.insert(7));
  EXPECT_FALSE(set.insert(7));
  EXPECT_EQ(set.size(), 1U);
  EXPECT_TRUE(set.erase(7));
  EXPECT_FALSE(set.erase(7));
  EXPECT_TRUE(set.empty());
}

TEST(SeqSet, GivesThemInOrderAcrossAllItsChunks) {
  constexpr Seq kMax = std::numeric_limits<Seq>::max();
  SeqSet set;
  for (const Seq seq : {Seq{65536}, Seq{0}, kMax, Seq{65535}, Seq{1} << 32, Seq{65537}, kMax - 1}) {
    EXPECT_TRUE(set.insert(seq));
  }
  EXPECT_THAT(drained(set), ElementsAre(0, 65535, 65536, 65537, Seq{1} << 32, kMax - 1, kMax));
}

TEST(SeqSet, ManyAtOnceMayBeThereInPart) {
  SeqSet set;
  set.insert(3);
  set.insert(70000);
  const std::vector<Seq> seqs = {1, 3, 65535, 65536, 70000, 200000};
  set.insert_all(seqs);
  EXPECT_EQ(set.size(), 6U);
  set.insert_all(seqs);
  EXPECT_EQ(set.size(), 6U);
  EXPECT_EQ(drained(set), seqs);
}

TEST(SeqSet, ManyAtOnceFillAnArrayToTheBrim) {
  for (const Seq count : {4094, 4095, 4096, 4097, 65536, 65537}) {
    std::vector<Seq> seqs;
    for (Seq seq = 0; seq < count; ++seq) seqs.push_back((Seq{5} << 16) + seq);
    SeqSet set;
    set.insert_all(seqs);
    EXPECT_EQ(set.size(), count);
    EXPECT_FALSE(set.insert(seqs.back()));
    EXPECT_EQ(drained(set), seqs);
  }
}

// --- Against std::set, which is slow and right.

class Pair {
 public:
  explicit Pair(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  std::size_t size() const { return expected_.size(); }
  void insert(Seq seq) {
    ASSERT_EQ(set_.insert(seq), expected_.insert(seq).second) << seq;
    check();
  }
  void insert_all(const std::set<Seq>& seqs) {
    set_.insert_all(std::vector<Seq>(seqs.begin(), seqs.end()));
    expected_.insert(seqs.begin(), seqs.end());
    check();
  }
  void erase(Seq seq) {
    ASSERT_EQ(set_.erase(seq), expected_.erase(seq) == 1) << seq;
    check();
  }
  // One that is there, from about the given place on.
  void erase_near(Seq seq) {
    const auto found = expected_.lower_bound(seq);
    if (found != expected_.end()) erase(*found);
  }
  void erase_first() {
    if (!expected_.empty()) erase(*expected_.begin());
  }
  void drain() {
    ASSERT_EQ(drained(set_), std::vector<Seq>(expected_.begin(), expected_.end()));
    expected_.clear();
  }

 private:
  void check() {
    ASSERT_EQ(set_.size(), expected_.size());
    ASSERT_EQ(set_.empty(), expected_.empty());
    if (!expected_.empty()) {
      ASSERT_EQ(set_.first(), *expected_.begin());
    }
  }

  SeededRandom random_;
  SeqSet set_;
  std::set<Seq> expected_;
};

constexpr std::uint64_t kSeeds = 4;
constexpr int kSteps = 40'000;

// How far apart seqs lie on average decides what chunks look like: bitmaps, arrays, or a bit of
// both; 1 in 16 is where one becomes the other.
class SeqSetProperty : public testing::TestWithParam<Seq> {
 protected:
  Seq range() const { return 20'000 * GetParam(); }
};

TEST_P(SeqSetProperty, InsertsAndErasesInAnyOrder) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Pair pair(seed);
    // Grows and shrinks by turns, so that chunks change their form both ways.
    for (int step = 0; step < kSteps; ++step) {
      const bool growing = step / (kSteps / 4) % 2 == 0;
      const Seq seq = pair.below(range());
      if (pair.below(8) < (growing ? 7 : 1)) {
        pair.insert(seq);
      } else {
        pair.below(4) == 0 ? pair.erase(seq) : pair.erase_near(seq);
      }
      if (HasFatalFailure()) return;
    }
    pair.drain();
  }
}

// As a queue does it: in at the back, out at the front, and now and then one comes back.
TEST_P(SeqSetProperty, WorksOffABacklogFromTheFront) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Pair pair(seed);
    Seq next = Seq{1} << 40;
    for (int step = 0; step < kSteps; ++step) {
      const bool growing = step < kSteps / 2;
      const std::uint64_t pick = pair.below(16);
      if (pick < (growing ? 12 : 4)) {
        next += 1 + pair.below(2 * GetParam() - 1);
        pair.insert(next);
      } else if (pick == 15) {
        pair.insert(next - pair.below(range()));
      } else {
        pair.erase_first();
      }
      if (HasFatalFailure()) return;
    }
    pair.drain();
  }
}

TEST_P(SeqSetProperty, TakesManyAtOnceInPieces) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Pair pair(seed);
    Seq next = 0;
    for (int piece = 0; piece < 40; ++piece) {
      std::set<Seq> seqs;
      for (std::uint64_t left = pair.below(2000); left > 0; --left) {
        next += 1 + pair.below(2 * GetParam() - 1);
        seqs.insert(next);
      }
      pair.insert_all(seqs);
      for (std::uint64_t left = pair.below(200); left > 0; --left) pair.erase_first();
      for (std::uint64_t left = pair.below(200); left > 0; --left) pair.erase(pair.below(next + 1));
      if (HasFatalFailure()) return;
    }
    pair.drain();
  }
}

INSTANTIATE_TEST_SUITE_P(Density, SeqSetProperty, testing::Values(1, 2, 15, 17, 1000, 100'000),
                         [](const auto& density) {
                           return "OneIn" + std::to_string(density.param);
                         });

}  // namespace
}  // namespace reprise
