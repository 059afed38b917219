#include "server/beanstalk_dialogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/fake_broker.h"

namespace reprise::server {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FakeHub final : public BeanstalkHub {
 public:
  bool draining() const override { return is_draining; }
  void count(BeanstalkVerb verb) override { ++counted[verb]; }
  void count_pause(const std::string& tube) override { ++pauses[tube]; }
  BeanstalkCensus census() const override { return {.producers = 5}; }
  BeanstalkTubeCensus tube_census(const std::string& tube) const override {
    return {.using_it = tube.size()};
  }

  bool is_draining = false;
  std::map<BeanstalkVerb, int> counted;
  std::map<std::string, int> pauses;
};

class BeanstalkDialogueTest : public ::testing::Test {
 protected:
  // What would be submitted for it.
  std::vector<session::Command> say(std::string_view bytes) {
    dialogue.receive(bytes);
    return std::exchange(dialogue.commands(), {});
  }
  // What is sent after these.
  template <class... Replies>
  std::string after(Replies... replies) {
    (dialogue.take(session::Reply(std::move(replies))), ...);
    return std::exchange(dialogue.output(), {});
  }
  std::string output() { return std::exchange(dialogue.output(), {}); }

  static session::Settled settled(session::How how, std::size_t count) {
    return {how, std::vector<Status>(count)};
  }

  FakeHub hub;
  BeanstalkDialogue dialogue{hub, {.max_payload_bytes = 1000, .max_error_bytes = 100}};
};

TEST_F(BeanstalkDialogueTest, PutsToOneTubeAreOneCommand) {
  const auto commands =
      say("put 1 0 60 1\r\na\r\nput 2 0 60 2\r\nbb\r\nuse other\r\nput 3 0 60 1\r\nc\r\n");
  ASSERT_THAT(commands, SizeIs(3));
  const auto& first = std::get<session::Put>(commands[0]);
  EXPECT_EQ(first.queue, "default");
  ASSERT_EQ(first.jobs.size(), 2U);
  EXPECT_EQ(first.jobs[1]->payload, "bb");
  EXPECT_EQ(std::get<session::UseQueue>(commands[1]).queue, "other");
  EXPECT_EQ(std::get<session::Put>(commands[2]).queue, "other");
  EXPECT_EQ(dialogue.requests_under_way(), 4U);
  EXPECT_EQ(dialogue.bytes_under_way(), 4U);

  EXPECT_EQ(
      after(session::PutDone{{PushedJob{.seq = 1}, PushedJob{.seq = 2}}}, session::QueueReady{}),
      "INSERTED 1\r\nINSERTED 2\r\nUSING other\r\n");
  EXPECT_EQ(after(session::PutDone{{PushedJob{.seq = 3}}}), "INSERTED 3\r\n");
  EXPECT_EQ(dialogue.requests_under_way(), 0U);
  EXPECT_EQ(dialogue.bytes_under_way(), 0U);
  EXPECT_TRUE(dialogue.is_answered());
}

TEST_F(BeanstalkDialogueTest, EqualReservesAreOneCommand) {
  const auto commands =
      say("reserve\r\nreserve\r\nreserve-with-timeout 5\r\nreserve-with-timeout 5\r\n"
          "reserve-with-timeout 6\r\n");
  ASSERT_THAT(commands, SizeIs(3));
  EXPECT_EQ(std::get<session::Reserve>(commands[0]).count, 2U);
  EXPECT_EQ(std::get<session::Reserve>(commands[0]).wait, std::nullopt);
  EXPECT_THAT(*std::get<session::Reserve>(commands[0]).queues, ElementsAre("default"));
  EXPECT_EQ(std::get<session::Reserve>(commands[1]).count, 2U);
  EXPECT_EQ(std::get<session::Reserve>(commands[1]).wait, Duration(5s));
  EXPECT_EQ(std::get<session::Reserve>(commands[2]).wait, Duration(6s));

  EXPECT_TRUE(dialogue.waits_in_reserve());
  EXPECT_EQ(after(session::Reserved{{test::claimed_job(4, "x")}}), "RESERVED 4 1\r\nx\r\n");
  EXPECT_EQ(dialogue.requests_under_way(), 4U);
  EXPECT_EQ(after(session::Reserved{{test::claimed_job(5, "y")}},
                  session::NotReserved{session::Why::timed_out, 2},
                  session::NotReserved{session::Why::deadline_soon}),
            "RESERVED 5 1\r\ny\r\nTIMED_OUT\r\nTIMED_OUT\r\nDEADLINE_SOON\r\n");
  EXPECT_FALSE(dialogue.waits_in_reserve());
}

TEST_F(BeanstalkDialogueTest, WhatEndsJobsIsMergedByKind) {
  const auto commands =
      say("delete 1\r\ndelete 2\r\nrelease 3 4 5\r\nrelease 6 7 8\r\nbury 1 2\r\nbury 3 4\r\n"
          "touch 1\r\ntouch 2\r\ndelete 9\r\nkick-job 1\r\nkick-job 2\r\n");
  ASSERT_THAT(commands, SizeIs(7));
  EXPECT_THAT(std::get<session::Delete>(commands[0]).jobs, ElementsAre(1, 2));
  const auto& releases = std::get<session::Release>(commands[1]).items;
  ASSERT_THAT(releases, SizeIs(2));
  EXPECT_EQ(releases[1].job, 6U);
  EXPECT_EQ(releases[1].priority, 7U);
  EXPECT_EQ(releases[1].delay, Duration(8s));
  const auto& burials = std::get<session::Bury>(commands[2]).items;
  ASSERT_THAT(burials, SizeIs(2));
  EXPECT_EQ(burials[1].priority, 4U);
  EXPECT_THAT(std::get<session::Touch>(commands[3]).jobs, ElementsAre(1, 2));
  EXPECT_THAT(std::get<session::Delete>(commands[4]).jobs, ElementsAre(9));
  EXPECT_EQ(std::get<session::KickJob>(commands[6]).job, 2U);
  EXPECT_EQ(after(settled(session::How::deleted, 2), settled(session::How::released, 2),
                  settled(session::How::buried, 2)),
            "DELETED\r\nDELETED\r\nRELEASED\r\nRELEASED\r\nBURIED\r\nBURIED\r\n");
}

TEST_F(BeanstalkDialogueTest, WhatNeedsNoBrokerIsAnsweredAtItsPlace) {
  EXPECT_THAT(say("list-tube-used\r\nnonsense\r\n"), IsEmpty());
  EXPECT_EQ(output(), "USING default\r\nUNKNOWN_COMMAND\r\n");

  const auto commands =
      say("delete 1\r\nlist-tube-used\r\ndelete\r\ndelete 2\r\ndelete 3\r\nignore default\r\n");
  ASSERT_THAT(commands, SizeIs(2));
  EXPECT_EQ(output(), "");
  EXPECT_EQ(dialogue.requests_under_way(), 6U);
  EXPECT_EQ(after(settled(session::How::deleted, 1)),
            "DELETED\r\nUSING default\r\nUNKNOWN_COMMAND\r\n");
  EXPECT_EQ(after(settled(session::How::deleted, 2)), "DELETED\r\nDELETED\r\nNOT_IGNORED\r\n");
  EXPECT_EQ(dialogue.requests_under_way(), 0U);
}

TEST_F(BeanstalkDialogueTest, WatchListsChangeAndAreTakenAsTheyAre) {
  const auto commands =
      say("watch a\r\nwatch b\r\nwatch c\r\nreserve\r\nignore default\r\nreserve\r\n"
          "list-tubes-watched\r\nwatch a\r\nignore nobody\r\n");
  ASSERT_THAT(commands, SizeIs(6));
  EXPECT_THAT(*std::get<session::Reserve>(commands[3]).queues,
              ElementsAre("default", "a", "b", "c"));
  EXPECT_THAT(*std::get<session::Reserve>(commands[4]).queues, ElementsAre("c", "a", "b"));
  EXPECT_EQ(after(session::QueueReady{}, session::QueueReady{},
                  session::QueueReady{Error{Errc::disk_full, ""}}),
            "WATCHING 2\r\nWATCHING 3\r\nOUT_OF_MEMORY\r\n");
  EXPECT_TRUE(dialogue.waits_for("default"));
  EXPECT_EQ(after(session::NotReserved{}), "TIMED_OUT\r\nWATCHING 3\r\n");
  EXPECT_FALSE(dialogue.waits_for("default"));
  EXPECT_TRUE(dialogue.waits_for("a"));
  EXPECT_EQ(after(session::NotReserved{}, session::QueueReady{}),
            "TIMED_OUT\r\nOK 16\r\n---\n- c\n- a\n- b\n\r\nWATCHING 3\r\nWATCHING 3\r\n");
}

TEST_F(BeanstalkDialogueTest, ATubeThatWasMadeIsNotMadeAgain) {
  EXPECT_THAT(say("use a\r\nuse a\r\n"), SizeIs(2)) << "it may yet be refused";
  after(session::QueueReady{}, session::QueueReady{});
  EXPECT_THAT(say("use default\r\nuse a\r\nwatch a\r\n"), SizeIs(1));
  EXPECT_EQ(after(session::QueueReady{}), "USING default\r\nUSING a\r\nWATCHING 2\r\n");
}

TEST_F(BeanstalkDialogueTest, QuestionsAreAnsweredAsTheyWereAsked) {
  const auto commands =
      say("peek 3\r\npeek-ready\r\nuse o\r\npeek-delayed\r\npeek-buried\r\nstats-job 4\r\n"
          "stats-tube o\r\nlist-tubes\r\nstats\r\nkick 9\r\npause-tube o 60\r\nfail 4 3\r\nwhy\r\n"
          "reserve-job 5\r\n");
  ASSERT_THAT(commands, SizeIs(13));
  EXPECT_EQ(std::get<session::FindJob>(commands[0]).job, 3U);
  EXPECT_EQ(std::get<session::FindNext>(commands[1]).queue, "default");
  EXPECT_EQ(std::get<session::FindNext>(commands[3]).queue, "o");
  EXPECT_EQ(std::get<session::FindNext>(commands[3]).which, session::Which::delayed);
  EXPECT_EQ(std::get<session::FindNext>(commands[4]).which, session::Which::buried);
  EXPECT_EQ(std::get<session::Kick>(commands[9]).queue, "o");
  EXPECT_EQ(std::get<session::Kick>(commands[9]).most, 9U);
  EXPECT_EQ(std::get<session::PauseQueue>(commands[10]).pause, Duration(60s));
  EXPECT_EQ(std::get<session::Fail>(commands[11]).error, "why");
  EXPECT_EQ(std::get<session::ReserveJob>(commands[12]).job, 5U);

  session::JobFound job;
  job.seq = 4;
  job.queue = "o";
  job.status = JobStatus::pending;
  job.record = test::record_of("body");
  session::QueueFacts queue;
  queue.stats = test::stats_of({"default", "o"});
  EXPECT_EQ(after(session::Found{job}, session::Found{}, session::QueueReady{}, session::Found{},
                  session::Found{}),
            "FOUND 4 4\r\nbody\r\nNOT_FOUND\r\nUSING o\r\nNOT_FOUND\r\nNOT_FOUND\r\n");
  EXPECT_THAT(after(session::Found{job}), HasSubstr("\nid: 4\n"));
  EXPECT_THAT(after(session::QueueFound{std::make_shared<const session::QueueFacts>(queue)}),
              HasSubstr("\ncurrent-using: 1\n"));
  EXPECT_EQ(after(session::AllQueues{{queue}}), "OK 8\r\n---\n- o\n\r\n");
  EXPECT_THAT(after(session::AllQueues{{queue}}), HasSubstr("\ncurrent-producers: 5\n"));
  EXPECT_EQ(after(session::Kicked{2}, settled(session::How::paused, 1),
                  session::FailDone{Failed{.status = JobStatus::dead}, {}},
                  session::NotReserved{session::Why::not_found}),
            "KICKED 2\r\nPAUSED\r\nDEAD\r\nNOT_FOUND\r\n");
  EXPECT_EQ(hub.pauses["o"], 1);
}

TEST_F(BeanstalkDialogueTest, WhatIsUnderstoodIsCounted) {
  say("put 1 1 1 1\r\nabc\r\nput 1 1 1 9999\r\n" + std::string(10001, 'x') +
      "put x\r\ndelete 7\r\ndelete 8\r\n");
  EXPECT_EQ(hub.counted[BeanstalkVerb::put], 2);
  EXPECT_EQ(hub.counted[BeanstalkVerb::remove], 2);
  EXPECT_FALSE(dialogue.is_producer());
  say("put 1 1 1 1\r\na\r\nreserve\r\n");
  EXPECT_TRUE(dialogue.is_producer());
  EXPECT_TRUE(dialogue.is_worker());
}

TEST_F(BeanstalkDialogueTest, PutsAreRefusedWhileDraining) {
  hub.is_draining = true;
  EXPECT_THAT(say("put 1 1 1 1\r\na\r\ndelete 1\r\nput 1 1 1 1\r\na\r\n"), SizeIs(1));
  EXPECT_EQ(output(), "DRAINING\r\n");
  EXPECT_EQ(after(settled(session::How::deleted, 1)), "DELETED\r\nDRAINING\r\n");
}

TEST_F(BeanstalkDialogueTest, NoMoreIsHeardThanMayBeUnderWay) {
  std::string reserves;
  for (int i = 0; i < 300; ++i) reserves += "reserve\r\n";
  const std::string_view rest = dialogue.receive(reserves);
  EXPECT_EQ(rest.size(), 44 * 9U) << "256 reserves are heard";
  EXPECT_TRUE(dialogue.is_full());
  EXPECT_EQ(dialogue.receive(rest), rest);
  dialogue.commands().clear();
  after(session::NotReserved{.count = 200});
  EXPECT_FALSE(dialogue.is_full());
  EXPECT_EQ(dialogue.receive(rest), "");
  EXPECT_EQ(dialogue.requests_under_way(), 100U);
  dialogue.commands().clear();
  after(session::NotReserved{.count = 56}, session::NotReserved{.count = 44});

  std::string deletes;
  for (int i = 0; i < 5000; ++i) deletes += "delete 1\r\n";
  EXPECT_EQ(dialogue.receive(deletes).size(), 904 * 10U) << "4096 requests are heard";
}

TEST_F(BeanstalkDialogueTest, AfterQuitNothingIsHeard) {
  EXPECT_THAT(say("delete 1\r\nquit\r\ndelete 2\r\n"), SizeIs(1));
  EXPECT_TRUE(dialogue.has_quit());
  EXPECT_FALSE(dialogue.is_answered());
  EXPECT_THAT(say("delete 3\r\n"), IsEmpty());
  EXPECT_EQ(after(settled(session::How::deleted, 1)), "DELETED\r\n");
  EXPECT_TRUE(dialogue.is_answered());
}

TEST_F(BeanstalkDialogueTest, CommandsThatNobodyTakesAreRefusedAtTheirPlace) {
  say("delete 1\r\n");
  dialogue.receive(
      "put 1 1 1 1\r\na\r\nput 1 1 1 1\r\nb\r\nlist-tube-used\r\ndelete 2\r\ndelete 3\r\n");
  dialogue.refuse_commands();
  EXPECT_THAT(dialogue.commands(), IsEmpty());
  EXPECT_TRUE(dialogue.has_quit());
  EXPECT_EQ(output(), "");
  EXPECT_EQ(after(settled(session::How::deleted, 1)),
            "DELETED\r\nDRAINING\r\nDRAINING\r\nUSING default\r\nINTERNAL_ERROR\r\n"
            "INTERNAL_ERROR\r\n");
  EXPECT_TRUE(dialogue.is_answered());
  EXPECT_EQ(dialogue.bytes_under_way(), 0U);
}

TEST_F(BeanstalkDialogueTest, TheBrokerMayAnswerInItsOwnWords) {
  say("reserve\r\nreserve\r\n");
  EXPECT_EQ(after(session::Say{"OUT_OF_MEMORY\r\n"}, session::NotReserved{}),
            "OUT_OF_MEMORY\r\nTIMED_OUT\r\n");
  EXPECT_TRUE(dialogue.is_answered());
}

}  // namespace
}  // namespace reprise::server
