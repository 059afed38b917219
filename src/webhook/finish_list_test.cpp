#include "webhook/finish_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_clock.h"

namespace reprise::webhook {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

WebhookKey key(Seq seq) { return {.died_at = Timestamp(1s), .queue = 1, .seq = seq}; }

TEST(FinishList, GivesABatchAtATime) {
  test::FakeClock clock;
  FinishList list;
  EXPECT_THAT(list.take(clock.now()), IsEmpty());
  list.add(key(1));
  list.add(key(1));
  EXPECT_LE(list.next_time(), clock.now());
  EXPECT_THAT(list.take(clock.now()), ElementsAre(key(1)));
  for (Seq seq = 2; seq <= 300; ++seq) list.add(key(seq));
  EXPECT_THAT(list.take(clock.now()), IsEmpty()) << "one is under way";
  EXPECT_EQ(list.next_time(), kNever);
  list.finished({key(1)}, false);
  EXPECT_FALSE(list.contains(key(1)));
  EXPECT_EQ(list.take(clock.now()).size(), FinishList::kAtOnce);
  EXPECT_TRUE(list.contains(key(2)));
  EXPECT_EQ(list.take_rest().size(), 43U);
}

TEST(FinishList, WhatIsRefusedComesAgainALittleLater) {
  test::FakeClock clock;
  FinishList list;
  list.add(key(1));
  list.refused(list.take(clock.now()), clock.now());
  EXPECT_TRUE(list.contains(key(1)));
  EXPECT_THAT(list.take(clock.now()), IsEmpty());
  EXPECT_EQ(list.next_time(), clock.now() + 1s);
  clock.advance(1s);
  EXPECT_THAT(list.take(clock.now()), ElementsAre(key(1)));
}

TEST(FinishList, RemembersWhatAnOlderPageMayStillShow) {
  test::FakeClock clock;
  FinishList list;
  list.add(key(1));
  list.finished(list.take(clock.now()), true);
  EXPECT_TRUE(list.contains(key(1)));
  list.page_arrived();
  EXPECT_FALSE(list.contains(key(1)));
}

TEST(FinishList, SaysWhenItIsFull) {
  FinishList list;
  for (Seq seq = 1; seq < FinishList::kFull; ++seq) list.add(key(seq));
  EXPECT_FALSE(list.full());
  list.add(key(FinishList::kFull));
  EXPECT_TRUE(list.full());
}

}  // namespace
}  // namespace reprise::webhook
