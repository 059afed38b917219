// Keys that come and go, and whose weight changes. What holds over any steps is in
// pending_jobs_property_test.cpp.
#include "engine/pending_jobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/throttles.h"
#include "support/fake_clock.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using Weights = std::vector<std::uint32_t>;

class PendingJobsTest : public testing::Test {
 protected:
  Timestamp now() const { return clock_.now(); }
  void push(PendingJobs& jobs, const Scheduling& scheduling) {
    const StrandRef strand = jobs.strand(scheduling);
    jobs.set_weight(strand->key, scheduling.weight);
    jobs.insert_fresh(*strand, kDefaultPriority, next_seq_++);
  }
  void push_many(const std::string& key, std::uint32_t weight, int count) {
    for (int i = 0; i < count; ++i) push(jobs_, {key, weight, {}});
  }
  // Delivers one job: its lease, which counts until ended. None: there is nothing to give.
  StrandRef give(PendingJobs& jobs) {
    StepBudget budget;
    const auto next = jobs.next(Lane::fresh, std::nullopt, budget, now());
    if (!next) return {};
    StrandRef strand = jobs.take(*next);
    jobs.lease_began(*strand);
    jobs.delivered(*next, now());
    return strand;
  }
  // Delivers one and is done with it: the name of its key; empty: there is nothing to give.
  std::string give_and_end(PendingJobs& jobs) {
    const StrandRef lease = give(jobs);
    if (!lease) return "";
    jobs.lease_ended(*lease, std::nullopt);
    return lease->key.name;
  }
  std::map<std::string, int> give_many(int count) {
    std::map<std::string, int> given;
    for (int i = 0; i < count; ++i) ++given[give_and_end(jobs_)];
    return given;
  }
  void wake() {
    throttles_.wake(now(),
                    [](Strand& strand, Lane lane) { strand.key.jobs.look_again(strand, lane); });
    throttles_.settle(now());
  }

  test::FakeClock clock_;
  Throttles throttles_;
  PendingJobs jobs_{QueueNumber{1}, "default", throttles_};
  Seq next_seq_ = 1;
};

TEST_F(PendingJobsTest, AWeightMayChangeWhileTheKeyWaits) {
  push_many("a", 1, 3'000);
  push_many("b", 1, 3'000);
  push_many("c", 2, 3'000);
  EXPECT_NEAR(give_many(40)["a"], 10, 1);
  FairKey& key = jobs_.find({"a", 1, {}})->key;
  for (const auto& [weight, share] :
       {std::pair(997U, 997), std::pair(1U, 250), std::pair(3U, 500)}) {
    jobs_.set_weight(key, weight);
    EXPECT_NEAR(give_many(1'000)["a"], share, 2) << weight;
  }
}

// One that changes its weight with every job has no more than its largest share.
TEST_F(PendingJobsTest, ChangingItsWeightAgainAndAgainGainsNothing) {
  push_many("a", 1, 2'000);
  push_many("b", 4, 2'000);
  FairKey& key = jobs_.find({"a", 1, {}})->key;
  int given = 0;
  for (int i = 0; i < 1'000; ++i) {
    given += give_and_end(jobs_) == "a" ? 1 : 0;
    jobs_.set_weight(key, i % 2 == 0 ? 4 : 1);
  }
  EXPECT_LE(given, 502);
}

// Those that have had their only job are gone, but they have had it.
TEST_F(PendingJobsTest, KeysThatAreDoneTakeNoTurnsFromThoseThatStay) {
  constexpr int kOthers = 1000;
  push_many("stays", 10, 5'000);
  for (int i = 0; i < kOthers; ++i) push_many("once " + std::to_string(i), 1, 1);
  int since = 0;
  int longest = 0;
  for (int left = kOthers; left > 0;) {
    since = give_and_end(jobs_) == "stays" ? 0 : (--left, since + 1);
    longest = std::max(longest, since);
  }
  EXPECT_LE(longest, kOthers / 10 + 1);
  push_many("new", 1, 1);
  const auto given = give_many(12);
  EXPECT_EQ(given.count("new"), 1U) << "it waits for more than one turn";
}

TEST_F(PendingJobsTest, TheLatestJobOfARestartSaysTheWeight) {
  const StrandRef strand = jobs_.strand({"a", 1, {}});
  jobs_.restore_weight(strand->key, 5, 10);
  jobs_.restore_weight(strand->key, 7, 9);
  EXPECT_EQ(strand->key.weight, 5U);
  jobs_.restore_weight(strand->key, 6, 11);
  EXPECT_EQ(strand->key.weight, 6U);
  jobs_.finish_restore();
  EXPECT_EQ(strand->key.weight, 6U);
}

TEST_F(PendingJobsTest, AKeyIsKnownAsLongAsSomebodyHasToDoWithItsJobs) {
  push_many("a", 1, 1);
  EXPECT_EQ(jobs_.key_count(), 1U);
  StrandRef lease = give(jobs_);
  EXPECT_EQ(jobs_.key_count(), 1U);
  jobs_.lease_ended(*lease, std::nullopt);
  lease = {};
  EXPECT_EQ(jobs_.key_count(), 0U);
  EXPECT_EQ(jobs_.find({"a", 1, {}}), nullptr);
}

// A queue that goes away leaves others that wait for the same token, or were woken for it, alone.
TEST_F(PendingJobsTest, AQueueThatGoesLeavesOthersServed) {
  throttles_.set({.ns = "default", .key = "t", .rate = {1, 1s}, .burst = 1}, now());
  auto going = std::make_unique<PendingJobs>(QueueNumber{2}, "default", throttles_);
  for (const char* key : {"a", "b", "c"}) {
    push(*going, {key, 1, {"t"}});
    push(jobs_, {key, 1, {"t"}});
  }
  EXPECT_EQ(give_and_end(*going), "a");
  EXPECT_EQ(give_and_end(*going), "");
  EXPECT_EQ(give_and_end(jobs_), "");
  EXPECT_EQ(throttles_.find("default", "t", now())->waiting, 5U);
  clock_.advance(1s);
  wake();  // one of each queue
  going.reset();
  EXPECT_EQ(throttles_.find("default", "t", now())->waiting, 2U);
  EXPECT_EQ(give_and_end(jobs_), "a");
  for (const char* key : {"b", "c"}) {
    clock_.advance(1s);
    wake();
    EXPECT_EQ(give_and_end(jobs_), key);
  }
  EXPECT_EQ(throttles_.next_wake(), kNever);
  EXPECT_EQ(jobs_.key_count(), 0U);
}

// --- One that has only one job at a time, and pushes the next as soon as it was served, against
// others with a backlog.

class PendingJobsGuest : public PendingJobsTest,
                         public testing::WithParamInterface<std::pair<std::uint32_t, Weights>> {
 protected:
  enum class Comes : std::uint8_t { before_it_is_done, when_it_is_done };
  // By how much it gets ahead of its share, over any stretch.
  double most_gained(Comes comes) {
    const auto& [weight, others] = GetParam();
    const double total = weight + std::accumulate(others.begin(), others.end(), 0.0);
    for (std::size_t i = 0; i < others.size(); ++i) {
      push_many("other" + std::to_string(i), others[i], 2);
    }
    const Scheduling guest{"guest", weight, {}};
    push(jobs_, guest);
    double ahead = 0, least = 0, gained = 0;
    for (int i = 0; i < 10'000; ++i) {
      StrandRef lease = give(jobs_);
      const std::string name = lease->key.name;
      const std::uint32_t its_weight = lease->key.weight;
      if (name != "guest") push_many(name, its_weight, 1);
      if (name == "guest" && comes == Comes::before_it_is_done) push(jobs_, guest);
      jobs_.lease_ended(*lease, std::nullopt);
      lease = {};
      if (name == "guest" && comes == Comes::when_it_is_done) push(jobs_, guest);
      ahead += (name == "guest" ? 1 : 0) - weight / total;
      least = std::min(least, ahead);
      gained = std::max(gained, ahead - least);
    }
    return gained;
  }
};

TEST_P(PendingJobsGuest, GainsNothingWhileItIsKnown) {
  EXPECT_LE(most_gained(Comes::before_it_is_done), 2 + 1e-6);
}

TEST_P(PendingJobsGuest, GainsNothingWhenItWasForgotten) {
  EXPECT_LE(most_gained(Comes::when_it_is_done), 2 + 1e-6);
}

INSTANTIATE_TEST_SUITE_P(
    Weights, PendingJobsGuest,
    testing::Values(std::pair(1U, Weights{1}), std::pair(1U, Weights(9, 1)),
                    std::pair(1U, Weights{1000}), std::pair(3U, Weights{1, 2, 3, 4, 5}),
                    std::pair(1000U, Weights{1}), std::pair(1000U, Weights(1000, 1)),
                    std::pair(1U, Weights(1000, 1)), std::pair(10U, Weights(100, 1))));

// More keys that come and go at once than places are kept for.
TEST_F(PendingJobsTest, ManyKeysThatComeAndGoAreServedToo) {
  push_many("large", 1, 5'000);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 1'000; ++i) push(jobs_, {"k" + std::to_string(i), 1, {}});
    const auto given = give_many(1'010);
    EXPECT_LE(given.at("large"), 12) << "round " << round;
    EXPECT_GE(given.at("large"), 1);
  }
  EXPECT_LE(jobs_.key_count(), 100U);
}

}  // namespace
}  // namespace reprise
