#include "engine/waiting_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reprise {
namespace {

using namespace std::chrono_literals;
using testing::UnorderedElementsAre;

constexpr QueueNumber kQueue = 1;
constexpr QueueNumber kOtherQueue = 2;

struct Line : WaitingClaims {
  void wait(ClaimId id, LaneChoice lane = LaneChoice::any, Duration until = 60s,
            QueueNumber queue = kQueue) {
    add({.id = id, .queue = queue, .deadline = Timestamp{until}, .command = {.lane = lane}});
  }
  // 0: nobody.
  ClaimId first_for(bool fresh, bool retry) const {
    const WaitingClaim* claim = first(kQueue, fresh, retry);
    return claim == nullptr ? 0 : claim->id;
  }
};

std::vector<ClaimId> ids(const std::vector<WaitingClaim>& claims) {
  std::vector<ClaimId> result;
  for (const WaitingClaim& claim : claims) result.push_back(claim.id);
  return result;
}

TEST(WaitingClaims, AreServedInOrderOfArrivalNotOfDeadline) {
  Line line;
  line.wait(30, LaneChoice::any, 90s);
  line.wait(10, LaneChoice::any, 10s);
  line.wait(20, LaneChoice::any, 50s);
  for (const ClaimId expected : {30, 10, 20}) {
    EXPECT_EQ(line.first_for(true, true), expected);
    line.remove(expected);
  }
  EXPECT_EQ(line.first_for(true, true), 0U);
}

TEST(WaitingClaims, OnlyThoseTheLaneSuitsAreInLineForAJob) {
  Line line;
  line.wait(1, LaneChoice::retry);
  line.wait(2, LaneChoice::fresh);
  line.wait(3, LaneChoice::any);
  EXPECT_EQ(line.first_for(false, false), 0U);
  EXPECT_EQ(line.first_for(true, false), 2U);
  EXPECT_EQ(line.first_for(false, true), 1U);
  EXPECT_EQ(line.first_for(true, true), 1U);
  line.remove(2);
  EXPECT_EQ(line.first_for(true, false), 3U);
  line.remove(1);
  EXPECT_EQ(line.first_for(false, true), 3U);
}

TEST(WaitingClaims, MayWaitForSeveralQueues) {
  Line line;
  line.add({.id = 1, .queue = kQueue, .deadline = Timestamp{60s}, .also = {kOtherQueue}});
  EXPECT_EQ(line.first(kQueue, true, true)->id, 1U);
  EXPECT_EQ(line.first(kOtherQueue, true, true)->id, 1U);
  EXPECT_EQ(line.size(), 1U);
  line.remove(1);
  EXPECT_FALSE(line.has_any(kQueue));
  EXPECT_FALSE(line.has_any(kOtherQueue));
}

TEST(WaitingClaims, OutliveAllButTheLastOfTheirQueues) {
  for (const QueueNumber first_gone : {kQueue, kOtherQueue}) {
    const QueueNumber left = first_gone == kQueue ? kOtherQueue : kQueue;
    Line line;
    line.add({.id = 1, .queue = kQueue, .deadline = Timestamp{60s}, .also = {kOtherQueue}});
    EXPECT_TRUE(line.take_all_of(first_gone).empty());
    EXPECT_FALSE(line.has_any(first_gone));
    EXPECT_EQ(line.first(left, true, true)->id, 1U);
    EXPECT_EQ(ids(line.take_all_of(left)), std::vector<ClaimId>{1});
    EXPECT_EQ(line.size(), 0U);
  }
}

TEST(WaitingClaims, QueuesHaveLinesOfTheirOwn) {
  Line line;
  line.wait(1, LaneChoice::any, 60s, kOtherQueue);
  EXPECT_EQ(line.first_for(true, true), 0U);
  line.wait(2);
  EXPECT_EQ(line.first_for(true, true), 2U);
  EXPECT_EQ(line.count_of(kQueue), 1U);
  EXPECT_EQ(line.count_of(kOtherQueue), 1U);
  EXPECT_EQ(line.count_of(99), 0U);
  EXPECT_EQ(line.size(), 2U);
}

TEST(WaitingClaims, LeaveOnce) {
  Line line;
  line.wait(1);
  const auto removed = line.remove(1);
  ASSERT_TRUE(removed.has_value());
  EXPECT_EQ(removed->id, 1U);
  EXPECT_EQ(line.remove(1), std::nullopt);
  EXPECT_EQ(line.remove(77), std::nullopt);
  EXPECT_EQ(line.size(), 0U);
  EXPECT_EQ(line.next_deadline(), kNever);
}

TEST(WaitingClaims, ExpireAtTheirDeadlineEarliestFirst) {
  Line line;
  EXPECT_EQ(line.next_deadline(), kNever);
  EXPECT_EQ(line.take_expired(kNever - 1us), std::nullopt);
  line.wait(1, LaneChoice::any, 30s);
  line.wait(2, LaneChoice::fresh, 10s, kOtherQueue);
  line.wait(3, LaneChoice::retry, 20s);
  EXPECT_EQ(line.next_deadline(), Timestamp{10s});
  EXPECT_EQ(line.take_expired(Timestamp{10s - 1us}), std::nullopt);
  EXPECT_EQ(line.take_expired(Timestamp{10s})->id, 2U);
  EXPECT_EQ(line.take_expired(Timestamp{19s}), std::nullopt);
  EXPECT_EQ(line.take_expired(Timestamp{100s})->id, 3U);
  EXPECT_EQ(line.take_expired(Timestamp{100s})->id, 1U);
  EXPECT_EQ(line.take_expired(Timestamp{100s}), std::nullopt);
}

TEST(WaitingClaims, OneQueuesClaimsCanBeTakenTogether) {
  Line line;
  line.wait(1, LaneChoice::any);
  line.wait(2, LaneChoice::fresh);
  line.wait(3, LaneChoice::retry);
  line.wait(4, LaneChoice::any, 60s, kOtherQueue);
  EXPECT_THAT(ids(line.take_all_of(kQueue)), UnorderedElementsAre(1, 2, 3));
  EXPECT_THAT(ids(line.take_all_of(kQueue)), UnorderedElementsAre());
  EXPECT_EQ(line.size(), 1U);
  EXPECT_THAT(ids(line.take_all()), UnorderedElementsAre(4));
  EXPECT_EQ(line.size(), 0U);
}

}  // namespace
}  // namespace reprise
