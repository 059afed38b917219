#include "webhook/delivery_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/fake_clock.h"

namespace reprise::webhook {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using Found = DeliveryPlan::Found;
using News = DeliveryPlan::News;

const std::string kA = "http://a/";
const std::string kB = "http://b/";

TEST(RetrySchedule, DoublesUpToTheLongest) {
  const RetrySchedule schedule;
  std::vector<std::int64_t> seconds;
  for (const std::uint32_t failures : {1, 2, 3, 4, 9, 10, 11, 12, 1000000}) {
    seconds.push_back(schedule.wait_after(failures) / 1s);
  }
  EXPECT_THAT(seconds, ElementsAre(1, 2, 4, 8, 256, 512, 600, 600, 600));
}

class Plan : public testing::Test {
 protected:
  WebhookKey key(Seq seq) const { return {.died_at = died_at_, .queue = 1, .seq = seq}; }
  bool offer(Seq seq, const std::string& url, Found found = Found::at_the_end) {
    return plan_.offer(key(seq), url, found, clock_.now());
  }
  void offer_all(Seq first, Seq last, const std::string& url) {
    for (Seq seq = first; seq <= last; ++seq) offer(seq, url);
  }
  // The seq of what is to be sent now; 0: nothing.
  Seq take() {
    const auto delivery = plan_.take_due(clock_.now());
    return delivery ? delivery->key.seq : 0;
  }
  std::vector<Seq> take_all() {
    std::vector<Seq> taken;
    while (const Seq seq = take()) taken.push_back(seq);
    return taken;
  }
  DeliveryPlan::Failed fail(Seq seq) { return plan_.failed(key(seq), clock_.now()); }

  test::FakeClock clock_;
  const Timestamp died_at_ = clock_.now();
  DeliveryPlan plan_{RetrySchedule{}};
};

TEST_F(Plan, ADeathIsSentAtOnceAndOnce) {
  EXPECT_EQ(take(), 0U);
  EXPECT_EQ(plan_.next_due(), kNever);
  EXPECT_TRUE(offer(1, kA));
  EXPECT_EQ(plan_.next_due(), clock_.now());
  EXPECT_EQ(take(), 1U);
  EXPECT_TRUE(offer(1, kA));  // seen once more while it is sent
  EXPECT_EQ(take(), 0U);
  plan_.delivered(key(1));
  EXPECT_EQ(plan_.held(), 0U);
  EXPECT_EQ(plan_.next_due(), kNever);
}

TEST_F(Plan, AFailureIsTriedAgainByTheSchedule) {
  offer(1, kA);
  for (const auto wait : {1s, 2s, 4s, 8s, 16s, 32s, 64s, 128s, 256s, 512s, 600s, 600s}) {
    ASSERT_EQ(take(), 1U);
    EXPECT_EQ(fail(1).wait, wait);
    EXPECT_EQ(plan_.next_due(), clock_.now() + wait);
    clock_.advance(wait - 1us);
    EXPECT_EQ(take(), 0U);
    clock_.advance(1us);
  }
}

TEST_F(Plan, AfterThreeDaysADeathIsGivenUp) {
  offer(1, kA);
  clock_.advance(72h - 1us);
  take();
  EXPECT_FALSE(fail(1).given_up);
  clock_.advance(1s);
  take();
  EXPECT_TRUE(fail(1).given_up);
  EXPECT_FALSE(plan_.holds(key(1)));
}

TEST_F(Plan, AnOldDeathIsTriedOnce) {
  clock_.advance(1000h);
  offer(1, kA);
  EXPECT_EQ(take(), 1U);
  EXPECT_TRUE(fail(1).given_up);
}

TEST_F(Plan, OldDeathsOfAnAddressThatIsDownAreGivenUpWithoutATry) {
  clock_.advance(1000h);
  offer_all(1, 100, kA);
  EXPECT_THAT(take_all(), ElementsAre(1, 2, 3, 4));
  for (const Seq seq : {1, 2, 3, 4}) fail(seq);
  EXPECT_FALSE(plan_.take_due(clock_.now())->given_up) << "it may be up again in a moment";
  fail(5);
  clock_.advance(10min);
  offer(101, kB);
  plan_.offer({.died_at = clock_.now(), .queue = 1, .seq = 200}, kA, Found::at_the_end,
              clock_.now());
  EXPECT_EQ(take(), 101U);
  for (Seq seq = 6; seq <= 100; ++seq) {
    const auto delivery = plan_.take_due(clock_.now());
    ASSERT_TRUE(delivery && delivery->given_up) << seq;
    EXPECT_EQ(delivery->key, key(seq));
    EXPECT_FALSE(plan_.holds(key(seq)));
  }
  EXPECT_EQ(take(), 200U) << "a young one is tried";
}

TEST_F(Plan, WhatIsPostponedDidNotFail) {
  offer(1, kA);
  take();
  plan_.postpone(key(1), clock_.now() + 5s);
  EXPECT_EQ(plan_.next_due(), clock_.now() + 5s);
  clock_.advance(5s);
  EXPECT_EQ(take(), 1U);
  EXPECT_EQ(fail(1).wait, 1s);
}

TEST_F(Plan, WhatIsForgottenIsNotSent) {
  offer(1, kA);
  take();
  plan_.forget(key(1));
  EXPECT_EQ(plan_.held(), 0U);
  EXPECT_EQ(take(), 0U);
}

TEST_F(Plan, TellsWhenAnAddressBeginsAndCeasesToFail) {
  offer_all(1, 3, kA);
  take_all();
  EXPECT_EQ(plan_.delivered(key(1)), News::none);
  EXPECT_EQ(fail(2).news, News::began_to_fail);
  EXPECT_EQ(fail(3).news, News::none);
  clock_.advance(1s);
  take_all();
  EXPECT_EQ(plan_.delivered(key(2)), News::works_again);
}

TEST_F(Plan, FourAtATimeGoToOneAddress) {
  offer_all(1, 100, kA);
  EXPECT_THAT(take_all(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(plan_.next_due(), kNever);
  plan_.delivered(key(2));
  EXPECT_THAT(take_all(), ElementsAre(5));
}

TEST_F(Plan, OneAtATimeGoesToAnAddressThatFails) {
  offer_all(1, 100, kA);
  take_all();
  for (const Seq seq : {1, 2, 3}) fail(seq);
  EXPECT_EQ(take(), 0U);  // 4 is under way
  fail(4);
  EXPECT_THAT(take_all(), ElementsAre(5));
  plan_.delivered(key(5));
  EXPECT_EQ(take_all().size(), 4U);
}

TEST_F(Plan, SixteenAreUnderWayAtMost) {
  for (Seq seq = 1; seq <= 100; ++seq) offer(seq, "http://" + std::to_string(seq % 10));
  EXPECT_EQ(take_all().size(), 16U);
}

TEST_F(Plan, ALongLineForOneAddressHoldsUpNobody) {
  offer_all(1, 200, kA);
  offer(201, kB);
  EXPECT_EQ(take(), 1U);
  EXPECT_EQ(take(), 201U);
  EXPECT_EQ(take(), 2U);
}

TEST_F(Plan, AddressesThatFailLeaveRoomForTheOthers) {
  constexpr Seq kDown = 50;
  for (Seq seq = 1; seq <= kDown; ++seq) offer(seq, "http://down" + std::to_string(seq));
  for (auto taken = take_all(); !taken.empty(); taken = take_all()) {
    for (const Seq seq : taken) fail(seq);
  }
  clock_.advance(1s);
  EXPECT_EQ(take_all().size(), DeliveryPlan::kFailingInFlight);
  offer_all(101, 110, kA);
  EXPECT_THAT(take_all(), ElementsAre(101, 102, 103, 104));
}

TEST_F(Plan, MemoryIsBoundedPerAddress) {
  for (Seq seq = 1; seq <= 256; ++seq) EXPECT_TRUE(offer(seq, kA));
  EXPECT_FALSE(plan_.hungry());
  EXPECT_FALSE(offer(257, kA));
  EXPECT_FALSE(offer(258, kA));
  EXPECT_TRUE(offer(259, kB));
  EXPECT_EQ(plan_.held(), 257U);
  EXPECT_EQ(plan_.left_out(), 2U);
  EXPECT_FALSE(plan_.hungry());  // there is no room for them yet
}

TEST_F(Plan, MemoryIsBoundedWithManyAddresses) {
  for (Seq seq = 1; seq <= 300'000; ++seq) offer(seq, "http://" + std::to_string(seq % 1000));
  // 1000 lanes with their share each; the first ones may have come to more before there were many.
  EXPECT_LE(plan_.held(), 2 * DeliveryPlan::kHeldTotal);
  EXPECT_GE(plan_.held(), 1000U);
  EXPECT_EQ(plan_.held() + plan_.left_out(), 300'000U);
}

TEST_F(Plan, AHalfEmptyLaneAsksForWhatItLeftOut) {
  offer_all(1, 300, kA);
  EXPECT_EQ(plan_.left_out(), 44U);
  for (Seq seq = 1; seq <= 127; ++seq) {
    ASSERT_EQ(take(), seq);
    plan_.delivered(key(seq));
  }
  EXPECT_FALSE(plan_.hungry());
  take();
  plan_.delivered(key(128));
  EXPECT_TRUE(plan_.hungry());

  plan_.begin_pass();
  for (Seq seq = 129; seq <= 300; ++seq) EXPECT_TRUE(offer(seq, kA, Found::on_a_pass));
  plan_.end_pass();
  EXPECT_EQ(plan_.held(), 172U);
  EXPECT_EQ(plan_.left_out(), 0U);
  EXPECT_FALSE(plan_.hungry());
}

TEST_F(Plan, APassThatFindsNothingSatisfies) {
  offer_all(1, 257, kA);
  while (const Seq seq = take()) plan_.delivered(key(seq));
  EXPECT_TRUE(plan_.hungry());
  plan_.begin_pass();  // 257 was deleted meanwhile
  plan_.end_pass();
  EXPECT_FALSE(plan_.hungry());
  EXPECT_EQ(plan_.left_out(), 0U);
}

TEST_F(Plan, ThoseThatAreRefusedForLongMakeRoomForOthers) {
  offer_all(1, 257, kA);
  // Until all have come to the longest wait.
  for (int round = 0; round < 11; ++round) {
    while (const Seq seq = take()) fail(seq);
    EXPECT_EQ(plan_.hungry(), round == 10);
    if (round < 10) clock_.advance(600s);
  }
  plan_.begin_pass();
  EXPECT_TRUE(offer(257, kA, Found::on_a_pass));
  EXPECT_EQ(plan_.held(), 256U);
  EXPECT_EQ(take(), 257U);
  plan_.delivered(key(257));
  // The one that went out for it is found again.
  plan_.end_pass();
  EXPECT_EQ(plan_.left_out(), 1U);
  EXPECT_TRUE(plan_.hungry());
}

}  // namespace
}  // namespace reprise::webhook
