#include "engine/token_bucket.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "support/fake_clock.h"
#include "support/seeds.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using Parts = __int128;

const std::vector<Rate> kRates = {{1, 24h * 30}, {1, 1s},       {7, 3s},     {1'000'000, 1s},
                                  {1000, 1s},    {999'983, 1s}, {3, 7001us}, {100, 24h * 30}};

// What a bucket must hold, from what was taken and when: in no stretch up to now more than the
// burst and what came in it. In parts of a token.
class ExactBucket {
 public:
  ExactBucket(const Rate& rate, std::uint32_t burst)
      : token_(rate.per.count()), speed_(static_cast<Parts>(rate.count)), full_(token_ * burst) {}

  void take(Timestamp now) { taken_.push_back(now); }
  Parts parts(Timestamp now) const {
    Parts least = full_;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      const auto since = static_cast<Parts>(taken_.size() - i);
      least = std::min(least, full_ + speed_ * (now - taken_[i]).count() - token_ * since);
    }
    return least;
  }
  std::uint64_t whole_tokens(Timestamp now) const {
    return static_cast<std::uint64_t>(parts(now) / token_);
  }

 private:
  Parts token_, speed_, full_;
  std::vector<Timestamp> taken_;
};

class TokenBucketTest : public testing::Test {
 protected:
  Timestamp now() const { return clock_.now(); }
  void pass(Duration by) { clock_.advance(by); }
  // Up to a few times what a token takes.
  static Duration some_time(const Rate& rate, SeededRandom& dice) {
    const std::uint64_t interval = static_cast<std::uint64_t>(rate.interval().count());
    switch (dice.below(4)) {
      case 0:
        return Duration(0);
      case 1:
        return Duration(dice.below(3));
      case 2:
        return Duration(dice.below(interval + 1));
      default:
        return Duration(dice.below(5 * interval + 1));
    }
  }

  test::FakeClock clock_;
};

TEST_F(TokenBucketTest, StartsFull) {
  const TokenBucket bucket({100, 1s}, 20, now());
  EXPECT_EQ(bucket.whole_tokens(now()), 20U);
  EXPECT_EQ(bucket.tokens(now()), 20);
  EXPECT_EQ(bucket.next_token(now()), kNever);
}

TEST_F(TokenBucketTest, FillsUpToItsBurst) {
  TokenBucket bucket({1, 2s}, 2, now());
  bucket.take(now());
  bucket.take(now());
  EXPECT_EQ(bucket.whole_tokens(now()), 0U);
  EXPECT_EQ(bucket.next_token(now()), now() + 2s);
  pass(3s);
  EXPECT_EQ(bucket.tokens(now()), 1.5);
  EXPECT_EQ(bucket.next_token(now()), now() + 1s);
  pass(1h);
  EXPECT_EQ(bucket.tokens(now()), 2);
}

// At any rate, burst and moments: exactly what was not taken in any stretch, and not a microsecond
// too soon or too late.
TEST_F(TokenBucketTest, IsExact) {
  for (std::uint64_t seed = 1; seed <= test::seed_count(60); ++seed) {
    SeededRandom dice(seed);
    const Rate rate = kRates[seed % kRates.size()];
    const auto burst = static_cast<std::uint32_t>(dice.below(2) == 0 ? 1 : 1 + dice.below(30));
    TokenBucket bucket(rate, burst, now());
    ExactBucket exact(rate, burst);
    for (int step = 0; step < 300; ++step) {
      pass(some_time(rate, dice));
      const std::uint64_t tokens = bucket.whole_tokens(now());
      ASSERT_EQ(tokens, exact.whole_tokens(now())) << "seed " << seed << " step " << step;
      const Timestamp next = bucket.next_token(now());
      if (tokens == burst) {
        ASSERT_EQ(next, kNever);
      } else {
        ASSERT_GT(next, now());
        ASSERT_EQ(exact.whole_tokens(next), tokens + 1);
        ASSERT_EQ(exact.whole_tokens(next - 1us), tokens);
        ASSERT_EQ(bucket.whole_tokens(next), tokens + 1);
        ASSERT_EQ(bucket.whole_tokens(next - 1us), tokens);
      }
      for (std::uint64_t take = dice.below(tokens + 1); take > 0; --take) {
        bucket.take(now());
        exact.take(now());
      }
      // As a restart does it.
      if (dice.below(20) == 0) bucket = TokenBucket(rate, burst, bucket.level());
      // As looking in vain does it.
      if (dice.below(10) == 0) bucket.settle(now());
    }
  }
}

// Whoever takes each token when it comes gets the rate and no more, with nothing lost in rounding.
TEST_F(TokenBucketTest, NeverDrifts) {
  for (const Rate& rate : kRates) {
    for (const std::uint32_t burst : {1U, 1'000'000U}) {
      TokenBucket bucket(rate, burst, ThrottleLevel{.parts = 0, .at = now()});
      const Timestamp begin = now();
      for (int i = 1; i <= 2'000; ++i) {
        clock_.set(bucket.next_token(now()));
        bucket.take(now());
        // The i-th comes after i * per / count, rounded up.
        const Parts exact = static_cast<Parts>(i) * rate.per.count();
        const auto count = static_cast<Parts>(rate.count);
        if (burst > 1 || rate.per.count() % static_cast<std::int64_t>(rate.count) == 0) {
          ASSERT_EQ((now() - begin).count(), static_cast<std::int64_t>((exact + count - 1) / count))
              << rate.count << " token " << i;
        }
      }
    }
  }
}

TEST_F(TokenBucketTest, TheLongestRateAndTheLargestBurstFit) {
  const Rate slow{1, 24h * 30};
  TokenBucket bucket(slow, kMaxBurst, now());
  EXPECT_EQ(bucket.whole_tokens(now()), kMaxBurst);
  pass(24h * 365 * 100);
  EXPECT_EQ(bucket.whole_tokens(now()), kMaxBurst);
  bucket.take(now());
  EXPECT_EQ(bucket.next_token(now()), now() + 24h * 30);
  EXPECT_EQ(bucket.whole_tokens(now() + 24h * 30 - 1us), kMaxBurst - 1);
  TokenBucket fast({1'000'000, 1s}, kMaxBurst, ThrottleLevel{.parts = 0, .at = now()});
  EXPECT_EQ(fast.whole_tokens(now() + 24h * 365 * 100), kMaxBurst);
  EXPECT_EQ(fast.whole_tokens(now() + 1us), 1U);
}

// --- What is stored.

TEST_F(TokenBucketTest, ALevelHoldsNoMoreThanFits) {
  const TokenBucket bucket({1, 1s}, 3, ThrottleLevel{.parts = UINT64_MAX, .at = now()});
  EXPECT_EQ(bucket.whole_tokens(now()), 3U);
}

// A clock that was set back while the server was down.
TEST_F(TokenBucketTest, ALevelFromTheFutureGivesNothingBeforehand) {
  TokenBucket bucket({1, 1s}, 3, ThrottleLevel{.parts = 1'500'000, .at = now() + 10s});
  EXPECT_EQ(bucket.tokens(now()), 1.5);
  bucket.take(now());
  EXPECT_EQ(bucket.whole_tokens(now()), 0U);
  EXPECT_EQ(bucket.whole_tokens(now() + 10s), 0U);
  EXPECT_EQ(bucket.whole_tokens(now() + 10s + 500ms), 1U);
}

// --- Changes.

TEST_F(TokenBucketTest, AChangeKeepsTheTokensThereAre) {
  TokenBucket bucket({10, 1s}, 10, now());
  for (int i = 0; i < 7; ++i) bucket.take(now());
  bucket.change({7, 3s}, 100, now());
  EXPECT_EQ(bucket.tokens(now()), 3);
  bucket.change({1, 1h}, 2, now());
  EXPECT_EQ(bucket.tokens(now()), 2) << "as far as they fit";
  bucket.change({1, 1h}, 50, now());
  EXPECT_EQ(bucket.tokens(now()), 2) << "what did not fit is gone";
}

TEST_F(TokenBucketTest, AChangeKeepsPartsOfATokenAndNeverMakesOne) {
  SeededRandom dice(7);
  for (int i = 0; i < 5'000; ++i) {
    const Rate& from = kRates[dice.below(kRates.size())];
    const Rate& to = kRates[dice.below(kRates.size())];
    const auto token = static_cast<std::uint64_t>(from.per.count());
    const std::uint64_t parts = dice.below(3) * token + dice.below(token);
    TokenBucket bucket(from, 5, ThrottleLevel{.parts = parts, .at = now()});
    const double before = bucket.tokens(now());
    const std::uint64_t whole = bucket.whole_tokens(now());
    bucket.change(to, 5, now());
    ASSERT_NEAR(bucket.tokens(now()), before, 2.0 / static_cast<double>(to.per.count()));
    ASSERT_EQ(bucket.whole_tokens(now()), whole) << parts << " of " << token;
  }
}

TEST_F(TokenBucketTest, SettingTheSameAgainAndAgainGainsAndLosesNothing) {
  TokenBucket bucket({7, 3s}, 5, now());
  while (bucket.whole_tokens(now()) > 0) bucket.take(now());
  const Timestamp next = bucket.next_token(now());
  while (now() < next - 1ms) {
    pass(1ms);
    bucket.change({7, 3s}, 5, now());
    ASSERT_EQ(bucket.whole_tokens(now()), 0U);
  }
  EXPECT_NEAR(static_cast<double>((bucket.next_token(now()) - next).count()), 0, 500);
}

// --- Lateness.

TEST_F(TokenBucketTest, LatenessGivesBackWhatWasMissed) {
  const Rate rate{1000, 1s};
  for (const Duration late : {0us, 1us, 999us, 1000us, 1001us, 3500us, 19'999us, 20'000us}) {
    TokenBucket bucket(rate, 1, ThrottleLevel{.parts = 0, .at = now()});
    const Timestamp due = bucket.next_token(now());
    clock_.set(due + late);
    EXPECT_EQ(bucket.whole_tokens(now()), 1U);
    bucket.allow_lateness(due, now());
    const auto came = static_cast<std::uint64_t>(1 + late / 1ms);
    EXPECT_EQ(bucket.whole_tokens(now()), came) << late.count();
    for (std::uint64_t i = 0; i < came; ++i) bucket.take(now());
    bucket.settle(now());
    EXPECT_EQ(bucket.next_token(now()), due + static_cast<std::int64_t>(came) * 1ms)
        << "in step with what should have been";
  }
}

TEST_F(TokenBucketTest, LatenessIsLimited) {
  TokenBucket bucket({1000, 1s}, 1, ThrottleLevel{.parts = 0, .at = now()});
  const Timestamp due = bucket.next_token(now());
  clock_.set(due + 1s);
  bucket.allow_lateness(due, now());
  EXPECT_EQ(bucket.whole_tokens(now()), 21U);
}

TEST_F(TokenBucketTest, NobodyIsLateWhoIsInTime) {
  TokenBucket bucket({1000, 1s}, 2, now());
  bucket.allow_lateness(now(), now());
  bucket.allow_lateness(now() + 1s, now());
  EXPECT_EQ(bucket.whole_tokens(now()), 2U);
}

// Whoever waits for each token loses nothing between microseconds, though the bucket holds but one.
TEST_F(TokenBucketTest, ABurstOfOneKeepsToARateThatDoesNotDivide) {
  for (const Rate& rate : {Rate{300, 1s}, Rate{7, 3s}, Rate{999, 1s}}) {
    TokenBucket bucket(rate, 1, ThrottleLevel{.parts = 0, .at = now()});
    const Timestamp begin = now();
    for (std::uint64_t i = 1; i <= 3 * rate.count; ++i) {
      const Timestamp due = bucket.next_token(now());
      clock_.set(due);
      bucket.allow_lateness(due, now());
      bucket.take(now());
      bucket.settle(now());
    }
    EXPECT_EQ(now() - begin, 3 * rate.per) << rate.count;
  }
}

TEST_F(TokenBucketTest, SettlingEndsIt) {
  TokenBucket bucket({1000, 1s}, 2, ThrottleLevel{.parts = 0, .at = now()});
  const Timestamp due = bucket.next_token(now());
  clock_.set(due + 10ms);
  bucket.allow_lateness(due, now());
  bucket.take(now());
  EXPECT_EQ(bucket.whole_tokens(now()), 10U);
  bucket.settle(now());
  EXPECT_EQ(bucket.whole_tokens(now()), 2U) << "what nobody took overflows";
  pass(1h);
  EXPECT_EQ(bucket.whole_tokens(now()), 2U);
}

TEST_F(TokenBucketTest, NoTokenBeforeItsTimeHoweverLate) {
  SeededRandom dice(3);
  for (const Rate& rate : kRates) {
    TokenBucket bucket(rate, 1, ThrottleLevel{.parts = 0, .at = now()});
    const Timestamp begin = now();
    Parts taken = 0;
    for (int i = 0; i < 500; ++i) {
      const Timestamp due = bucket.next_token(now());
      clock_.set(due + Duration(dice.below(20'001)));
      bucket.allow_lateness(due, now());
      while (bucket.whole_tokens(now()) > 0) {
        bucket.take(now());
        ++taken;
      }
      bucket.settle(now());
      // All that have come have been taken, so that nothing was lost either.
      const Parts came = static_cast<Parts>((now() - begin).count()) *
                         static_cast<Parts>(rate.count) / rate.per.count();
      ASSERT_EQ(taken, came) << rate.count << " step " << i;
    }
  }
}

}  // namespace
}  // namespace reprise
