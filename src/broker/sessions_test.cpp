// Sessions over an engine whose clock stands still: what the beanstalk door asks of the broker.
#include "broker/sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/engine_fixture.h"

namespace reprise {
namespace {

using namespace session;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class NoSink final : public Sink {
 public:
  void deliver(std::vector<Reply>) override {}
};

// A test tells replies apart as text, as a client would see them.
std::string text_of(const Status& status) {
  return status ? "ok" : std::string(errc_info(status.error().code).wire_name);
}
std::string text_of(const Say& reply) { return reply.text; }
std::string text_of(const QueueReady& reply) { return "queue " + text_of(reply.status); }
std::string text_of(const PutDone& reply) {
  std::string text = "put";
  for (const auto& result : reply.results) {
    text += ' ' + (result ? std::to_string(result->seq)
                          : std::string(errc_info(result.error().code).wire_name));
  }
  return text;
}
std::string text_of(const Reserved& reply) {
  std::string text = "reserved";
  for (const ClaimedJob& job : reply.jobs) text += ' ' + job.record->payload;
  return text;
}
std::string text_of(const NotReserved& reply) {
  static constexpr std::array kWhy = {"timed out", "deadline soon", "not found", "no room"};
  return std::string(kWhy[static_cast<std::size_t>(reply.why)]) + " x" +
         std::to_string(reply.count);
}
std::string text_of(const Settled& reply) {
  static constexpr std::array kHow = {"deleted", "released", "buried",
                                      "touched", "kicked",   "paused"};
  std::string text = kHow[static_cast<std::size_t>(reply.how)];
  for (const Status& item : reply.items) text += ' ' + text_of(item);
  return text;
}
std::string text_of(const FailDone& reply) {
  if (!reply.result) return "fail " + std::string(errc_info(reply.result.error().code).wire_name);
  return reply.result->status == JobStatus::dead ? "fail dead" : "fail retrying";
}
std::string text_of(const Kicked& reply) { return "kicked " + std::to_string(reply.count); }
std::string text_of(const Found& reply) {
  if (!reply.job) return "nothing";
  return "found " + reply.job->record->payload + ' ' + std::string(status_name(reply.job->status));
}
std::string text_of(const QueueFound& reply) {
  return reply.queue ? "queue " + reply.queue->stats.queue.name.name : "no queue";
}
std::string text_of(const AllQueues& reply) {
  std::string text = "queues";
  for (const QueueFacts& queue : reply.queues) text += ' ' + queue.stats.queue.name.name;
  return text;
}

class SessionsTest : public test::EngineFixture {
 protected:
  using Texts = std::vector<std::string>;
  static constexpr SessionId kMine = 1;
  static constexpr SessionId kOther = 2;

  SessionsTest() {
    sessions_.emplace(*engine_, host());
    for (const SessionId id : {kMine, kOther}) {
      sinks_[id] = std::make_shared<NoSink>();
      sessions_->open(id, {.worker = "test", .sink = sinks_[id]});
    }
  }

  Sessions::Host host() {
    return {.next_claim = [this] { return next_claim_++; },
            .next_request = [this] { return next_request_++; },
            .find_dead =
                [this](QueueNumber queue, std::optional<storage::EndingKey> after, std::size_t most,
                       Sessions::Host::DeadFound found) {
                  looks_.push_back({queue, after, most, std::move(found)});
                },
            .later = [this](auto task) { later_.push_back(std::move(task)); }};
  }

  // Answers what sessions wait for, as the broker does after each round.
  void settle() {
    while (true) {
      auto answers = engine_->take_answers();
      for (Engine::ClaimAnswer& answer : answers) sessions_->take(answer, now());
      if (!answers.empty()) continue;
      if (!later_.empty()) {
        auto task = std::move(later_.front());
        later_.erase(later_.begin());
        task(now());
        continue;
      }
      if (looks_.empty()) return;
      Look look = std::move(looks_.front());
      looks_.erase(looks_.begin());
      look.found(dead_of(look), now());
    }
  }

  struct Look {
    QueueNumber queue{};
    std::optional<storage::EndingKey> after;
    std::size_t most{};
    Sessions::Host::DeadFound found;
  };
  std::vector<Ended> dead_of(const Look& look) const {
    std::vector<Ended> dead;
    for (const auto& [key, ended] : ledger_.dead_jobs) {
      if (key.queue != look.queue) continue;
      dead.push_back({{key.queue, storage::EndKind::dead, ended.state->ended_at, key.seq}, 0});
    }
    const auto place = [](const Ended& ended) { return std::pair(ended.key.at, ended.key.seq); };
    std::ranges::sort(dead, {}, place);
    if (look.after) {
      const std::pair after(look.after->at, look.after->seq);
      std::erase_if(dead, [&](const Ended& ended) { return place(ended) <= after; });
    }
    if (dead.size() > look.most) dead.resize(look.most);
    return dead;
  }

  // Replies of a session since the last call.
  Texts replies(SessionId id = kMine) {
    settle();
    for (Sessions::Told& told : sessions_->take_replies()) {
      const auto of =
          std::ranges::find(sinks_, told.sink, [](const auto& entry) { return entry.second; });
      for (const Reply& reply : told.replies) {
        told_[of->first].push_back(
            std::visit([](const auto& each) { return text_of(each); }, reply));
      }
    }
    return std::exchange(told_[id], {});
  }
  template <class... Commands>
  Texts ask_as(SessionId id, Commands... commands) {
    std::vector<Command> list;
    (list.push_back(std::move(commands)), ...);
    sessions_->submit(id, std::move(list), now());
    return replies(id);
  }
  template <class... Commands>
  Texts ask(Commands... commands) {
    return ask_as(kMine, std::move(commands)...);
  }

  static Put put(std::vector<std::string> payloads, NewJob like = {},
                 std::string queue = "default") {
    Put command{.queue = std::move(queue)};
    for (std::string& payload : payloads) {
      NewJob job = like;
      job.payload = std::move(payload);
      command.jobs.emplace_back(std::move(job));
    }
    return command;
  }
  static Reserve reserve(std::uint32_t count = 1, std::optional<Duration> wait = Duration::zero(),
                         std::vector<std::string> queues = {"default"}) {
    return {.queues = std::make_shared<const std::vector<std::string>>(std::move(queues)),
            .count = count,
            .wait = wait};
  }
  QueueStats stats(const std::string& queue = "default") {
    return *engine_->queue_stats({.name = queue}, now());
  }
  std::uint64_t count(JobStatus status, const std::string& queue = "default") {
    return stats(queue).by_status[static_cast<std::size_t>(status)];
  }

  std::optional<Sessions> sessions_;
  std::map<SessionId, std::shared_ptr<Sink>> sinks_;
  std::map<SessionId, Texts> told_;
  std::vector<Look> looks_;
  std::vector<absl::AnyInvocable<void(Timestamp)>> later_;
};

TEST_F(SessionsTest, AQueueIsMadeByItsFirstUseAsClientsExpectIt) {
  EXPECT_THAT(ask(UseQueue{"tube"}, Say{"hi"}), ElementsAre("queue ok", "hi"));
  EXPECT_EQ(stats("tube").queue.config.lease, seconds(60));
  EXPECT_EQ(stats("tube").queue.config.retry.attempts, std::nullopt);
  EXPECT_THAT(ask(FindQueue{"tube"}, FindQueue{"none"}, ListQueues{}),
              ElementsAre("queue tube", "no queue", "queues orders tube"));
}

TEST_F(SessionsTest, AQueueThatIsThereKeepsItsConfig) {
  look_at("tube");
  configure({.lease = seconds(7)});
  ask(UseQueue{"tube"}, put({"a"}, {}, "tube"));
  EXPECT_EQ(stats("tube").queue.config.lease, seconds(7));
}

TEST_F(SessionsTest, PutReserveDelete) {
  EXPECT_THAT(
      ask(put({"a", "b"}), reserve(), Delete{{1}}, reserve(), Delete{{2, 2}}),
      ElementsAre("put 1 2", "reserved a", "deleted ok", "reserved b", "deleted ok job_not_found"));
  EXPECT_EQ(count(JobStatus::completed), 2U);
}

TEST_F(SessionsTest, SeveralReservesAreAnsweredAsFarAsThereAreJobs) {
  EXPECT_THAT(ask(put({"a", "b"}), reserve(5)),
              ElementsAre("put 1 2", "reserved a b", "timed out x3"));
}

TEST_F(SessionsTest, AReserveThatWaitsHoldsUpItsSessionOnly) {
  EXPECT_THAT(ask(reserve(2, std::nullopt), Say{"behind"}), IsEmpty());
  EXPECT_THAT(ask(Say{"further behind"}), IsEmpty());
  EXPECT_THAT(ask_as(kOther, put({"a"})), ElementsAre("put 1"));
  EXPECT_THAT(replies(), ElementsAre("reserved a"));
  EXPECT_THAT(ask_as(kOther, put({"b"})), ElementsAre("put 2"));
  EXPECT_THAT(replies(), ElementsAre("reserved b", "behind", "further behind"));
}

TEST_F(SessionsTest, EachReserveHasItsOwnTimeout) {
  EXPECT_THAT(ask(reserve(2, seconds(5))), IsEmpty());
  advance(milliseconds(4999));
  EXPECT_THAT(replies(), IsEmpty());
  advance(milliseconds(1));
  EXPECT_THAT(replies(), ElementsAre("timed out x1"));
  advance(seconds(5));
  EXPECT_THAT(replies(), ElementsAre("timed out x1"));
}

TEST_F(SessionsTest, TheMostUrgentJobOfAllWatchedQueuesComesFirst) {
  ask(put({"b5"}, {.priority = 5}, "b"), put({"a7"}, {.priority = 7}, "a"),
      put({"a5"}, {.priority = 5}, "a"), put({"c1"}, {.priority = 1}, "c"));
  EXPECT_THAT(ask(reserve(4, Duration::zero(), {"a", "b"})),
              ElementsAre("reserved b5 a5 a7", "timed out x1"));
}

TEST_F(SessionsTest, AReserveWaitsForAllItsQueues) {
  EXPECT_THAT(ask(reserve(2, std::nullopt, {"a", "b", "c"})), IsEmpty());
  ask_as(kOther, put({"in c"}, {}, "c"));
  EXPECT_THAT(replies(), ElementsAre("reserved in c"));
  ask_as(kOther, put({"in a"}, {}, "a"));
  EXPECT_THAT(replies(), ElementsAre("reserved in a"));
}

TEST_F(SessionsTest, AReserveOutlivesOneOfItsQueues) {
  EXPECT_THAT(ask(reserve(1, std::nullopt, {"a", "b"})), IsEmpty());
  ASSERT_TRUE(engine_->delete_queue({.name = "a"}, "", now()));
  EXPECT_THAT(replies(), IsEmpty());
  ask_as(kOther, put({"in b"}, {}, "b"));
  EXPECT_THAT(replies(), ElementsAre("reserved in b"));
}

TEST_F(SessionsTest, AJobsOwnLeaseIsItsTimeToRun) {
  ask(put({"a"}, {.lease = seconds(10)}), reserve());
  advance(milliseconds(9999));
  EXPECT_THAT(ask(Touch{{1}}), ElementsAre("touched ok"));
  advance(milliseconds(9999));
  EXPECT_THAT(ask(Touch{{1}}), ElementsAre("touched ok"));
  advance(seconds(10));
  EXPECT_THAT(ask(Touch{{1}}), ElementsAre("touched lease_lost"));
  EXPECT_EQ(count(JobStatus::pending), 1U);
}

TEST_F(SessionsTest, AReserveIsToldThatALeaseEndsSoon) {
  ask(put({"a", "b"}, {.lease = seconds(10)}), reserve(2));
  EXPECT_THAT(ask(reserve(1, std::nullopt)), IsEmpty());
  advance(milliseconds(8999));
  EXPECT_THAT(replies(), IsEmpty());
  advance(milliseconds(1));
  EXPECT_THAT(replies(), ElementsAre("deadline soon x1"));
  EXPECT_THAT(ask(reserve(2)), ElementsAre("deadline soon x2"));
  ask_as(kOther, put({"c"}));
  EXPECT_THAT(ask(reserve()), ElementsAre("reserved c")) << "a job that is there goes first";
}

TEST_F(SessionsTest, ReleaseCountsNoFailureAndMayChangeThePriority) {
  ask(put({"a", "b"}, {.priority = 5}), reserve());
  EXPECT_THAT(ask(Release{{{1, 9, Duration::zero()}}}, reserve(2)),
              ElementsAre("released ok", "reserved b a"));
  const auto sight = engine_->look_at({stats().queue.number, 1}, now());
  EXPECT_EQ(sight->record->priority, 9U);
  EXPECT_EQ(sight->state->failures, 0U);
  EXPECT_EQ(sight->state->attempts, 2U);
}

TEST_F(SessionsTest, AReleasedJobWaitsForItsDelay) {
  ask(put({"a"}), reserve());
  EXPECT_THAT(ask(Release{{{1, 5, seconds(3)}}}, reserve(), FindNext{"default", Which::delayed}),
              ElementsAre("released ok", "timed out x1", "found a scheduled"));
  advance(seconds(3));
  EXPECT_THAT(ask(reserve()), ElementsAre("reserved a"));
}

TEST_F(SessionsTest, BuryPutsAsideWithoutAFailure) {
  ask(put({"a", "b"}), reserve(2));
  EXPECT_THAT(ask(session::Bury{{{2, 5}, {1, 6}, {7, 0}}}, FindNext{"default", Which::buried}),
              ElementsAre("buried ok ok job_not_found", "found b dead"));
  const auto sight = engine_->look_at({stats().queue.number, 1}, now());
  EXPECT_EQ(sight->state->death_reason, DeathReason::buried);
  EXPECT_EQ(sight->state->decided_by, DecidedBy::client);
  EXPECT_EQ(sight->state->failures, 0U);
  EXPECT_EQ(sight->state->history.back().outcome, AttemptOutcome::buried);
  EXPECT_EQ(sight->record->priority, 6U);
  EXPECT_EQ(stats().totals.failed, 0U);
}

TEST_F(SessionsTest, KickBringsBackTheDeadLongestDeadFirst) {
  ask(put({"a", "b", "c"}), reserve(3), session::Bury{{{3, 5}}});
  advance(seconds(1));
  ask(session::Bury{{{1, 5}, {2, 5}}});
  EXPECT_THAT(ask(Kick{"default", 2}, reserve(3)),
              ElementsAre("kicked 2", "reserved a c", "timed out x1"));
  EXPECT_THAT(ask(Kick{"default", 10}, Kick{"default", 10}), ElementsAre("kicked 1", "kicked 0"));
}

TEST_F(SessionsTest, KickOfManyGoesOnPageByPage) {
  constexpr std::uint32_t kJobs = 2500;
  std::vector<std::string> payloads(kJobs, "x");
  ask(put(payloads));
  ask(reserve(kJobs));
  session::Bury all;
  for (Seq seq = 1; seq <= kJobs; ++seq) all.items.push_back({seq, 5});
  ask(all);
  EXPECT_THAT(ask(Kick{"default", kJobs - 1}), ElementsAre("kicked 2499"));
  EXPECT_EQ(count(JobStatus::pending), kJobs - 1);
}

// Those found ahead may be gone by the time it is their turn; others take their place.
TEST_F(SessionsTest, KickLooksForTheNextOnesWhileItKicks) {
  constexpr std::uint32_t kJobs = 700;
  ask(put(std::vector<std::string>(kJobs, "x")), reserve(kJobs));
  session::Bury all;
  for (Seq seq = 1; seq <= kJobs; ++seq) all.items.push_back({seq, 5});
  ask(all);
  const auto take_look = [&] {
    Look look = std::move(looks_.at(0));
    looks_.erase(looks_.begin());
    return look;
  };
  sessions_->submit(kMine, {Kick{"default", 600}}, now());
  Look first = take_look();
  EXPECT_EQ(first.after, std::nullopt);
  first.found(dead_of(first), now());
  EXPECT_EQ(count(JobStatus::dead), kJobs - first.most);
  ASSERT_EQ(looks_.size(), 1U) << "it need not wait until these are stored";
  Look second = take_look();
  std::vector<Ended> found = dead_of(second);
  const Seq gone = found.back().key.seq;
  EXPECT_THAT(ask_as(kOther, Delete{{gone}}), ElementsAre("deleted ok"));
  second.found(std::move(found), now());
  EXPECT_THAT(replies(), ElementsAre("kicked 600"));
  EXPECT_EQ(count(JobStatus::pending), 600U);
  EXPECT_EQ(count(JobStatus::dead), kJobs - 601);
}

TEST_F(SessionsTest, KickEndsWhenTheDeadCannotBeRead) {
  constexpr std::uint32_t kJobs = 300;
  ask(put(std::vector<std::string>(kJobs, "x")), reserve(kJobs));
  session::Bury all;
  for (Seq seq = 1; seq <= kJobs; ++seq) all.items.push_back({seq, 5});
  ask(all);
  sessions_->submit(kMine, {Kick{"default", kJobs}}, now());
  Look first = std::move(looks_.at(0));
  looks_.clear();
  first.found(dead_of(first), now());
  ASSERT_EQ(looks_.size(), 1U);
  Look second = std::move(looks_.at(0));
  looks_.clear();
  second.found(Error{Errc::overloaded, "too many reads are waiting"}, now());
  EXPECT_THAT(replies(), ElementsAre("kicked 250"));
}

TEST_F(SessionsTest, KickTakesThoseThatWaitWhenNobodyIsDead) {
  ask(put({"a", "b"}, {.delay = seconds(60)}));
  EXPECT_THAT(ask(Kick{"default", 1}, reserve(2)),
              ElementsAre("kicked 1", "reserved a", "timed out x1"));
  EXPECT_THAT(ask(Kick{"none", 1}, Kick{"default", 0}), ElementsAre("kicked 0", "kicked 0"));
}

TEST_F(SessionsTest, KickOfManyThatWaitGoesOnStepByStep) {
  ask(put(std::vector<std::string>(2500, "x"), {.delay = seconds(60)}));
  EXPECT_THAT(ask(Kick{"default", 2499}, Say{"behind"}), ElementsAre("kicked 2499", "behind"));
  EXPECT_EQ(count(JobStatus::pending), 2499U);
  EXPECT_EQ(count(JobStatus::scheduled), 1U);
}

TEST_F(SessionsTest, KickJobTakesTheDeadAndThoseThatWait) {
  ask(put({"a"}), put({"b"}, {.delay = seconds(60)}), reserve(), session::Bury{{{1, 5}}});
  EXPECT_THAT(ask(KickJob{1}, KickJob{2}, KickJob{2}, KickJob{9}, reserve(2)),
              ElementsAre("kicked ok", "kicked ok", "kicked wrong_status", "kicked job_not_found",
                          "reserved a b"));
}

TEST_F(SessionsTest, ReserveJobTakesItFromWhereverItWaits) {
  ask(put({"a", "b"}), put({"c"}, {.delay = seconds(60)}), reserve(), session::Bury{{{1, 5}}});
  EXPECT_THAT(
      ask(ReserveJob{2}, ReserveJob{3}, ReserveJob{1}, ReserveJob{1}, ReserveJob{9}),
      ElementsAre("reserved b", "reserved c", "reserved a", "not found x1", "not found x1"));
  EXPECT_THAT(ask_as(kOther, ReserveJob{2}), ElementsAre("not found x1"));
  EXPECT_THAT(ask(Delete{{1, 2, 3}}), ElementsAre("deleted ok ok ok"));
}

TEST_F(SessionsTest, WhatNobodyHoldsAnybodyMayDelete) {
  ask(put({"a", "b"}), put({"c"}, {.delay = seconds(60)}), put({"d"}, {}, "other"), reserve(),
      session::Bury{{{1, 5}}});
  EXPECT_THAT(ask_as(kOther, Delete{{1, 2, 3, 4, 5}}),
              ElementsAre("deleted ok ok ok ok job_not_found"));
  EXPECT_EQ(stats().totals.dropped, 3U);
}

TEST_F(SessionsTest, WhatAnotherHoldsIsItsOwn) {
  ask(put({"a"}), reserve());
  EXPECT_THAT(ask_as(kOther, Delete{{1}}, Release{{{1, 5, {}}}}, session::Bury{{{1, 5}}},
                     Touch{{1}}, Fail{1, "boom"}, KickJob{1}, FindJob{1}),
              ElementsAre("deleted job_not_found", "released job_not_found", "buried job_not_found",
                          "touched job_not_found", "fail job_not_found", "kicked wrong_status",
                          "found a active"));
  EXPECT_THAT(ask(Delete{{1}}), ElementsAre("deleted ok"));
}

TEST_F(SessionsTest, AnExpiredReserveIsDeletedLikeAnyThatNobodyHolds) {
  ask(put({"a"}, {.lease = seconds(1)}), reserve());
  advance(seconds(1));
  EXPECT_THAT(ask(Delete{{1}}), ElementsAre("deleted ok"));
  EXPECT_EQ(stats().totals.dropped, 1U);
}

TEST_F(SessionsTest, FailIsDecidedByTheQueue) {
  look_at("default");
  set_retry(2, seconds(9));
  ask(put({"a"}), reserve());
  EXPECT_THAT(ask(Fail{1, "boom"}), ElementsAre("fail retrying"));
  advance(seconds(9));
  EXPECT_THAT(ask(reserve(), Fail{1, "boom"}), ElementsAre("reserved a", "fail dead"));
  EXPECT_THAT(ask(Fail{1, "boom"}), ElementsAre("fail job_not_found"));
}

TEST_F(SessionsTest, PeekFindsWhatIsNext) {
  ask(put({"a", "b"}, {.priority = 5}), put({"c"}, {.delay = seconds(60)}));
  EXPECT_THAT(ask(FindNext{"default", Which::ready}, FindNext{"default", Which::delayed},
                  FindNext{"default", Which::buried}, FindNext{"none", Which::ready}, FindJob{2},
                  FindJob{9}),
              ElementsAre("found a pending", "found c scheduled", "nothing", "nothing",
                          "found b pending", "nothing"));
}

TEST_F(SessionsTest, APausedQueueGivesOutNothingForSoLong) {
  ask(put({"a"}));
  EXPECT_THAT(ask(PauseQueue{"default", seconds(10)}, PauseQueue{"none", seconds(1)}, reserve()),
              ElementsAre("paused ok", "paused queue_not_found", "timed out x1"));
  const auto rest = engine_->rest_of({.name = "default"}, now());
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->asked, seconds(10));
  EXPECT_THAT(ask(reserve(1, std::nullopt)), IsEmpty());
  advance(seconds(10));
  EXPECT_THAT(replies(), ElementsAre("reserved a"));
  EXPECT_FALSE(engine_->rest_of({.name = "default"}, now()));
}

TEST_F(SessionsTest, APauseOfNothingEndsAPause) {
  ask(put({"a"}), PauseQueue{"default", seconds(10)});
  EXPECT_THAT(ask(PauseQueue{"default", {}}, reserve()), ElementsAre("paused ok", "reserved a"));
}

TEST_F(SessionsTest, WhatASessionHoldsIsReleasedWhenItCloses) {
  ask(put({"a", "b"}), reserve(2));
  sessions_->close(kMine, now());
  EXPECT_EQ(count(JobStatus::pending), 2U);
  EXPECT_EQ(stats().totals.failed, 0U);
  EXPECT_THAT(ask_as(kOther, reserve(2)), ElementsAre("reserved a b"));
}

TEST_F(SessionsTest, AClosedSessionWaitsForNothing) {
  ask(reserve(1, std::nullopt));
  sessions_->close(kMine, now());
  EXPECT_THAT(ask_as(kOther, put({"a"}), reserve()), ElementsAre("put 1", "reserved a"));
}

TEST_F(SessionsTest, WaitsCanBeEnded) {
  ask(reserve(2, std::nullopt), Say{"behind"}, reserve(1, seconds(9)));
  sessions_->end_waits(kMine);
  EXPECT_THAT(replies(), ElementsAre("timed out x1", "timed out x1", "behind", "timed out x1"));
  EXPECT_THAT(ask(reserve(1, std::nullopt)), ElementsAre("timed out x1"));
  EXPECT_THAT(ask(put({"a"}), reserve()), ElementsAre("put 1", "reserved a"));
}

TEST_F(SessionsTest, CommandsOfAClosedSessionAreNothing) {
  sessions_->close(kMine, now());
  EXPECT_THAT(ask(put({"a"})), IsEmpty());
  EXPECT_EQ(sessions_->size(), 1U);
}

TEST_F(SessionsTest, UrgentJobsAreCounted) {
  ask(put({"a"}, {.priority = 1023}), put({"b"}, {.priority = 1024}));
  EXPECT_EQ(engine_->count_below({.name = "default"}, kUrgentBelow), 1U);
}

TEST_F(SessionsTest, RefusedJobsKeepTheirPlaces) {
  look_at("default");
  configure({.max_jobs = 1});
  EXPECT_THAT(ask(put({"a", "b"}), put({"c"})), ElementsAre("put 1 queue_full", "put queue_full"));
}

}  // namespace
}  // namespace reprise
