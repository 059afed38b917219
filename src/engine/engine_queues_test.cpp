#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "support/engine_fixture.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using test::Counts;
using test::Names;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class EngineQueues : public test::EngineFixture {
 protected:
  Names listed(const std::string& ns) {
    Names result;
    for (const QueueStats& stats : engine_->list_queues(ns, now())) {
      result.push_back(stats.queue.name.ns + "/" + stats.queue.name.name);
    }
    return result;
  }
};

// --- Making and changing.

TEST_F(EngineQueues, PutMakesAQueueThenReplacesItsConfigAsAWhole) {
  const QueueName name{.ns = "shop", .name = "mail"};
  const auto made =
      engine_->put_queue({.queue = name, .config = {.lease = 5s, .max_jobs = 7}}, now());
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->created);
  EXPECT_EQ(made->stats.queue.created_at, now());
  const Timestamp created = now();
  pass(1h);
  const auto replaced = engine_->put_queue({.queue = name, .config = {.ttl = 1min}}, now());
  ASSERT_TRUE(replaced);
  EXPECT_FALSE(replaced->created);
  EXPECT_EQ(replaced->stats.queue.config, (QueueConfig{.ttl = 1min}));
  EXPECT_EQ(replaced->stats.queue.created_at, created);
  EXPECT_EQ(ledger_.queues.at(replaced->stats.queue.number), replaced->stats.queue);
}

TEST_F(EngineQueues, PutKeepsJobsAndPause) {
  push("a");
  pause();
  configure({.lease = 5s});
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  EXPECT_TRUE(stats().queue.paused);
}

TEST_F(EngineQueues, OnlyIfAbsentLeavesAnExistingOneAlone) {
  configure({.lease = 5s});
  const auto again = engine_->put_queue({.queue = queue_, .only_if_absent = true}, now());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::queue_exists);
  EXPECT_EQ(stats().queue.config.lease, 5s);
}

TEST_F(EngineQueues, EditSeesTheCurrentConfigAndStoresTheNewOne) {
  configure({.lease = 5s, .max_jobs = 7});
  const auto edited = engine_->edit_queue(
      queue_,
      [](QueueConfig& config) {
        config.lease *= 2;
        return ok();
      },
      now());
  ASSERT_TRUE(edited);
  EXPECT_EQ(edited->queue.config, (QueueConfig{.lease = 10s, .max_jobs = 7}));
  EXPECT_EQ(ledger_.queues.at(number()).config.lease, 10s);
}

TEST_F(EngineQueues, ARefusedEditChangesNothing) {
  const auto edited = engine_->edit_queue(
      queue_,
      [](QueueConfig& config) -> Status {
        config.lease = 1h;
        return Error{Errc::invalid_field, "no"};
      },
      now());
  ASSERT_FALSE(edited);
  EXPECT_EQ(edited.error().code, Errc::invalid_field);
  EXPECT_EQ(stats().queue.config, QueueConfig{});
}

TEST_F(EngineQueues, PauseAndResumeAreIdempotentAndStored) {
  pause();
  pause();
  EXPECT_TRUE(stats().queue.paused);
  restart();
  EXPECT_TRUE(stats().queue.paused);
  resume();
  resume();
  restart();
  EXPECT_FALSE(stats().queue.paused);
}

TEST_F(EngineQueues, AreListedByNameAndNamespace) {
  for (const QueueName& name :
       {QueueName{.ns = "b", .name = "z"}, QueueName{.ns = "b", .name = "a"},
        QueueName{.ns = "a", .name = "q"}}) {
    ASSERT_TRUE(engine_->put_queue({.queue = name}, now()));
  }
  EXPECT_THAT(listed("b"), ElementsAre("b/a", "b/z"));
  EXPECT_THAT(listed("nowhere"), IsEmpty());
  EXPECT_THAT(listed(""), ElementsAre("a/q", "b/a", "b/z", "default/orders"));
}

TEST_F(EngineQueues, TheSameNameInAnotherNamespaceIsAnotherQueue) {
  push("a");
  const QueueName twin{.ns = "other", .name = queue_.name};
  ASSERT_TRUE(engine_->put_queue({.queue = twin}, now()));
  EXPECT_NE(*engine_->find_queue(twin), number());
  EXPECT_EQ(engine_->queue_stats(twin, now())->by_status[1], 0U);
}

TEST_F(EngineQueues, EveryCommandNamesTheQueueThatIsNotThere) {
  const QueueName wrong{.name = "order"};
  const std::vector<Error> errors = {
      engine_
          ->edit_queue(
              wrong, [](QueueConfig&) { return ok(); }, now())
          .error(),
      engine_->pause_queue(wrong, true, now()).error(),
      engine_->delete_queue(wrong, "", now()).error(),
      engine_->queue_stats(wrong, now()).error(),
      engine_->find_queue(wrong).error(),
      engine_->drop(wrong, 1, "", now()).error(),
  };
  for (const Error& error : errors) {
    EXPECT_EQ(error.code, Errc::queue_not_found);
    EXPECT_THAT(error.detail, HasSubstr("'order'"));
    EXPECT_THAT(error.detail, HasSubstr("did you mean 'orders'"));
  }
}

// --- Deleting.

class EngineDelete : public EngineQueues {
 protected:
  QueueStats delete_queue() {
    auto last = engine_->delete_queue(queue_, "", now());
    EXPECT_TRUE(last) << last.error().detail;
    return last ? *last : QueueStats{};
  }
};

TEST_F(EngineDelete, TakesAllThatTheQueueHeld) {
  set_retry(5, 1h);
  push("failed");
  EXPECT_TRUE(fail(claim_one()));
  push("dead", {.key = "k"});
  EXPECT_TRUE(fail(claim_one(), {.final = true}));
  push("active", {.ttl = 1h});
  claim_one();
  push("pending");
  push("scheduled", {.delay = 1h});
  const QueueStats last = delete_queue();
  EXPECT_EQ(Counts::of(last.by_status),
            (Counts{.scheduled = 1, .pending = 1, .active = 1, .failed = 1, .dead = 1}));
  EXPECT_TRUE(ledger_.jobs.empty());
  EXPECT_TRUE(ledger_.states.empty());
  EXPECT_TRUE(ledger_.dead_jobs.empty());
  EXPECT_TRUE(ledger_.keys.empty());
  EXPECT_TRUE(ledger_.queues.empty());
  EXPECT_EQ(engine_->queue_stats(queue_, now()).error().code, Errc::queue_not_found);
}

TEST_F(EngineDelete, NoTimerOfItActsLater) {
  set_retry(5, 1h);
  push("scheduled", {.delay = 10s, .ttl = 20s});
  push("active");
  claim_one({.lease = 10s});
  delete_queue();
  EXPECT_EQ(engine_->next_wake(), kNever);
  configure({});
  advance(1h);
  EXPECT_EQ(counts(), Counts{});
  EXPECT_EQ(totals(), QueueTotals{});
}

TEST_F(EngineDelete, WhoeverWaitedIsToldSo) {
  start_waiting(1);
  start_waiting(2, {.lane = LaneChoice::retry});
  delete_queue();
  EXPECT_THAT(answers(), ElementsAre(Pair(1, ElementsAre("queue_not_found")),
                                     Pair(2, ElementsAre("queue_not_found"))));
  configure({});
  push("a");
  EXPECT_THAT(answers(), IsEmpty());
}

TEST_F(EngineDelete, ANumberIsNeverUsedAgain) {
  const QueueNumber first = number();
  delete_queue();
  configure({});
  const QueueNumber second = number();
  EXPECT_NE(second, first);
  delete_queue();
  restart();
  configure({});
  EXPECT_NE(number(), first);
  EXPECT_NE(number(), second);
}

TEST_F(EngineDelete, OtherQueuesAreLeftAlone) {
  push("a");
  const ClaimedJob job = claim_one();
  const QueueName other{.name = "other"};
  ASSERT_TRUE(push_at_once({.queue = other, .create = true, .jobs = {NewJob{.key = "k"}}}));
  ASSERT_TRUE(engine_->delete_queue(other, "", now()));
  EXPECT_TRUE(ack(job));
  EXPECT_EQ(counts(), (Counts{.completed = 1}));
}

// --- Dropping one job.

class EngineDrop : public test::EngineFixture {};

// What cannot be read of the job when it is dropped: that must make no difference.
enum class Damage : std::uint8_t { none, record, state, both };

class EngineDropAny : public EngineDrop, public testing::WithParamInterface<Damage> {
 protected:
  void damage(Seq seq) {
    const bool record = GetParam() == Damage::record || GetParam() == Damage::both;
    const bool state = GetParam() == Damage::state || GetParam() == Damage::both;
    if (record) ledger_.corrupt_records.insert(key_of(seq));
    if (state) ledger_.corrupt_states.insert(key_of(seq));
    if (state && ledger_.dead_jobs.contains(key_of(seq))) ledger_.corrupt_dead.insert(key_of(seq));
  }
  void expect_dropped(Seq seq, JobStatus was) {
    damage(seq);
    const auto dropped = drop(seq);
    ASSERT_TRUE(dropped) << dropped.error().detail;
    EXPECT_EQ(dropped->job, key_of(seq));
    EXPECT_EQ(dropped->status, was);
    EXPECT_EQ(counts(), Counts{});
    EXPECT_EQ(stats().bytes, 0U);
    EXPECT_EQ(totals().dropped, 1U);
    EXPECT_TRUE(ledger_.jobs.empty());
    EXPECT_TRUE(ledger_.states.empty());
    EXPECT_TRUE(ledger_.dead_jobs.empty());
    advance(24h * 365);
    EXPECT_EQ(counts(), Counts{}) << "a timer of it acted later";
    EXPECT_EQ(drop(seq).error().code, Errc::job_not_found);
    EXPECT_EQ(totals().dropped, 1U);
  }
};

TEST_P(EngineDropAny, APendingJob) { expect_dropped(push("a", {.ttl = 1h}), JobStatus::pending); }

TEST_P(EngineDropAny, AScheduledJob) {
  expect_dropped(push("a", {.delay = 1min, .ttl = 1h}), JobStatus::scheduled);
}

TEST_P(EngineDropAny, AScheduledJobWhoseTimeHasComeUnnoticed) {
  const Seq seq = push("a", {.delay = 1min, .ttl = 1h});
  pass(1min);
  expect_dropped(seq, JobStatus::pending);
}

TEST_P(EngineDropAny, AScheduledJobWhoseTimeHasCome) {
  const Seq seq = push("a", {.delay = 1min, .ttl = 1h});
  advance(1min);
  expect_dropped(seq, JobStatus::pending);
}

TEST_P(EngineDropAny, AnActiveJobLosesItsLease) {
  const Seq seq = push("a", {.ttl = 1h});
  const ClaimedJob job = claim_one();
  expect_dropped(seq, JobStatus::active);
  EXPECT_EQ(ack(job).error().code, Errc::lease_lost);
  EXPECT_EQ(totals().completed, 0U);
}

TEST_P(EngineDropAny, AFailedJob) {
  set_retry(5, 1min);
  const Seq seq = push("a", {.ttl = 1h});
  EXPECT_TRUE(fail(claim_one()));
  expect_dropped(seq, JobStatus::failed);
}

TEST_P(EngineDropAny, ARetryThatIsDue) {
  set_retry(5, 1min);
  const Seq seq = push("a", {.ttl = 1h});
  EXPECT_TRUE(fail(claim_one()));
  advance(1min);
  expect_dropped(seq, JobStatus::pending);
}

TEST_P(EngineDropAny, AReleasedJobThatWaits) {
  const Seq seq = push("a");
  EXPECT_TRUE(release(claim_one(), 1min));
  expect_dropped(seq, JobStatus::scheduled);
}

TEST_P(EngineDropAny, ADeadJob) {
  const Seq seq = push("a", {.ttl = 1h});
  EXPECT_TRUE(fail(claim_one()));
  expect_dropped(seq, JobStatus::dead);
}

TEST_P(EngineDropAny, AfterARestartToo) {
  set_retry(5, 1min);
  const Seq seq = push("a", {.ttl = 1h});
  EXPECT_TRUE(fail(claim_one()));
  restart();
  expect_dropped(seq, JobStatus::failed);
}

TEST_P(EngineDropAny, LeavesAllOthersAlone) {
  set_retry(5, 1min);
  push_many({"active", "failed"});
  const auto jobs = claim(2);
  EXPECT_TRUE(fail(jobs[1]));
  const Seq first = push("first", {.priority = 1});
  push("second", {.priority = 1, .ttl = 1h});
  push("third", {.priority = 2});
  push("later", {.delay = 1min});
  damage(first);
  EXPECT_TRUE(drop(first));
  EXPECT_EQ(counts(), (Counts{.scheduled = 1, .pending = 2, .active = 1, .failed = 1}));
  EXPECT_EQ(stats().bytes, std::string("activefailedsecondthirdlater").size());
  EXPECT_THAT(claim_all(), ElementsAre("second", "third"));
}

std::string damage_name(const testing::TestParamInfo<Damage>& damage) {
  static constexpr std::array kNames = {"Nothing", "Record", "State", "Both"};
  return kNames[static_cast<std::size_t>(damage.param)];
}
INSTANTIATE_TEST_SUITE_P(Unreadable, EngineDropAny,
                         testing::Values(Damage::none, Damage::record, Damage::state, Damage::both),
                         damage_name);

TEST_F(EngineDrop, AJobOfAnotherQueueIsNotFound) {
  const Seq seq = push("a");
  const QueueName other{.name = "other"};
  ASSERT_TRUE(engine_->put_queue({.queue = other}, now()));
  EXPECT_EQ(engine_->drop(other, seq, "", now()).error().code, Errc::job_not_found);
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
}

TEST_F(EngineDrop, IsAnEvent) {
  const Seq seq = push("a");
  engine_->take_events();
  EXPECT_TRUE(drop(seq));
  const auto events = engine_->take_events();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].type, EventType::dropped);
  EXPECT_EQ(events[0].seq, seq);
}

}  // namespace
}  // namespace reprise
