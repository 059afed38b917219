// Fairness keys and limits of concurrency, from push to delivery. What holds over any steps is in
// engine_scheduling_property_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "support/engine_fixture.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using test::Names;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class EngineFairness : public test::EngineFixture {
 protected:
  static NewJob of(std::string key, std::uint32_t weight = 1) {
    NewJob job;
    job.scheduling = {std::move(key), weight, {}};
    return job;
  }
  // So many jobs of a key, named by it.
  void push_of(const std::string& key, int count, std::uint32_t weight = 1) {
    for (int i = 0; i < count; ++i) push(key, of(key, weight));
  }
  std::map<std::string, int> claim_counts(std::uint32_t count) {
    std::map<std::string, int> given;
    for (const ClaimedJob& job : claim(count)) {
      ++given[job.record->scheduling.fairness_key];
      EXPECT_TRUE(ack(job));
    }
    return given;
  }
  KeyStats key_stats(const std::string& key) {
    const KeysStats keys = stats().keys;
    const auto found = std::ranges::find(keys.top, key, &KeyStats::key);
    return found == keys.top.end() ? KeyStats{} : *found;
  }
};

// --- Fairness keys.

TEST_F(EngineFairness, KeysAreServedByTheirWeights) {
  for (std::uint32_t weight = 1; weight <= 5; ++weight) {
    push_of("w" + std::to_string(weight), 1'000, weight);
  }
  for (int window = 0; window < 5; ++window) {
    auto given = claim_counts(150);
    for (int weight = 1; weight <= 5; ++weight) {
      EXPECT_NEAR(given["w" + std::to_string(weight)], 10 * weight, 2);
    }
  }
}

TEST_F(EngineFairness, ABacklogDoesNotHoldUpANewcomer) {
  push_of("large", 10'000);
  claim_counts(100);
  push_of("small", 1);
  EXPECT_EQ(claim_counts(2)["small"], 1);
}

TEST_F(EngineFairness, APriorityHoldsWithinItsKey) {
  push("a1", of("a"));
  push("a2", of("a"));
  NewJob urgent = of("b");
  urgent.priority = 1;
  push("b1", of("b"));
  push("b2", urgent);
  push("b3", urgent);
  EXPECT_THAT(claim_all(), ElementsAre("a1", "b2", "a2", "b3", "b1"));
}

TEST_F(EngineFairness, AWeightIsThatOfTheJobPushedLast) {
  push_of("a", 500, 1);
  push_of("b", 500, 1);
  EXPECT_NEAR(claim_counts(100)["a"], 50, 1);
  push_of("a", 1, 4);
  EXPECT_EQ(key_stats("a").weight, 4U);
  EXPECT_NEAR(claim_counts(100)["a"], 80, 2) << "also that of the jobs it had";
  push_of("a", 1, 1);
  EXPECT_NEAR(claim_counts(100)["a"], 50, 2);
}

TEST_F(EngineFairness, AfterARestartItIsThatOfTheLatestJobThatIsThere) {
  for (int i = 0; i < 3; ++i) {
    push("a", of("a", 7));
    push("b", of("b", 2));
  }
  NewJob delayed = of("a", 5);
  delayed.delay = 1h;
  push("delayed", delayed);
  const Seq last = push("last", of("a", 9));
  restart();
  EXPECT_EQ(key_stats("a").weight, 9U);
  EXPECT_EQ(key_stats("b").weight, 2U);
  EXPECT_TRUE(drop(last));
  restart();
  EXPECT_EQ(key_stats("a").weight, 5U) << "though it is not pending";
  push("a", of("a", 3));
  EXPECT_EQ(key_stats("a").weight, 3U);
}

TEST_F(EngineFairness, ALeasedJobTellsTheWeightToo) {
  push("a", of("a", 2));
  claim_one();
  push("b", of("a", 6));
  claim_one();
  restart();
  EXPECT_EQ(key_stats("a").weight, 6U);
}

TEST_F(EngineFairness, AJobThatComesBackBringsItsWeight) {
  const Seq dead = push_dead("a", of("a", 7));
  EXPECT_EQ(retry({dead}).done, 1U);
  EXPECT_EQ(key_stats("a").weight, 7U);
  push("a", of("a", 2));
  const Seq other = push("b", of("b", 5));
  for (const ClaimedJob& job : claim(3)) EXPECT_TRUE(fail(job, {.final = true}));
  push("b", of("b", 3));
  EXPECT_EQ(retry({other}).done, 1U);
  EXPECT_EQ(key_stats("b").weight, 3U) << "another was pushed since";
}

TEST_F(EngineFairness, KeysThatAreDoneAreForgotten) {
  for (int i = 0; i < 1'000; ++i) push("x", of("k" + std::to_string(i)));
  EXPECT_EQ(stats().keys.active, 1'000U);
  const auto jobs = claim(1'000);
  EXPECT_EQ(stats().keys.active, 1'000U) << "leased ones are known";
  for (const ClaimedJob& job : jobs) EXPECT_TRUE(ack(job));
  EXPECT_EQ(stats().keys.active, 0U);
}

TEST_F(EngineFairness, EachLaneIsFairByItself) {
  configure({.lease = 1h,
             .retry = {.attempts = std::nullopt, .wait = 0s},
             .fetch = {.retry_share_ppm = 500'000}});
  push_of("a", 300, 1);
  push_of("b", 300, 3);
  for (const ClaimedJob& job : claim(600)) EXPECT_TRUE(fail(job, {.delay = 0s}));
  push_of("a", 300, 1);
  push_of("b", 300, 3);
  std::map<std::pair<std::string, bool>, int> given;
  for (const ClaimedJob& job : claim(400)) {
    ++given[{job.record->scheduling.fairness_key, job.failures > 0}];
  }
  for (const bool retry : {false, true}) {
    EXPECT_NEAR((given[{"a", retry}]), 50, 1);
    EXPECT_NEAR((given[{"b", retry}]), 150, 1);
  }
}

// --- Concurrency.

TEST_F(EngineFairness, AQueueGivesOutNoMoreThanItsConcurrency) {
  configure({.lease = 1h, .concurrency = 3});
  push_of("a", 10);
  const auto held = claim(10);
  EXPECT_THAT(held, SizeIs(3));
  EXPECT_THAT(claim_all(), IsEmpty());
  start_waiting(1);
  EXPECT_TRUE(release(held[0], 1h));
  EXPECT_THAT(answers()[1], SizeIs(1));
  start_waiting(2);
  EXPECT_TRUE(fail(held[1], {.final = true}));
  EXPECT_THAT(answers()[2], SizeIs(1));
  start_waiting(3);
  EXPECT_TRUE(drop(held[2].token.job.seq));
  EXPECT_THAT(answers()[3], SizeIs(1));
}

TEST_F(EngineFairness, AKeyWithoutRoomHoldsUpNoOther) {
  configure({.lease = 1h, .concurrency_per_key = 2});
  push_of("a", 10);
  push_of("b", 1);
  const auto held = claim(10);
  EXPECT_THAT(held, SizeIs(3));
  start_waiting(1);
  start_waiting(2);
  push_of("c", 1);
  EXPECT_THAT(answers()[1], ElementsAre("c"));
  EXPECT_TRUE(ack(held[0]));
  EXPECT_THAT(answers()[2], ElementsAre("a"));
}

TEST_F(EngineFairness, BothLanesCountTogether) {
  configure(
      {.lease = 1h, .retry = {.attempts = std::nullopt, .wait = 0s}, .concurrency_per_key = 1});
  push_of("a", 2);
  EXPECT_TRUE(fail(claim_one(), {.delay = 0s}));
  EXPECT_EQ(stats().lanes.retry, 1U);
  EXPECT_THAT(claim_from(LaneChoice::fresh, 5), SizeIs(1));
  EXPECT_THAT(claim_from(LaneChoice::retry, 5), IsEmpty());
}

TEST_F(EngineFairness, LoweringALimitTakesNothingBack) {
  configure({.lease = 1h, .concurrency = 4, .concurrency_per_key = 4});
  push_of("a", 10);
  const auto held = claim(4);
  configure({.lease = 1h, .concurrency = 2, .concurrency_per_key = 1});
  EXPECT_EQ(counts().active, 4U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(claim_all(), IsEmpty());
    EXPECT_TRUE(ack(held[static_cast<std::size_t>(i)]));
  }
  EXPECT_THAT(claim_all(), IsEmpty()) << "one is out still";
  EXPECT_TRUE(ack(held[3]));
  EXPECT_THAT(claim(5), SizeIs(1));
}

TEST_F(EngineFairness, RaisingALimitAnswersThoseWhoWait) {
  configure({.lease = 1h, .concurrency_per_key = 1});
  push_of("a", 10);
  claim(1);
  start_waiting(1, {.max = 10});
  configure({.lease = 1h, .concurrency_per_key = 3});
  EXPECT_THAT(answers()[1], SizeIs(2));
}

TEST_F(EngineFairness, LeasesCountAfterARestart) {
  configure({.lease = 1h, .concurrency = 3, .concurrency_per_key = 2});
  push_of("a", 10);
  push_of("b", 10);
  claim(2);
  restart();
  EXPECT_THAT(claim(10), SizeIs(1));
  EXPECT_EQ(counts().active, 3U);
}

// --- What can be seen.

TEST_F(EngineFairness, TopKeysAndTheOthersAddUp) {
  for (const int keys : {1, 19, 20, 21, 300, 2'500}) {
    ASSERT_TRUE(engine_->delete_queue(queue_, "", now()));
    configure({});
    std::vector<Result<NewJob>> jobs;
    for (int i = 0; i < keys; ++i) {
      jobs.insert(jobs.end(), static_cast<std::size_t>(1 + i % 5), of("k" + std::to_string(i)));
    }
    push_all(std::move(jobs));
    const auto given = static_cast<std::uint32_t>(keys + keys / 2);
    const auto held = claim(given);
    for (std::size_t i = 0; i < held.size(); i += 2) EXPECT_TRUE(ack(held[i]));
    const QueueStats seen = stats();
    EXPECT_THAT(seen.keys.top, SizeIs(std::min(kTopKeys, static_cast<std::size_t>(keys))));
    KeyStats sum = seen.keys.other;
    for (const KeyStats& key : seen.keys.top) {
      sum.pending += key.pending;
      sum.active += key.active;
      sum.delivered += key.delivered;
      sum.share += key.share;
    }
    EXPECT_EQ(sum.pending, counts().pending) << keys;
    EXPECT_EQ(sum.active, counts().active) << keys;
    EXPECT_EQ(sum.delivered, held.size()) << keys;
    EXPECT_NEAR(sum.share, 1, 1e-9) << keys;
    for (std::size_t i = 1; i < seen.keys.top.size(); ++i) {
      const KeyStats& before = seen.keys.top[i - 1];
      const KeyStats& after = seen.keys.top[i];
      EXPECT_GE(before.pending + before.delivered, after.pending + after.delivered);
    }
  }
}

TEST_F(EngineFairness, TheTopKeysAreThoseWithTheMost) {
  for (int i = 0; i < 200; ++i) push_of("k" + std::to_string(i), 1 + i);
  const KeysStats keys = stats().keys;
  for (std::size_t i = 0; i < kTopKeys; ++i) {
    EXPECT_EQ(keys.top[i].key, "k" + std::to_string(199 - i));
    EXPECT_EQ(keys.top[i].pending, 200 - i);
  }
}

TEST_F(EngineFairness, AKeyThatWasServedLatelyIsSeenThoughItHasNoJobs) {
  push_of("a", 3);
  for (const ClaimedJob& job : claim(3)) EXPECT_TRUE(ack(job));
  push_of("b", 1);
  EXPECT_EQ(key_stats("a").delivered, 3U);
  EXPECT_EQ(key_stats("a").weight, 0U);
  EXPECT_EQ(key_stats("a").share, 1);
  EXPECT_EQ(stats().keys.active, 1U);
  advance(2min);
  EXPECT_EQ(key_stats("a").key, "");
}

}  // namespace
}  // namespace reprise
