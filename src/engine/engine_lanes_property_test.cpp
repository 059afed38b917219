// Nobody starves (docs/failures.md): ten thousand retries are due and fresh jobs keep coming, at
// any pace, while claims of random sizes take them.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>

#include "support/engine_fixture.h"
#include "support/seeds.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;

constexpr int kRetries = 10'000;
constexpr std::size_t kWindow = 50;

class EngineLanesProperty : public test::EngineFixture,
                            public testing::WithParamInterface<std::uint32_t> {
 protected:
  using Dice = SeededRandom;

  // A job given: from which lane, and whether the other one had one too.
  struct Given {
    bool retry = false;
    bool shared = false;
  };
  // A fresh job that waits: how many were given before it came, and how many fresh ones were ahead.
  struct Waiting {
    std::size_t since = 0;
    std::size_t ahead = 0;
  };

  std::uint32_t ppm() const { return GetParam(); }

  void make_retries_due() {
    for (int i = 0; i < kRetries; ++i) push("r");
    for (const ClaimedJob& job : claim(kRetries)) ASSERT_TRUE(fail(job));
    advance(1s);
    ASSERT_EQ(stats().lanes.retry, std::uint64_t{kRetries});
  }

  void push_fresh() { waiting_[push("f")] = {given_.size(), waiting_.size()}; }

  void claim_some(std::uint32_t size) {
    for (const ClaimedJob& job : claim(size)) {
      const bool retry = job.failures > 0;
      given_.push_back({retry, retries_left_ > 0 && !waiting_.empty()});
      if (retry) {
        --retries_left_;
        expect_retry_in_time();
      } else {
        expect_in_time(job.token.job.seq);
      }
      EXPECT_TRUE(ack(job));
    }
  }

  // A fresh job with k before it is given within ⌈(k + 2) / (1 - s)⌉ jobs.
  void expect_in_time(Seq seq) {
    const auto found = waiting_.find(seq);
    ASSERT_NE(found, waiting_.end());
    const auto [since, ahead] = found->second;
    waiting_.erase(found);
    if (ppm() == kWholeShare) return;
    const std::uint64_t parts = (ahead + 2) * std::uint64_t{kWholeShare};
    const std::uint64_t bound = (parts + kWholeShare - ppm() - 1) / (kWholeShare - ppm());
    ASSERT_LE(given_.size() - since, bound) << ahead << " were ahead of it";
  }

  // A retry with k before it is given within ⌈(k + 1) / s⌉ jobs. All of them are due from the
  // start.
  void expect_retry_in_time() {
    if (ppm() == 0) return;
    const auto retries = static_cast<std::uint64_t>(kRetries - retries_left_);
    const std::uint64_t bound = (retries * kWholeShare + ppm() - 1) / ppm();
    ASSERT_LE(given_.size(), bound) << retries << " retries were given";
  }

  // In every window while both lanes waited, fresh jobs have their share but for one, and so have
  // retries.
  void expect_shares_in_every_window() const {
    for (std::size_t begin = 0; begin + kWindow <= given_.size(); ++begin) {
      std::uint64_t retries = 0;
      bool shared = true;
      for (std::size_t i = begin; i < begin + kWindow; ++i) {
        shared = shared && given_[i].shared;
        retries += given_[i].retry ? 1 : 0;
      }
      if (!shared) continue;
      const std::uint64_t parts = kWindow * std::uint64_t{ppm()};
      ASSERT_GE(retries, parts / kWholeShare) << "from " << begin;
      ASSERT_LE(retries, (parts + kWholeShare - 1) / kWholeShare) << "from " << begin;
    }
  }

  std::vector<Given> given_;
  std::map<Seq, Waiting> waiting_;
  int retries_left_ = kRetries;
};

TEST_P(EngineLanesProperty, NobodyStarves) {
  for (std::uint64_t seed = 1; seed <= test::seed_count(3); ++seed) {
    Dice dice(seed);
    ASSERT_TRUE(engine_->delete_queue(queue_, "", now()));
    configure({.retry = {.attempts = 5, .wait = 1s}, .fetch = {.retry_share_ppm = ppm()}});
    make_retries_due();
    given_.clear();
    waiting_.clear();
    retries_left_ = kRetries;
    // From a trickle, where a fresh job finds the lane empty, to more than is taken.
    const std::uint64_t pace = 1 + dice.below(12);
    while (given_.size() < 4'000 && !HasFatalFailure()) {
      for (std::uint64_t i = dice.below(pace); i > 0; --i) push_fresh();
      claim_some(static_cast<std::uint32_t>(1 + dice.below(dice.below(4) == 0 ? 30 : 4)));
    }
    expect_shares_in_every_window();
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

// Over any claims, lanes chosen and limits set: what is out is never more than is allowed, and no
// job that could be given is kept back.
TEST_P(EngineLanesProperty, InFlightStaysBelowItsLimitAndNothingIsKeptBack) {
  for (std::uint64_t seed = 1; seed <= test::seed_count(20); ++seed) {
    Dice dice(seed);
    const std::uint64_t most = dice.below(5);
    ASSERT_TRUE(engine_->delete_queue(queue_, "", now()));
    configure({.lease = 1h,
               .retry = {.attempts = std::nullopt},
               .fetch = {.retry_share_ppm = ppm(), .retry_in_flight = most}});
    std::deque<ClaimedJob> out;
    for (int step = 0; step < 300; ++step) {
      if (dice.below(3) == 0) push("f");
      const auto before = stats().lanes;
      const auto size = static_cast<std::uint32_t>(1 + dice.below(4));
      const auto jobs = claim(size);
      const std::uint64_t room = most - std::min(most, before.retry_in_flight);
      ASSERT_EQ(jobs.size(),
                std::min<std::uint64_t>(size, before.fresh + std::min(before.retry, room)));
      out.insert(out.end(), jobs.begin(), jobs.end());
      ASSERT_LE(stats().lanes.retry_in_flight, most);
      while (!out.empty() && dice.below(2) == 0) {
        const ClaimedJob job = out.front();
        out.pop_front();
        if (dice.below(4) == 0) {
          ASSERT_TRUE(ack(job));
        } else {
          ASSERT_TRUE(fail(job));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shares, EngineLanesProperty,
                         testing::Values(0U, 10'000U, 200'000U, 370'000U, 500'000U, 900'000U,
                                         1'000'000U),
                         [](const auto& share) { return std::to_string(share.param); });

}  // namespace
}  // namespace reprise
