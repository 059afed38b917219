#include "client/server_sent_events.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reprise::client {
namespace {

std::vector<ServerSentEvent> parse(const std::vector<std::string>& chunks) {
  std::vector<ServerSentEvent> events;
  EventParser parser([&](const ServerSentEvent& event) { events.push_back(event); });
  for (const auto& chunk : chunks) parser.feed(chunk);
  return events;
}

TEST(EventParser, ReadsEvents) {
  const auto events =
      parse({"id: 1\nevent: queue:pushed\ndata: {}\n\n: comment\n\nid: 2\ndata: x\n\n"});
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].id, "1");
  EXPECT_EQ(events[0].type, "queue:pushed");
  EXPECT_EQ(events[0].data, "{}");
  EXPECT_EQ(events[1].type, "message");
}

TEST(EventParser, AnyCutGivesTheSame) {
  const std::string stream = "id: 7\r\nevent: a\r\ndata: one\r\ndata: two\r\n\r\ndata:x\n\n";
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    const auto events = parse({stream.substr(0, cut), stream.substr(cut)});
    ASSERT_EQ(events.size(), 2U) << cut;
    EXPECT_EQ(events[0].data, "one\ntwo");
    EXPECT_EQ(events[1].data, "x");
    EXPECT_EQ(events[1].id, "7");  // the latest id stays
  }
}

TEST(EventParser, AnUnfinishedEventIsNone) {
  EXPECT_TRUE(parse({"data: x\n"}).empty());
  std::vector<ServerSentEvent> events;
  EventParser parser([&](const ServerSentEvent& event) { events.push_back(event); });
  parser.feed("event: a\ndata: half");
  parser.restart();
  parser.feed("data: whole\n\n");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].data, "whole");
  EXPECT_EQ(events[0].type, "message");
}

TEST(EventParser, AnEndlessEventIsDropped) {
  const std::string part(EventParser::kMaxEventBytes / 2, 'x');
  const auto events = parse({"data: ", part, part, part, "\n\ndata: next\n\n"});
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].data, "next");
}

}  // namespace
}  // namespace reprise::client
