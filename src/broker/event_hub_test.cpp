#include "broker/event_hub.h"

#include <gtest/gtest.h>

namespace reprise {
namespace {

std::vector<Event> events(std::initializer_list<Seq> seqs) {
  std::vector<Event> list;
  for (const Seq seq : seqs) list.push_back({.type = EventType::pushed, .seq = seq});
  return list;
}

void publish(EventHub& hub, std::initializer_list<Seq> seqs) {
  auto list = events(seqs);
  hub.publish(list);
}

std::vector<Seq> seqs_of(const EventHub::Subscription::Taken& taken) {
  std::vector<Seq> seqs;
  for (const NumberedEvent& event : taken.events) seqs.push_back(event.event.seq);
  return seqs;
}

TEST(EventHub, SubscriberSeesWhatComesAfterItSubscribedInOrder) {
  EventHub hub;
  publish(hub, {1});
  const auto subscription = hub.subscribe([] {});
  publish(hub, {2, 3});
  publish(hub, {4});
  const auto taken = subscription->take();
  EXPECT_EQ(seqs_of(taken), (std::vector<Seq>{2, 3, 4}));
  EXPECT_EQ(taken.events.front().id, 2U);
  EXPECT_EQ(taken.lost, 0U);
  EXPECT_TRUE(subscription->take().events.empty());
}

TEST(EventHub, WakesOnceUntilTaken) {
  EventHub hub;
  int wakes = 0;
  const auto subscription = hub.subscribe([&] { ++wakes; });
  publish(hub, {1, 2});
  publish(hub, {3});
  EXPECT_EQ(wakes, 1);
  subscription->take();
  publish(hub, {4});
  EXPECT_EQ(wakes, 2);
}

TEST(EventHub, SlowSubscriberLosesTheOldestAndIsToldHowMany) {
  EventHub hub(/*first_id=*/1, /*ring_size=*/100, /*subscriber_limit=*/2);
  const auto subscription = hub.subscribe([] {});
  publish(hub, {1, 2, 3, 4, 5});
  const auto taken = subscription->take();
  EXPECT_EQ(seqs_of(taken), (std::vector<Seq>{4, 5}));
  EXPECT_EQ(taken.lost, 3U);
}

TEST(EventHub, ResumesFromTheRing) {
  EventHub hub;
  publish(hub, {10, 20, 30});
  int wakes = 0;
  const auto subscription = hub.subscribe([&] { ++wakes; }, /*after_id=*/1);
  EXPECT_EQ(wakes, 1);
  EXPECT_EQ(seqs_of(subscription->take()), (std::vector<Seq>{20, 30}));
}

TEST(EventHub, ResumeBeyondTheRingTellsWhatIsLost) {
  EventHub hub(/*first_id=*/1, /*ring_size=*/2);
  publish(hub, {10, 20, 30, 40});
  const auto subscription = hub.subscribe([] {}, /*after_id=*/1);
  const auto taken = subscription->take();
  EXPECT_EQ(seqs_of(taken), (std::vector<Seq>{30, 40}));
  EXPECT_EQ(taken.lost, 1U);
}

TEST(EventHub, TheRingIsAsLongHoweverManyEventsComeAtOnce) {
  EventHub hub(/*first_id=*/1, /*ring_size=*/4);
  publish(hub, {1});
  publish(hub, {2, 3, 4});
  publish(hub, {});
  publish(hub, {5, 6});
  const auto taken = hub.subscribe([] {}, /*after_id=*/1)->take();
  EXPECT_EQ(seqs_of(taken), (std::vector<Seq>{3, 4, 5, 6}));
  EXPECT_EQ(taken.events.front().id, 3U);
  EXPECT_EQ(taken.lost, 1U);
}

TEST(EventHub, AnIdOfAnotherRunMeansAllOfThisRun) {
  EventHub hub(/*first_id=*/1000);
  publish(hub, {10, 20});
  for (const std::uint64_t id_of_another_run : {0U, 7U, 999U, 5000U}) {
    const auto subscription = hub.subscribe([] {}, id_of_another_run);
    const auto taken = subscription->take();
    EXPECT_EQ(seqs_of(taken), (std::vector<Seq>{10, 20}));
    EXPECT_EQ(taken.lost, 0U);
  }
  EXPECT_EQ(seqs_of(hub.subscribe([] {}, 1000)->take()), std::vector<Seq>{20});
}

TEST(EventHub, EndedSubscriptionIsNeitherWokenNorCounted) {
  EventHub hub;
  int wakes = 0;
  auto subscription = hub.subscribe([&] { ++wakes; });
  EXPECT_EQ(hub.subscribers(), 1U);
  subscription.reset();
  publish(hub, {1});
  EXPECT_EQ(wakes, 0);
  EXPECT_EQ(hub.subscribers(), 0U);
  EXPECT_EQ(hub.published(), 1U);
}

TEST(EventHub, SubscriptionMayOutliveTheHub) {
  auto hub = std::make_unique<EventHub>();
  const auto subscription = hub->subscribe([] {});
  publish(*hub, {1});
  hub.reset();
  EXPECT_EQ(seqs_of(subscription->take()), (std::vector<Seq>{1}));
}

}  // namespace
}  // namespace reprise
