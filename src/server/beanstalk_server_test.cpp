#include "server/beanstalk_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "support/fake_broker.h"
#include "support/http_probe.h"

namespace reprise::server {
namespace {

using namespace std::chrono_literals;
using test::FakeBroker;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Probe = test::HttpProbe;  // it sends and reads any bytes
using Asked = FakeBroker::Asked;

// The server's own session, which makes the tube `default`, is the first.
constexpr SessionId kFirstClient = 2;

class BeanstalkServerTest : public ::testing::Test {
 protected:
  void start(BeanstalkServerOptions options = {}) {
    options.listen = "127.0.0.1:0";
    auto started = BeanstalkServer::start(broker, std::move(options));
    ASSERT_TRUE(started) << started.error().detail;
    server = std::move(*started);
  }

  // `lines` of replies without a body.
  static std::string read_lines(Probe& probe, int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i) text += probe.read_until("\r\n").value_or("(none)");
    return text;
  }
  static std::string ask(Probe& probe, std::string_view bytes, int lines = 1) {
    probe.send(bytes);
    return read_lines(probe, lines);
  }

  std::size_t submits_of(SessionId session) {
    return broker.with_lock([&](const Asked& asked) {
      return std::ranges::count(asked.submitted, session, &Asked::Submitted::session);
    });
  }
  bool wait_until_closed(SessionId session) {
    return broker.wait_for([&](const Asked& asked) {
      return std::ranges::find(asked.sessions_closed, session) != asked.sessions_closed.end();
    });
  }
  bool wait_until_submitted(SessionId session) {
    return broker.wait_for([&](const Asked& asked) {
      return std::ranges::find(asked.submitted, session, &Asked::Submitted::session) !=
             asked.submitted.end();
    });
  }
  template <class Condition>
  static bool eventually(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (std::chrono::steady_clock::now() < end) {
      if (condition()) return true;
      std::this_thread::yield();
    }
    return false;
  }

  FakeBroker broker;
  std::unique_ptr<BeanstalkServer> server;
};

TEST_F(BeanstalkServerTest, OnlyLoopbackUnlessToldOtherwise) {
  const auto refused = BeanstalkServer::start(broker, {.listen = "0.0.0.0:0"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::invalid_field);
  EXPECT_THAT(refused.error().detail, HasSubstr("beanstalk_remote"));
  const auto nonsense = BeanstalkServer::start(broker, {.listen = "nonsense"});
  ASSERT_FALSE(nonsense);
  EXPECT_THAT(nonsense.error().detail, HasSubstr("beanstalk: 'nonsense' has no port"));
  EXPECT_TRUE(BeanstalkServer::start(broker, {.listen = "0.0.0.0:0", .remote = true}));
}

TEST_F(BeanstalkServerTest, AnAddressInUseIsAnError) {
  start();
  const auto second = BeanstalkServer::start(broker, {.listen = server->address()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::io);
}

TEST_F(BeanstalkServerTest, TheDefaultTubeIsMade) {
  start();
  ASSERT_TRUE(wait_until_closed(1));
  broker.with_lock([](const Asked& asked) {
    EXPECT_EQ(std::get<session::UseQueue>(asked.submitted.front().commands.front()).queue,
              "default");
  });
}

TEST_F(BeanstalkServerTest, OneReadIsOneSubmit) {
  start();
  Probe probe(server->address());
  EXPECT_EQ(ask(probe,
                "put 1 0 60 5\r\nhello\r\nput 1 0 60 5\r\nworld\r\nlist-tube-used\r\ndelete 1\r\n"
                "delete 2\r\n",
                5),
            "INSERTED 1\r\nINSERTED 2\r\nUSING default\r\nDELETED\r\nDELETED\r\n");
  broker.with_lock([](const Asked& asked) {
    ASSERT_THAT(asked.submitted, SizeIs(2));
    EXPECT_EQ(asked.submitted[1].session, kFirstClient);
    ASSERT_THAT(asked.submitted[1].commands, SizeIs(2));
    EXPECT_EQ(std::get<session::Put>(asked.submitted[1].commands[0]).jobs.size(), 2U);
    EXPECT_EQ(asked.sessions[1].ns, "default");
    EXPECT_THAT(asked.sessions[1].worker, ::testing::StartsWith("beanstalk 127.0.0.1:"));
  });
  EXPECT_EQ(server->stats().count(BeanstalkVerb::put), 2U);
  EXPECT_EQ(server->stats().connections, 1U);
}

TEST_F(BeanstalkServerTest, RepliesKeepTheirOrderBehindAReserveThatWaits) {
  start();
  Probe probe(server->address());
  probe.send("reserve\r\nlist-tube-used\r\nput 1 0 60 1\r\na\r\n");
  ASSERT_TRUE(wait_until_submitted(kFirstClient));
  probe.send("nonsense\r\n");
  ASSERT_TRUE(eventually([&] { return server->stats().count(BeanstalkVerb::put) == 1; }));
  broker.answer_command(kFirstClient, {session::Reserved{{test::claimed_job(9, "body")}}});
  EXPECT_EQ(read_lines(probe, 5),
            "RESERVED 9 4\r\nbody\r\nUSING default\r\nINSERTED 1\r\nUNKNOWN_COMMAND\r\n");
}

TEST_F(BeanstalkServerTest, BytesMayComeOneByOne) {
  start();
  Probe probe(server->address());
  for (const char byte : std::string_view("put 1 0 60 5\r\nhe\r\no\r\ndelete 1\r\n")) {
    probe.send({&byte, 1});
    std::this_thread::sleep_for(1ms);  // so that they are read one by one
  }
  EXPECT_EQ(read_lines(probe, 2), "INSERTED 1\r\nDELETED\r\n");
}

TEST_F(BeanstalkServerTest, ALargeBodyComesThroughAndBack) {
  start();
  Probe probe(server->address());
  const std::string body(1'000'000, 'x');
  EXPECT_EQ(ask(probe, "put 1 0 60 1000000\r\n" + body + "\r\n"), "INSERTED 1\r\n");
  broker.with_lock([&](const Asked& asked) {
    EXPECT_TRUE(std::get<session::Put>(asked.submitted.back().commands[0]).jobs[0]->payload ==
                body);
  });
  probe.send("reserve\r\n");
  ASSERT_TRUE(eventually([&] { return submits_of(kFirstClient) == 2; }));
  broker.answer_command(kFirstClient, {session::Reserved{{test::claimed_job(1, body)}}});
  EXPECT_EQ(read_lines(probe, 1), "RESERVED 1 1000000\r\n");
  EXPECT_TRUE(probe.read_bytes(body.size() + 2) == body + "\r\n");
}

TEST_F(BeanstalkServerTest, QuitClosesAfterAllIsAnswered) {
  start();
  Probe probe(server->address());
  EXPECT_EQ(ask(probe, "put 1 0 60 1\r\na\r\nquit\r\ndelete 1\r\n"), "INSERTED 1\r\n");
  EXPECT_TRUE(probe.closed_by_peer());
  EXPECT_TRUE(wait_until_closed(kFirstClient));
  EXPECT_EQ(server->stats().count(BeanstalkVerb::remove), 0U);
}

TEST_F(BeanstalkServerTest, AQuitBehindAReserveWaitsForIt) {
  start();
  Probe probe(server->address());
  probe.send("reserve\r\nquit\r\n");
  ASSERT_TRUE(wait_until_submitted(kFirstClient));
  std::this_thread::sleep_for(400ms);  // longer than a reserve is given after the peer has gone
  broker.answer_command(kFirstClient, {session::NotReserved{}});
  EXPECT_EQ(read_lines(probe, 1), "TIMED_OUT\r\n");
  EXPECT_TRUE(probe.closed_by_peer());
}

TEST_F(BeanstalkServerTest, AfterAHalfCloseTheRepliesStillCome) {
  start();
  broker.hold_replies();
  Probe probe(server->address());
  probe.send("put 1 0 60 1\r\na\r\ndelete 1\r\n");
  probe.finish_sending();
  ASSERT_TRUE(wait_until_submitted(kFirstClient));
  broker.let_go();
  EXPECT_EQ(read_lines(probe, 2), "INSERTED 1\r\nDELETED\r\n");
  EXPECT_TRUE(probe.closed_by_peer());
  EXPECT_TRUE(wait_until_closed(kFirstClient));
}

TEST_F(BeanstalkServerTest, AReserveOfOneWhoHasHungUpIsNotWaitedFor) {
  start();
  Probe probe(server->address());
  probe.send("reserve\r\n");
  ASSERT_TRUE(wait_until_submitted(kFirstClient));
  probe.close();
  EXPECT_TRUE(wait_until_closed(kFirstClient));
  EXPECT_TRUE(eventually([&] { return server->stats().connections == 0; }));
}

TEST_F(BeanstalkServerTest, AResetClosesTheSession) {
  start();
  Probe probe(server->address());
  EXPECT_EQ(ask(probe, "put 1 0 60 1\r\na\r\n"), "INSERTED 1\r\n");
  probe.abort();
  EXPECT_TRUE(wait_until_closed(kFirstClient));
}

TEST_F(BeanstalkServerTest, HangingUpIsNoticedBehindInputThatIsNotRead) {
  start();
  Probe probe(server->address());
  probe.send("reserve\r\n");
  ASSERT_TRUE(wait_until_submitted(kFirstClient));
  std::string many;
  for (int i = 0; i < 12'000; ++i) many += "delete 1\r\n";
  probe.send(many);
  ASSERT_TRUE(eventually([&] { return server->stats().count(BeanstalkVerb::remove) > 4000; }));
  probe.close();
  EXPECT_TRUE(wait_until_closed(kFirstClient));
}

TEST_F(BeanstalkServerTest, WhoHasMuchUnderWayIsNotReadFrom) {
  start();
  broker.hold_replies();
  Probe probe(server->address());
  const std::string body(1000, 'x');
  std::string puts;
  for (int i = 0; i < 3000; ++i) puts += "put 1 0 60 1000\r\n" + body + "\r\n";
  std::thread sender([&] { probe.send(puts); });
  const auto count = [&] { return server->stats().count(BeanstalkVerb::put); };
  EXPECT_TRUE(eventually([&] { return count() > 1000; }));
  std::this_thread::sleep_for(50ms);  // it would go on if nothing held it
  EXPECT_LT(count(), 1500U);
  broker.let_go();
  for (int i = 1; i <= 3000; ++i) {
    ASSERT_EQ(read_lines(probe, 1), "INSERTED " + std::to_string(i) + "\r\n");
  }
  sender.join();
}

TEST_F(BeanstalkServerTest, WhatWasReadAheadIsHeardWhenThereIsRoom) {
  start();
  Probe probe(server->address());
  std::string many;
  for (int i = 0; i < 600; ++i) many += "reserve\r\n";
  many += "list-tube-used\r\nquit\r\n";
  probe.send(many);
  const auto count = [&] { return server->stats().count(BeanstalkVerb::reserve); };
  ASSERT_TRUE(eventually([&] { return submits_of(kFirstClient) == 1; }));
  EXPECT_EQ(count(), 256U);
  broker.answer_command(kFirstClient, {session::NotReserved{.count = 256}});
  ASSERT_TRUE(eventually([&] { return submits_of(kFirstClient) == 2; }));
  EXPECT_EQ(count(), 512U);
  broker.answer_command(kFirstClient, {session::NotReserved{.count = 256}});
  ASSERT_TRUE(eventually([&] { return submits_of(kFirstClient) == 3; }));
  broker.answer_command(kFirstClient, {session::NotReserved{.count = 88}});
  for (int i = 0; i < 600; ++i) ASSERT_EQ(read_lines(probe, 1), "TIMED_OUT\r\n");
  EXPECT_EQ(read_lines(probe, 1), "USING default\r\n");
  EXPECT_TRUE(probe.closed_by_peer());
}

TEST_F(BeanstalkServerTest, WhoDoesNotTakeItsRepliesIsNotReadFrom) {
  const std::string body(100'000, 'x');
  broker.on_command = [&, answers = test::SessionAnswers()](
                          const session::Command& command) mutable -> std::vector<session::Reply> {
    if (const auto* job = std::get_if<session::ReserveJob>(&command)) {
      return {session::Reserved{{test::claimed_job(job->job, body)}}};
    }
    return answers(command);
  };
  start();
  Probe probe(server->address(), 4096);
  constexpr int kJobs = 1000;
  std::thread sender([&] {
    for (int i = 1; i <= kJobs; ++i) {
      probe.send("reserve-job " + std::to_string(i) + "\r\n");
      if (i % 10 == 0) std::this_thread::sleep_for(1ms);  // not all in one read
    }
  });
  const auto count = [&] { return server->stats().count(BeanstalkVerb::reserve_job); };
  EXPECT_TRUE(eventually([&] { return count() > 20; }));
  std::this_thread::sleep_for(200ms);  // it would go on if nothing held it
  EXPECT_LT(count(), 400U);
  for (int i = 1; i <= kJobs; ++i) {
    ASSERT_EQ(read_lines(probe, 1), "RESERVED " + std::to_string(i) + " 100000\r\n");
    ASSERT_TRUE(probe.read_bytes(body.size() + 2) == body + "\r\n");
  }
  sender.join();
}

TEST_F(BeanstalkServerTest, CommandsThatTheBrokerHasNoRoomForAreTriedAgain) {
  start();
  ASSERT_TRUE(wait_until_closed(1));
  broker.with_lock([&](Asked&) { broker.submit_refusal = Error{Errc::overloaded, ""}; });
  Probe probe(server->address());
  probe.send("put 1 0 60 1\r\na\r\ndelete 1\r\n");
  ASSERT_TRUE(broker.wait_for([](const Asked& asked) { return asked.submits_refused >= 3; }));
  broker.with_lock([&](Asked&) { broker.submit_refusal.reset(); });
  EXPECT_EQ(read_lines(probe, 2), "INSERTED 1\r\nDELETED\r\n");
  EXPECT_EQ(ask(probe, "touch 1\r\n"), "TOUCHED\r\n");
}

TEST_F(BeanstalkServerTest, ABrokerThatStopsIsToldToTheClient) {
  start();
  ASSERT_TRUE(wait_until_closed(1));
  broker.with_lock([&](Asked&) { broker.submit_refusal = Error{Errc::shutting_down, ""}; });
  Probe probe(server->address());
  EXPECT_EQ(ask(probe, "put 1 0 60 1\r\na\r\ndelete 1\r\n", 2), "DRAINING\r\nINTERNAL_ERROR\r\n");
  EXPECT_TRUE(probe.closed_by_peer());
}

TEST_F(BeanstalkServerTest, MoreConnectionsThanAllowedAreClosed) {
  start({.max_connections = 1});
  Probe first(server->address());
  EXPECT_EQ(ask(first, "list-tube-used\r\n"), "USING default\r\n");
  Probe second(server->address());
  EXPECT_TRUE(second.closed_by_peer());
  first.close();
  EXPECT_TRUE(eventually([&] { return server->stats().connections == 0; }));
  Probe third(server->address());
  EXPECT_EQ(ask(third, "list-tube-used\r\n"), "USING default\r\n");
}

TEST_F(BeanstalkServerTest, StatsKnowTheConnections) {
  session::QueueFacts queue;
  queue.stats = test::stats_of({"default", "o"});
  queue.stats.totals.pushed = 7;
  broker.queues = {queue.stats};  // before this start
  queue.stats.totals.pushed = 10;
  broker.on_command = [&, answers = test::SessionAnswers()](
                          const session::Command& command) mutable -> std::vector<session::Reply> {
    if (std::holds_alternative<session::ListQueues>(command)) return {session::AllQueues{{queue}}};
    if (std::holds_alternative<session::FindQueue>(command))
      return {session::QueueFound{std::make_shared<const session::QueueFacts>(queue)}};
    return answers(command);
  };
  start();
  Probe worker(server->address());
  EXPECT_EQ(ask(worker, "watch o\r\n"), "WATCHING 2\r\n");
  worker.send("reserve\r\n");
  ASSERT_TRUE(eventually([&] { return submits_of(kFirstClient) == 2; }));
  Probe producer(server->address());
  EXPECT_EQ(ask(producer, "use o\r\nput 1 0 60 1\r\na\r\npause-tube o 5\r\n", 3),
            "USING o\r\nINSERTED 1\r\nPAUSED\r\n");

  producer.send("stats\r\nquit\r\n");
  const std::string stats = producer.read_until("\n\r\n").value_or("");
  for (const std::string_view line :
       {"current-connections: 2", "current-producers: 1", "current-workers: 1",
        "current-waiting: 1", "total-connections: 2", "cmd-put: 1", "cmd-reserve: 1",
        "cmd-stats: 1", "total-jobs: 3", "max-job-size: 1048576", "draining: false"}) {
    EXPECT_THAT(stats, HasSubstr("\n" + std::string(line) + "\n"));
  }
  Probe third(server->address());
  third.send("watch o\r\nstats-tube o\r\n");
  EXPECT_EQ(read_lines(third, 1), "WATCHING 2\r\n");
  const std::string tube = third.read_until("\n\r\n").value_or("");
  for (const std::string_view line :
       {"current-using: 0", "current-watching: 2", "current-waiting: 1", "cmd-pause-tube: 1"}) {
    EXPECT_THAT(tube, HasSubstr("\n" + std::string(line) + "\n"));
  }
}

TEST_F(BeanstalkServerTest, StopAnswersWhatIsUnderWayAndWaitsForNoReserve) {
  start();
  Probe idle(server->address());
  EXPECT_EQ(ask(idle, "put 1 0 60 1\r\na\r\n"), "INSERTED 1\r\n");
  Probe waiting(server->address());
  waiting.send("reserve\r\n");
  ASSERT_TRUE(wait_until_submitted(3));
  broker.hold_replies();
  Probe busy(server->address());
  busy.send("delete 1\r\n");
  ASSERT_TRUE(wait_until_submitted(4));
  const auto began = std::chrono::steady_clock::now();
  std::thread stopper([&] { server->stop(30s); });
  EXPECT_TRUE(idle.closed_by_peer());
  busy.send("put 1 0 60 1\r\na\r\n");
  EXPECT_TRUE(waiting.closed_by_peer());
  ASSERT_TRUE(eventually([&] { return server->stats().count(BeanstalkVerb::put) == 2; }));
  broker.let_go();
  EXPECT_EQ(read_lines(busy, 2), "DELETED\r\nDRAINING\r\n");
  EXPECT_TRUE(busy.closed_by_peer());
  stopper.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 20s);
  EXPECT_FALSE(Probe(server->address()).connected());
}

TEST_F(BeanstalkServerTest, StopCutsOffWhatIsNotAnsweredInTime) {
  start();
  broker.hold_replies();
  Probe probe(server->address());
  probe.send("delete 1\r\n");
  ASSERT_TRUE(wait_until_submitted(kFirstClient));
  server->stop(50ms);
  EXPECT_TRUE(probe.closed_by_peer());
  EXPECT_TRUE(wait_until_closed(kFirstClient));
  broker.let_go();  // comes too late, and hurts nobody
}

}  // namespace
}  // namespace reprise::server
