// Event streams over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "support/http_server_fixture.h"

namespace reprise::server {
namespace {

using test::http_request;
using test::HttpProbe;
using test::HttpReply;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HttpEvents : public test::HttpServerTest {
 protected:
  void publish(EventType type, const std::string& queue = "orders", std::size_t count = 1) {
    Event event;
    event.type = type;
    event.queue = std::make_shared<const QueueName>(QueueName{"default", queue});
    std::vector<Event> events(count, event);
    broker.events().publish(events);
  }

  // Opens the stream and waits until it is subscribed.
  void open(HttpProbe& probe, const std::string& query = {}, const std::string& headers = {}) {
    const std::size_t before = broker.events().subscribers();
    probe.send(http_request("GET", "/v1/events" + query, "", headers));
    const auto head = probe.reply(true);
    ASSERT_TRUE(head);
    ASSERT_EQ(head->status, 200);
    EXPECT_EQ(head->headers.at("content-type"), "text/event-stream");
    ASSERT_EQ(broker.events().subscribers(), before + 1);
  }
};

TEST_F(HttpEvents, TellsEventsAsTheyHappen) {
  start();
  HttpProbe probe(address());
  open(probe);
  publish(EventType::pushed);
  EXPECT_THAT(*probe.read_until("\n\n"), StartsWith("id: 1\nevent: queue:pushed\ndata: {"));
  publish(EventType::completed);
  EXPECT_THAT(*probe.read_until("\n\n"), StartsWith("id: 2\nevent: queue:completed\n"));
}

TEST_F(HttpEvents, FiltersWhatWasAskedFor) {
  start();
  HttpProbe probe(address());
  open(probe, "?queue=other&namespace=default&type=queue:dead,queue:failed&type=queue:taken");
  publish(EventType::dead, "orders");
  publish(EventType::pushed, "other");
  publish(EventType::taken, "other");
  EXPECT_THAT(*probe.read_until("\n\n"), StartsWith("id: 3\nevent: queue:taken\n"));
}

TEST_F(HttpEvents, TellsOfBreakersWhenAsked) {
  start();
  HttpProbe probe(address());
  open(probe, "?type=queue:breaker_open,queue:breaker_trial,queue:breaker_closed");
  publish(EventType::pushed);
  publish(EventType::breaker_open);
  publish(EventType::breaker_trial);
  publish(EventType::breaker_closed);
  EXPECT_THAT(*probe.read_until("\n\n"), StartsWith("id: 2\nevent: queue:breaker_open\n"));
  EXPECT_THAT(*probe.read_until("\n\n"), StartsWith("id: 3\nevent: queue:breaker_trial\n"));
  EXPECT_THAT(*probe.read_until("\n\n"), StartsWith("id: 4\nevent: queue:breaker_closed\n"));
}

TEST_F(HttpEvents, ResumesAfterTheLastEventSeen) {
  start();
  publish(EventType::pushed, "orders", 5);
  HttpProbe probe(address());
  open(probe, "", "Last-Event-ID: 3\r\n");
  EXPECT_THAT(*probe.read_until("\n\n"), StartsWith("id: 4\n"));
  EXPECT_THAT(*probe.read_until("\n\n"), StartsWith("id: 5\n"));
}

TEST_F(HttpEvents, ASlowReaderLosesEventsButNeverTheirNumber) {
  start();
  HttpProbe probe(address(), 4096);
  open(probe);
  constexpr std::size_t kRounds = 60;
  constexpr std::size_t kEvents = 1000;
  for (std::size_t i = 0; i < kRounds; ++i) publish(EventType::pushed, "orders", kEvents);
  std::size_t told = 0;
  std::size_t lost = 0;
  while (told + lost < kRounds * kEvents) {
    const auto event = probe.read_until("\n\n");
    ASSERT_TRUE(event);
    if (event->starts_with("event: lost\ndata: {\"lost\": ")) {
      lost += std::stoul(event->substr(27));
    } else {
      ++told;
    }
  }
  EXPECT_EQ(told + lost, kRounds * kEvents);
  EXPECT_GT(told, 0U);
}

TEST_F(HttpEvents, ACommentKeepsTheConnectionOpen) {
  start({.event_keep_alive = std::chrono::milliseconds(20)});
  HttpProbe probe(address());
  open(probe);
  EXPECT_EQ(probe.read_until("\n\n"), ": keep-alive\n\n");
  EXPECT_EQ(probe.read_until("\n\n"), ": keep-alive\n\n");
}

TEST_F(HttpEvents, AReaderThatLeavesIsForgotten) {
  start();
  HttpProbe probe(address());
  open(probe);
  probe.close();
  EXPECT_TRUE(eventually([&] { return broker.events().subscribers() == 0; }));
}

TEST_F(HttpEvents, AReaderThatIsStuckIsCutOff) {
  start({.write_timeout = std::chrono::milliseconds(100)});
  HttpProbe probe(address(), 4096);
  open(probe);
  EXPECT_TRUE(eventually([&] {
    publish(EventType::pushed, "orders", 100);
    return broker.events().subscribers() == 0;
  }));
}

TEST_F(HttpEvents, StoppingEndsTheStream) {
  start();
  HttpProbe probe(address());
  open(probe);
  server->stop(std::chrono::seconds(10));
  EXPECT_TRUE(probe.closed_by_peer());
  EXPECT_EQ(broker.events().subscribers(), 0U);
}

TEST_F(HttpEvents, HeadTellsTheTypeOnly) {
  start();
  HttpProbe probe(address());
  probe.send(http_request("HEAD", "/v1/events"));
  const auto reply = probe.reply(true);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->headers.at("content-type"), "text/event-stream");
  EXPECT_EQ(broker.events().subscribers(), 0U);
}

TEST_F(HttpEvents, AStreamThatCouldNeverTellAnythingIsRefused) {
  start();
  for (const char* query : {"type=queue:exploded", "type=", "type=queue:dead,", "namespace=.bad",
                            "queue=.bad", "typ=queue:dead", "queue=a&queue=b"}) {
    EXPECT_EQ(ask("GET", std::string("/v1/events?") + query).status, 400) << query;
  }
  EXPECT_EQ(code_of(ask("GET", "/v1/events", "", "Last-Event-ID: yesterday\r\n")), "invalid_field");
}

TEST_F(HttpEvents, PublishingWhileReadersComeAndGoIsSafe) {
  start({.io_threads = 2});
  std::atomic<bool> done = false;
  std::thread publisher([&] {
    while (!done) publish(EventType::pushed, "orders", 10);
  });
  for (int i = 0; i < 50; ++i) {
    HttpProbe probe(address());
    probe.send(http_request("GET", "/v1/events"));
    EXPECT_TRUE(probe.read_until("event: queue:pushed"));
  }
  server->stop(Duration::zero());
  done = true;
  publisher.join();
}

}  // namespace
}  // namespace reprise::server
