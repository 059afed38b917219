#include "engine/lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "engine/pending_jobs.h"
#include "engine/throttles.h"

namespace reprise {
namespace {

using testing::ElementsAre;

std::vector<Seq> drained(FreshLane& lane) {
  std::vector<Seq> order;
  while (!lane.empty()) {
    const auto [priority, seq] = lane.front();
    EXPECT_TRUE(lane.erase(priority, seq));
    order.push_back(seq);
  }
  return order;
}

TEST(FreshLane, GivesLowerPrioritiesFirstThenPushOrder) {
  FreshLane lane;
  lane.insert(1000, 1);
  lane.insert(5, 2);
  lane.insert(1000, 3);
  lane.insert(0, 4);
  lane.insert(std::numeric_limits<Priority>::max(), 5);
  lane.insert(5, 6);
  EXPECT_THAT(drained(lane), ElementsAre(4, 2, 6, 1, 3, 5));
}

TEST(FreshLane, AJobThatComesBackTakesItsOldPlace) {
  FreshLane lane;
  for (const Seq seq : {1, 2, 3, 4}) lane.insert(7, seq);
  EXPECT_TRUE(lane.erase(7, 2));
  EXPECT_TRUE(lane.erase(7, 1));
  lane.insert(7, 5);
  lane.insert(7, 2);
  EXPECT_THAT(drained(lane), ElementsAre(2, 3, 4, 5));
}

TEST(FreshLane, CountsEachJobOnce) {
  FreshLane lane;
  EXPECT_TRUE(lane.empty());
  lane.insert(1, 10);
  lane.insert(1, 10);
  lane.insert(2, 11);
  EXPECT_EQ(lane.size(), 2U);
  EXPECT_FALSE(lane.erase(1, 11)) << "that job has another priority";
  EXPECT_FALSE(lane.erase(3, 10));
  EXPECT_EQ(lane.size(), 2U);
  EXPECT_TRUE(lane.erase(1, 10));
  EXPECT_FALSE(lane.erase(1, 10));
  EXPECT_TRUE(lane.erase(2, 11));
  EXPECT_TRUE(lane.empty());
}

TEST(FreshLane, TakesManyOfOnePriorityAtOnce) {
  FreshLane lane;
  lane.insert(5, 3);
  const std::vector<Seq> seqs = {1, 3, 4};
  lane.insert_all(5, seqs);
  lane.insert_all(9, {});
  EXPECT_EQ(lane.size(), 3U);
  lane.insert_all(4, std::vector<Seq>{2});
  EXPECT_THAT(drained(lane), ElementsAre(2, 1, 3, 4));
}

TEST(FreshLane, FindsAJobOfUnknownPriority) {
  FreshLane lane;
  lane.insert(1, 10);
  lane.insert(2, 11);
  lane.insert(3, 12);
  EXPECT_TRUE(lane.erase(Seq{11}));
  EXPECT_FALSE(lane.erase(Seq{11}));
  EXPECT_THAT(drained(lane), ElementsAre(10, 12));
}

TEST(FreshLane, OldestIsByPushOrderWhateverThePriority) {
  FreshLane lane;
  lane.insert(1, 9);
  lane.insert(1000, 4);
  lane.insert(500, 6);
  EXPECT_EQ(lane.oldest(), 4U);
  lane.erase(1000, 4);
  EXPECT_EQ(lane.oldest(), 6U);
}

TEST(TimedSeqs, AreOrderedByTimeThenPushOrder) {
  using namespace std::chrono_literals;
  TimedSeqs seqs;
  seqs.insert({Timestamp{2s}, 1});
  seqs.insert({Timestamp{1s}, 9});
  seqs.insert({Timestamp{1s}, 3});
  std::vector<Seq> order;
  for (const TimedSeq& timed : seqs) order.push_back(timed.seq);
  EXPECT_THAT(order, ElementsAre(3, 9, 1));
}

// 1 where the retry lane was picked.
std::vector<int> retries(std::size_t picks, std::uint32_t share_ppm = 200'000) {
  LaneShare share;
  std::vector<int> picked(picks);
  for (int& pick : picked) pick = share.next(share_ppm) == Lane::retry ? 1 : 0;
  return picked;
}

TEST(LaneShare, GivesTheRetryLaneTwentyOfAHundred) {
  const auto picked = retries(100);
  EXPECT_EQ(std::ranges::count(picked, 1), 20);
}

// Not only in the long run: no window, wherever it starts, is off by more than one.
TEST(LaneShare, IsExactOverEveryWindow) {
  for (const std::uint32_t ppm : {0U, 1U, 10'000U, 200'000U, 370'000U, 500'000U, 999'999U}) {
    const auto picked = retries(200, ppm);
    for (std::size_t begin = 0; begin < picked.size(); ++begin) {
      int count = 0;
      for (std::size_t end = begin; end < picked.size(); ++end) {
        count += picked[end];
        const double fair = static_cast<double>(end - begin + 1) * ppm / kWholeShare;
        ASSERT_LT(std::abs(count - fair), 1.0) << ppm << " from " << begin << " to " << end;
      }
    }
  }
}

TEST(LaneShare, AWholeShareIsEveryJobAndNoneIsNone) {
  EXPECT_EQ(std::ranges::count(retries(100, kWholeShare), 1), 100);
  EXPECT_EQ(std::ranges::count(retries(100, 0), 1), 0);
}

TEST(RetryTimes, CountTheirJobsByFailures) {
  using namespace std::chrono_literals;
  Throttles throttles;
  PendingJobs jobs(1, "default", throttles);
  const StrandRef strand = jobs.strand({});
  RetryTimes times;
  EXPECT_TRUE(times.insert({Timestamp{1s}, 1}, 1, strand));
  times.insert({Timestamp{2s}, 2}, 9, strand);
  times.insert({Timestamp{3s}, 3}, 10, strand);
  times.insert({Timestamp{4s}, 4}, 4'000'000'000U, strand);
  EXPECT_FALSE(times.insert({Timestamp{4s}, 4}, 1, strand));
  EXPECT_THAT(times.counts(), ElementsAre(1, 0, 0, 0, 0, 0, 0, 0, 1, 2));
  const RetryTimes::Retry first = times.pop_front();
  EXPECT_EQ(first.job, (TimedSeq{Timestamp{1s}, 1}));
  EXPECT_EQ(first.failures, 1U);
  EXPECT_EQ(&*first.strand, &*strand);
  EXPECT_EQ(times.front().seq, 2U);
  EXPECT_EQ(times.pop_front().failures, 9U);
  EXPECT_THAT(times.counts(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 2));
  EXPECT_EQ(times.time_of(4), Timestamp{4s});
  EXPECT_EQ(times.time_of(5), std::nullopt);
  EXPECT_TRUE(times.erase({Timestamp{4s}, 4}));
  EXPECT_TRUE(times.erase({Timestamp{3s}, 3}));
  EXPECT_FALSE(times.erase({Timestamp{3s}, 3}));
  EXPECT_TRUE(times.empty());
  EXPECT_THAT(times.counts(), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
}

}  // namespace
}  // namespace reprise
