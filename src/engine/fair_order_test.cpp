// Who is next among weighted keys. What holds over every stretch is checked over random weights,
// comings and goings.
#include "engine/fair_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/pending_jobs.h"
#include "support/seeds.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using Weights = std::vector<std::uint32_t>;
// What tags lose in rounding, in jobs.
constexpr double kRounding = 1e-6;

// An order and keys that have more to give than is asked for.
class Backlog {
 public:
  explicit Backlog(const Weights& weights, FairTag begin = 0) : order_(Lane::fresh, begin) {
    for (const std::uint32_t weight : weights) order_.add(make(weight, begin));
  }

  FairKey& make(std::uint32_t weight, FairTag start = 0) {
    const auto serial = static_cast<std::uint32_t>(keys_.size());
    FairKey& key = keys_.emplace_back(owner_, std::to_string(serial), serial);
    key.weight = weight;
    key.starts.fill(start);
    return key;
  }
  // Gives one job: the key that gets it.
  FairKey& give() {
    FairKey& key = *order_.next();
    order_.charge(key);
    return key;
  }
  std::vector<std::uint32_t> give(int count) {
    std::vector<std::uint32_t> served;
    for (int i = 0; i < count; ++i) served.push_back(give().serial);
    return served;
  }
  FairOrder& order() { return order_; }
  FairKey& key(std::size_t serial) { return keys_[serial]; }

 private:
  Throttles throttles_;
  PendingJobs owner_{QueueNumber{1}, "default", throttles_};
  std::deque<FairKey> keys_;
  FairOrder order_;
};

// How far each key is from its share, over every stretch from the beginning and every other.
class Deviation {
 public:
  explicit Deviation(const Weights& weights)
      : weights_(weights),
        total_(std::accumulate(weights.begin(), weights.end(), std::uint64_t{0})),
        given_(weights.size()),
        least_(weights.size()),
        most_(weights.size()) {}

  void note(std::size_t served) {
    ++count_;
    ++given_[served];
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const double share = static_cast<double>(count_) * weights_[i] / static_cast<double>(total_);
      const double ahead = static_cast<double>(given_[i]) - share;
      least_[i] = std::min(least_[i], ahead);
      most_[i] = std::max(most_[i], ahead);
    }
  }
  // From the beginning.
  double of_prefixes() const {
    double worst = 0;
    for (const double ahead : least_) worst = std::max(worst, -ahead);
    for (const double ahead : most_) worst = std::max(worst, ahead);
    return worst;
  }
  // Between any two moments.
  double of_windows() const {
    double worst = 0;
    for (std::size_t i = 0; i < least_.size(); ++i) worst = std::max(worst, most_[i] - least_[i]);
    return worst;
  }

 private:
  Weights weights_;
  std::uint64_t total_;
  std::uint64_t count_ = 0;
  std::vector<std::uint64_t> given_;
  std::vector<double> least_, most_;
};

void expect_fair(const Weights& weights, int jobs, FairTag begin = 0) {
  Backlog backlog(weights, begin);
  Deviation deviation(weights);
  for (int i = 0; i < jobs; ++i) deviation.note(backlog.give().serial);
  EXPECT_LE(deviation.of_prefixes(), 1 + kRounding);
  EXPECT_LE(deviation.of_windows(), 2 + kRounding);
}

Weights random_weights(SeededRandom& dice) {
  Weights weights(2 + dice.below(dice.below(3) == 0 ? 199 : 12));
  const std::uint64_t most = dice.below(2) == 0 ? 1000 : 10;
  for (std::uint32_t& weight : weights) weight = static_cast<std::uint32_t>(1 + dice.below(most));
  return weights;
}

// --- A set of keys that stays.

TEST(FairOrder, IsEmptyAtFirst) {
  FairOrder order(Lane::fresh);
  EXPECT_EQ(order.next(), nullptr);
  EXPECT_EQ(order.size(), 0U);
}

TEST(FairOrder, EqualKeysTakeTurnsInTheOrderTheyCame) {
  Backlog backlog({7, 7, 7});
  EXPECT_THAT(backlog.give(7), ElementsAre(0, 1, 2, 0, 1, 2, 0));
}

TEST(FairOrder, TheJobsOfAHeavyKeyAreSpread) {
  Backlog backlog({3, 1, 1, 1});
  EXPECT_THAT(backlog.give(6), ElementsAre(0, 1, 0, 2, 0, 3));
}

TEST(FairOrder, NextChangesNothing) {
  Backlog backlog({1, 2, 3});
  for (int i = 0; i < 50; ++i) {
    FairKey* const next = backlog.order().next();
    EXPECT_EQ(backlog.order().next(), next);
    EXPECT_EQ(&backlog.give(), next);
  }
}

TEST(FairOrder, AnyHundredAndFiftyOfWeightsOneToFive) {
  Backlog backlog({1, 2, 3, 4, 5});
  const auto served = backlog.give(3'000);
  std::array<int, 5> in_window{};
  for (std::size_t i = 0; i < served.size(); ++i) {
    ++in_window[served[i]];
    if (i >= 150) --in_window[served[i - 150]];
    if (i < 149) continue;
    for (int key = 0; key < 5; ++key) {
      ASSERT_NEAR(in_window[static_cast<std::size_t>(key)], 10 * (key + 1), 2) << "up to " << i;
    }
  }
  expect_fair({1, 2, 3, 4, 5}, 3'000);
}

TEST(FairOrder, AThousandToOne) { expect_fair({1000, 1}, 10'000); }

TEST(FairOrder, AThousandToAThousandOfOne) {
  Weights weights(1001, 1);
  weights[0] = 1000;
  expect_fair(weights, 6'000);
  Backlog backlog(weights);
  const auto served = backlog.give(4'000);
  for (std::size_t i = 0; i + 1 < served.size(); ++i) {
    ASSERT_TRUE((served[i] == 0) != (served[i + 1] == 0)) << "at " << i << ", every other job";
  }
}

TEST(FairOrder, RandomWeightsOverEveryStretch) {
  for (std::uint64_t seed = 1; seed <= test::seed_count(100); ++seed) {
    SeededRandom dice(seed);
    expect_fair(random_weights(dice), 2'000);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

// Tags wrap around after some weeks of a busy queue.
TEST(FairOrder, TagsMayWrapAround) {
  const Weights weights{1, 2, 3, 4, 5, 1000, 999};
  const auto from_zero = Backlog(weights).give(10'000);
  for (const FairTag edge : {FairTag{1} << 63, FairTag{0}}) {
    for (const FairTag before : {FairTag{0}, FairTag{1}, kFairTurn / 2, kFairTurn, 2 * kFairTurn}) {
      EXPECT_EQ(Backlog(weights, edge - before).give(10'000), from_zero) << edge << '-' << before;
      expect_fair(weights, 10'000, edge - before);
    }
  }
}

TEST(FairOrder, AKeyThatComesBackAfterAWrapAroundIsNew) {
  // Its tag is from half a wrap-around ago, and looks as if it were far ahead.
  for (const FairTag tag : {FairTag{1} << 63, (FairTag{1} << 63) - 1, FairTag{1} << 62,
                            2 * kFairTurn, FairTag{0} - kFairTurn}) {
    Backlog backlog({1, 1});
    FairKey& old = backlog.make(1, tag);
    backlog.order().add(old);
    const auto served = backlog.give(3);
    EXPECT_EQ(std::ranges::count(served, old.serial), 1) << tag;
  }
}

// --- Keys that come and go.

TEST(FairOrder, LeavingTakesItsShareWithIt) {
  Backlog backlog({5, 1, 1});
  backlog.give(10);
  backlog.order().remove(backlog.key(0));
  EXPECT_FALSE(backlog.order().contains(backlog.key(0)));
  const auto served = backlog.give(20);
  EXPECT_EQ(std::ranges::count(served, 0U), 0);
  EXPECT_NEAR(static_cast<double>(std::ranges::count(served, 1U)), 10, 1);
}

TEST(FairOrder, ANewcomerHasNoClaimToWhatItMissed) {
  Backlog backlog({1, 1});
  backlog.give(1'000);
  FairKey& newcomer = backlog.make(1);
  backlog.order().add(newcomer);
  const auto served = backlog.give(30);
  EXPECT_NEAR(static_cast<double>(std::ranges::count(served, newcomer.serial)), 10, 1);
}

TEST(FairOrder, WhatAKeyGotAloneIsNotHeldAgainstIt) {
  Backlog backlog({1});
  backlog.give(1'000);
  FairKey& newcomer = backlog.make(1);
  backlog.order().add(newcomer);
  const auto served = backlog.give(20);
  EXPECT_EQ(std::ranges::count(served, newcomer.serial), 10);
}

// Keys come, go and come back, in numbers that change: nobody who came waits for more than one turn
// of each other.
TEST(FairOrder, ANewcomerWaitsForAtMostOneTurnOfEachOther) {
  for (std::uint64_t seed = 1; seed <= test::seed_count(60); ++seed) {
    SeededRandom dice(seed);
    Backlog backlog({});
    std::map<std::uint32_t, std::map<std::uint32_t, std::uint64_t>> waiting;  // what others got
    std::vector<FairKey*> in, out;
    const auto come = [&](FairKey& key) {
      backlog.order().add(key);
      in.push_back(&key);
      waiting[key.serial];
    };
    const auto leave = [&](std::size_t index) {
      FairKey& key = *in[index];
      backlog.order().remove(key);
      in.erase(in.begin() + static_cast<std::ptrdiff_t>(index));
      waiting.erase(key.serial);
      out.push_back(&key);
    };
    const std::uint64_t most_weight = dice.below(2) == 0 ? 1000 : 4;
    for (int step = 0; step < 3'000; ++step) {
      const std::uint64_t what = dice.below(10);
      if (what == 0 && in.size() < 40) {
        come(backlog.make(static_cast<std::uint32_t>(1 + dice.below(most_weight))));
      } else if (what == 1 && !out.empty()) {
        const std::size_t index = dice.below(out.size());
        FairKey& key = *out[index];
        out.erase(out.begin() + static_cast<std::ptrdiff_t>(index));
        come(key);
      } else if (what == 2 && !in.empty()) {
        leave(dice.below(in.size()));
      } else if (!in.empty()) {
        FairKey& served = backlog.give();
        // Those that are counted from now on have had a job, so their place is exact.
        waiting.erase(served.serial);
        for (auto& [waiter, others] : waiting) {
          const std::uint32_t weight = backlog.key(waiter).weight;
          const std::uint64_t bound = (served.weight + weight - 1) / weight + 1;
          ASSERT_LE(++others[served.serial], bound)
              << "seed " << seed << " step " << step << ": weight " << weight
              << " waits for one of " << served.weight;
        }
        const auto place = std::ranges::find(in, &served);
        if (dice.below(3) == 0) leave(static_cast<std::size_t>(place - in.begin()));
      }
      ASSERT_EQ(backlog.order().size(), in.size());
    }
  }
}

TEST(FairOrder, TheSameStepsGiveTheSameOrder) {
  const auto run = [](std::uint64_t seed) {
    SeededRandom dice(seed);
    Backlog backlog(random_weights(dice));
    std::vector<std::uint32_t> served;
    for (int i = 0; i < 500; ++i) {
      FairKey& key = backlog.give();
      served.push_back(key.serial);
      if (dice.below(4) != 0) continue;
      backlog.order().remove(key);
      backlog.order().add(dice.below(2) == 0 ? key : backlog.make(key.weight));
    }
    return served;
  };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) EXPECT_EQ(run(seed), run(seed)) << seed;
}

}  // namespace
}  // namespace reprise
