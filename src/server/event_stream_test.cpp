#include "server/event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace reprise::server {
namespace {

using ::testing::HasSubstr;

Event event_of(EventType type, std::string queue = "orders", std::string ns = "default") {
  Event event;
  event.type = type;
  event.queue = std::make_shared<const QueueName>(QueueName{std::move(ns), std::move(queue)});
  event.seq = 1;
  return event;
}

void publish(EventHub& hub, std::vector<Event> events) { hub.publish(events); }

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(EventStream, TellsEventsAsServerSentEvents) {
  EventHub hub;
  int wakes = 0;
  EventStream stream({}, std::nullopt);
  stream.start(hub, [&] { ++wakes; });
  EXPECT_EQ(stream.next_text(), "");
  publish(hub, {event_of(EventType::pushed)});
  EXPECT_EQ(wakes, 1);
  const std::string text = stream.next_text();
  EXPECT_THAT(text, ::testing::StartsWith("id: 1\nevent: queue:pushed\ndata: {\"type\":"));
  EXPECT_TRUE(text.ends_with("}\n\n"));
  EXPECT_EQ(stream.next_text(), "");
}

TEST(EventStream, FiltersByNamespaceQueueAndType) {
  EventHub hub;
  EventFilter filter;
  filter.ns = "a";
  filter.queue = "orders";
  filter.types.reset().set(static_cast<std::size_t>(EventType::dead));
  EventStream stream(filter, std::nullopt);
  stream.start(hub, [] {});
  publish(hub,
          {event_of(EventType::dead, "orders", "b"), event_of(EventType::dead, "other", "a"),
           event_of(EventType::pushed, "orders", "a"), event_of(EventType::dead, "orders", "a")});
  const std::string text = stream.next_text();
  EXPECT_THAT(text, HasSubstr("id: 4\n"));
  EXPECT_EQ(count_of(text, "id: "), 1U);
}

TEST(EventStream, GoesOnAfterAnId) {
  EventHub hub;
  publish(hub, std::vector<Event>(5, event_of(EventType::pushed)));
  EventStream stream({}, 3);
  stream.start(hub, [] {});
  const std::string text = stream.next_text();
  EXPECT_EQ(count_of(text, "id: "), 2U);
  EXPECT_THAT(text, ::testing::StartsWith("id: 4\n"));
}

TEST(EventStream, ASlowReaderIsToldWhatItLost) {
  EventHub hub(1, 4096, 10);
  EventStream stream({}, std::nullopt);
  stream.start(hub, [] {});
  publish(hub, std::vector<Event>(25, event_of(EventType::pushed)));
  const std::string text = stream.next_text();
  EXPECT_THAT(text, ::testing::StartsWith("event: lost\ndata: {\"lost\": 15}\n\nid: 16\n"));
  EXPECT_EQ(count_of(text, "id: "), 10U);
}

TEST(EventStream, MakesTextInBoundedPieces) {
  EventHub hub;
  EventStream stream({}, std::nullopt);
  stream.start(hub, [] {});
  Event large = event_of(EventType::failed);
  large.error = std::make_shared<const std::string>(16384, 'x');
  publish(hub, std::vector<Event>(100, large));
  std::size_t told = 0;
  for (std::string text = stream.next_text(); !text.empty(); text = stream.next_text()) {
    EXPECT_LT(text.size(), (64U << 10) + 20000);
    told += count_of(text, "id: ");
  }
  EXPECT_EQ(told, 100U);
}

TEST(EventTypeFromName, KnowsTheTypesAndNoOther) {
  EXPECT_EQ(event_type_from_name("queue:dead"), EventType::dead);
  for (const char* name : {"", "dead", "queue:", "queue:exploded", "lost"}) {
    EXPECT_EQ(event_type_from_name(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace reprise::server
