#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "load_error.h"
#include "peers/beanstalk_protocol.h"
#include "peers/redis_lua_protocol.h"
#include "peers/redis_stream_protocol.h"
#include "peers/windows.h"

namespace reprise::bench::peers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr TimePoint kNow{std::chrono::hours(1)};

// Writes down what it is told.
class Told final : public PeerReplies {
 public:
  void on_pushed() override { lines.emplace_back("pushed"); }
  void on_claimed(std::string_view job, std::string_view body) override {
    lines.push_back("job " + std::string(job) + "=" + std::string(body));
  }
  void on_none(std::size_t jobs) override { lines.push_back("none " + std::to_string(jobs)); }
  void on_ended() override { lines.emplace_back("ended"); }
  void on_kicked(std::uint64_t jobs) override { lines.push_back("kicked " + std::to_string(jobs)); }

  std::vector<std::string> lines;
};

// As much at a time as a slow network brings.
void read_in_pieces(PeerProtocol& protocol, std::string_view replies, std::size_t piece,
                    Told& told) {
  std::string input;
  for (std::size_t at = 0; at < replies.size(); at += piece) {
    input += replies.substr(at, piece);
    input.erase(0, protocol.read(input, told));
  }
  EXPECT_EQ(input, "");
}

TEST(BodySource, TakesBackOnlyWhatItGave) {
  const BodySource bodies(100);
  std::string body;
  bodies.append(body, {.serial = 7, .due = kNow});
  ASSERT_EQ(body.size(), 100U);
  const Stamp stamp = bodies.check(body);
  EXPECT_EQ(stamp.serial, 7U);
  EXPECT_EQ(stamp.due, kNow);
  for (const std::size_t at : {0U, 40U, 99U}) {
    std::string changed = body;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_THROW(bodies.check(changed), LoadError) << at;
  }
  EXPECT_THROW(bodies.check(body.substr(1)), LoadError);
  EXPECT_THROW(BodySource(23), LoadError);
}

TEST(BeanstalkProtocol, ReadsRepliesHoweverTheyAreSplit) {
  for (const std::size_t piece : {1U, 3U, 1000U}) {
    BeanstalkProtocol protocol("bench");
    Told told;
    read_in_pieces(protocol,
                   "INSERTED 1\r\nRESERVED 12 4\r\n\r\nab\r\nDELETED\r\nTIMED_OUT\r\nBURIED\r\n"
                   "RELEASED\r\nKICKED 3\r\n",
                   piece, told);
    EXPECT_THAT(told.lines, ElementsAre("pushed", "job 12=\r\nab", "ended", "none 1", "ended",
                                        "ended", "kicked 3"));
  }
}

TEST(BeanstalkProtocol, WritesCommands) {
  BeanstalkProtocol protocol("bench");
  protocol.greet();
  protocol.claim(2, false);
  protocol.claim(1, true);
  protocol.ack("5");
  protocol.release("6");
  protocol.bury("7");
  protocol.kick(8);
  EXPECT_EQ(protocol.output(),
            "use bench\r\nwatch bench\r\nignore default\r\n"
            "reserve-with-timeout 0\r\nreserve-with-timeout 0\r\nreserve-with-timeout 5\r\n"
            "delete 5\r\nrelease 6 1024 0\r\nbury 7 1024\r\nkick 8\r\n");
}

TEST(BeanstalkProtocol, RefusalsEndTheRun) {
  BeanstalkProtocol protocol("bench");
  Told told;
  for (const char* reply : {"NOT_FOUND\r\n", "OUT_OF_MEMORY\r\n", "RESERVED 1\r\n"}) {
    EXPECT_THROW(protocol.read(reply, told), LoadError) << reply;
  }
}

TEST(BeanstalkProtocol, HasGreetedWhenAllIsAnswered) {
  BeanstalkProtocol protocol("bench");
  Told told;
  protocol.greet();
  protocol.read("USING bench\r\nWATCHING 2\r\n", told);
  EXPECT_FALSE(protocol.greeted());
  protocol.read("WATCHING 1\r\n", told);
  EXPECT_TRUE(protocol.greeted());
}

TEST(RedisStreamProtocol, ReadsRepliesHoweverTheyAreSplit) {
  for (const std::size_t piece : {1U, 7U, 1000U}) {
    RedisStreamProtocol protocol("bench", 0);
    const BodySource bodies(24);
    Told told;
    protocol.push(bodies, {});
    protocol.claim(3, false);
    protocol.claim(1, true);
    protocol.ack("1-0");
    read_in_pieces(protocol,
                   "$3\r\n1-0\r\n"
                   "*1\r\n*2\r\n$5\r\nbench\r\n*2\r\n"
                   "*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nb\r\n$2\r\n\r\n\r\n"
                   "*2\r\n$3\r\n2-0\r\n*2\r\n$1\r\nb\r\n$1\r\ny\r\n"
                   "*-1\r\n:1\r\n:1\r\n",
                   piece, told);
    EXPECT_THAT(told.lines,
                ElementsAre("pushed", "job 1-0=\r\n", "job 2-0=y", "none 1", "none 1", "ended"));
  }
}

TEST(RedisStreamProtocol, AGroupThatIsThereIsFine) {
  RedisStreamProtocol protocol("bench", 0);
  Told told;
  protocol.greet();
  protocol.read("-BUSYGROUP Consumer Group name already exists\r\n", told);
  EXPECT_TRUE(protocol.greeted());
  EXPECT_THROW(protocol.release("1-0"), LoadError);
}

TEST(RedisStreamProtocol, RefusalsEndTheRun) {
  RedisStreamProtocol protocol("bench", 0);
  Told told;
  protocol.ack("1-0");
  EXPECT_THROW(protocol.read(":0\r\n", told), LoadError);
  protocol.claim(1, false);
  EXPECT_THROW(protocol.read("-ERR no\r\n", told), LoadError);
}

TEST(RedisLuaProtocol, CallsScriptsByTheirDigest) {
  RedisLuaProtocol protocol("bench");
  Told told;
  protocol.greet();
  for (int i = 0; i < 6; i++) protocol.read("$2\r\ns" + std::to_string(i) + "\r\n", told);
  ASSERT_TRUE(protocol.greeted());
  protocol.output().clear();
  protocol.claim(2, false);
  EXPECT_EQ(protocol.output(),
            "*5\r\n$7\r\nEVALSHA\r\n$2\r\ns1\r\n$1\r\n1\r\n$5\r\nbench\r\n$1\r\n2\r\n");
  protocol.kick(5000);
  EXPECT_THAT(protocol.output(), HasSubstr("$4\r\n1000\r\n"));
  protocol.read("*2\r\n$1\r\n9\r\n$1\r\nx\r\n:1000\r\n", told);
  EXPECT_THAT(told.lines, ElementsAre("job 9=x", "none 1", "kicked 1000"));
}

TEST(PushWindow, IsFilledAgainWhenHalfOfItIsFree) {
  PushWindow window(4);
  EXPECT_EQ(window.room(), 4U);
  for (int i = 0; i < 4; i++) window.on_push(kNow);
  EXPECT_EQ(window.room(), 0U);
  EXPECT_EQ(window.on_pushed(kNow + std::chrono::seconds(1)), std::chrono::seconds(1));
  EXPECT_EQ(window.room(), 0U);
  window.on_pushed(kNow);
  EXPECT_EQ(window.room(), 2U);
}

TEST(ClaimWindow, WaitsAloneAfterAnEmptyReplyAndThenAsksForMoreAndMore) {
  ClaimWindow window(ClaimStyle::single, 4);
  EXPECT_EQ(window.next(100, kNow).jobs, 4U);
  for (int i = 0; i < 4; i++) window.on_none(1, kNow);
  ClaimWindow::Ask ask = window.next(100, kNow);
  EXPECT_EQ(ask.jobs, 1U);
  EXPECT_TRUE(ask.wait);
  EXPECT_EQ(window.next(100, kNow).jobs, 0U);
  window.on_job();
  ask = window.next(100, kNow);
  EXPECT_EQ(ask.jobs, 1U);
  EXPECT_FALSE(ask.wait);
  window.on_job();
  window.on_ended();
  EXPECT_EQ(window.next(100, kNow).jobs, 2U);
}

TEST(ClaimWindow, AsksForNoMoreThanIsAllowed) {
  ClaimWindow window(ClaimStyle::single, 64);
  EXPECT_EQ(window.next(3, kNow).jobs, 3U);
  EXPECT_EQ(window.next(0, kNow).jobs, 0U);
}

TEST(ClaimWindow, ABatchWaitsForAsManyAsItHasRoomFor) {
  ClaimWindow window(ClaimStyle::batch, 8);
  EXPECT_EQ(window.next(100, kNow).jobs, 8U);
  window.on_job();
  window.on_none(7, kNow);
  ClaimWindow::Ask ask = window.next(100, kNow);
  EXPECT_EQ(ask.jobs, 7U);
  EXPECT_FALSE(ask.wait);
  window.on_none(7, kNow);
  EXPECT_EQ(window.next(100, kNow).jobs, 0U);
  window.on_ended();
  ask = window.next(100, kNow);
  EXPECT_EQ(ask.jobs, 8U);
  EXPECT_TRUE(ask.wait);
}

TEST(ClaimWindow, OneThatCannotWaitRests) {
  ClaimWindow window(ClaimStyle::poll, 8);
  EXPECT_EQ(window.next(100, kNow).jobs, 8U);
  window.on_none(8, kNow);
  EXPECT_EQ(window.next(100, kNow).jobs, 0U);
  const ClaimWindow::Ask ask = window.next(100, window.rests_until());
  EXPECT_EQ(ask.jobs, 8U);
  EXPECT_FALSE(ask.wait);
}

}  // namespace
}  // namespace reprise::bench::peers
