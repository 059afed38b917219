#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/engine_fixture.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using test::Counts;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// --- When the engine wants to be woken.

class EngineWake : public test::EngineFixture {};

TEST_F(EngineWake, NeverWhenNothingWaitsForTime) {
  EXPECT_EQ(engine_->next_wake(), kNever);
  push("a");
  EXPECT_EQ(engine_->next_wake(), kNever);
}

TEST_F(EngineWake, AtTheEndOfADelayALeaseACooldownATtlOrAWait) {
  set_retry(5, 7s);
  push("delayed", {.delay = 90s});
  EXPECT_EQ(engine_->next_wake(), now() + 90s);
  push("mortal", {.ttl = 80s});
  EXPECT_EQ(engine_->next_wake(), now() + 80s);
  const ClaimedJob job = claim_one({.lease = 70s});
  EXPECT_EQ(engine_->next_wake(), now() + 70s);
  start_waiting(1, {.wait = 60s});
  EXPECT_EQ(engine_->next_wake(), now() + 60s);
  EXPECT_TRUE(fail(job));
  EXPECT_EQ(engine_->next_wake(), now() + 7s);
}

TEST_F(EngineWake, MovesOnWithEachTick) {
  for (const Duration delay : {30s, 10s, 20s}) push("a", {.delay = delay});
  const Timestamp start = now();
  for (const Duration at : {10s, 20s, 30s}) {
    EXPECT_EQ(engine_->next_wake(), start + at);
    clock_.set(engine_->next_wake());
    tick();
  }
  EXPECT_EQ(engine_->next_wake(), kNever);
  EXPECT_EQ(counts(), (Counts{.pending = 3}));
}

TEST_F(EngineWake, CoversEveryQueue) {
  push("a", {.delay = 10s});
  ASSERT_TRUE(
      push_at_once({.queue = {.name = "other"}, .create = true, .jobs = {NewJob{.delay = 5s}}}));
  EXPECT_EQ(engine_->next_wake(), now() + 5s);
  advance(5s);
  EXPECT_EQ(engine_->next_wake(), now() + 5s);
}

TEST_F(EngineWake, IsNeverLaterAfterARestart) {
  set_retry(5, 7s);
  push("delayed", {.delay = 5s});
  push("mortal", {.ttl = 4s});
  push("failing");
  const auto jobs = claim(2, {.lease = 3s});
  EXPECT_TRUE(fail(jobs[1]));
  for (int step = 0; step < 8; ++step) {
    const Timestamp wake = engine_->next_wake();
    restart();
    EXPECT_LE(engine_->next_wake(), wake) << step;
    advance(1s);
  }
}

TEST_F(EngineWake, ATickWithNothingDueChangesNothing) {
  set_retry(5, 7s);
  push_many({"a", "b"});
  push("delayed", {.delay = 10s, .ttl = 20s});
  EXPECT_TRUE(fail(claim_one({.lease = 30s})));
  claim_one({.lease = 30s});
  start_waiting(1, {.wait = 60s});
  expect_no_change([&] { tick(); });
  pass(5s);
  expect_no_change([&] { tick(); });
  EXPECT_THAT(answers(), IsEmpty());
}

// --- Ttl.

class EngineTtl : public test::EngineFixture {
 protected:
  void expect_expired(Seq seq) {
    EXPECT_EQ(death_of(seq).status, JobStatus::dead);
    EXPECT_EQ(death_of(seq).death_reason, DeathReason::expired);
    EXPECT_EQ(death_of(seq).decided_by, DecidedBy::policy);
    EXPECT_EQ(death_of(seq).ended_at, now());
  }
};

TEST_F(EngineTtl, APendingJobDiesAtItsTtl) {
  const Seq seq = push("a", {.ttl = 10s});
  advance(10s - 1us);
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  advance(1us);
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
  expect_expired(seq);
  EXPECT_EQ(totals(), (QueueTotals{.pushed = 1, .expired = 1, .died = 1, .dead_now = 1}));
  EXPECT_EQ(stats().bytes, 0U);
  EXPECT_THAT(claim_all(), IsEmpty());
}

TEST_F(EngineTtl, AScheduledJobDiesBeforeItsTurn) {
  const Seq seq = push("a", {.delay = 20s, .ttl = 10s});
  advance(10s);
  expect_expired(seq);
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
  advance(10s);
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
}

TEST_F(EngineTtl, AFailedJobDiesWhileItCoolsDownAndKeepsItsDiagnosis) {
  set_retry(5, 20s);
  const Seq seq = push("a", {.ttl = 10s});
  EXPECT_TRUE(fail(claim_one(), {.error = "timeout"}));
  advance(10s);
  expect_expired(seq);
  EXPECT_EQ(death_of(seq).failures, 1U);
  EXPECT_EQ(death_of(seq).last_error, "timeout");
  EXPECT_EQ(death_of(seq).history.size(), 1U);
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
}

TEST_F(EngineTtl, ARetryThatIsDueDiesToo) {
  set_retry(5, 5s);
  const Seq seq = push("a", {.ttl = 10s});
  EXPECT_TRUE(fail(claim_one()));
  advance(5s);
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  advance(5s);
  expect_expired(seq);
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
}

TEST_F(EngineTtl, AReleasedJobThatWaitsDiesToo) {
  const Seq pending = push("a", {.ttl = 10s});
  const Seq delayed = push("b", {.ttl = 10s});
  const auto jobs = claim(2);
  EXPECT_TRUE(release(jobs[0]));
  EXPECT_TRUE(release(jobs[1], 20s));
  advance(10s);
  expect_expired(pending);
  expect_expired(delayed);
  EXPECT_EQ(counts(), (Counts{.dead = 2}));
}

TEST_F(EngineTtl, WorkInHandMayStillFinish) {
  push("a", {.ttl = 10s});
  const ClaimedJob job = claim_one({.lease = 1min});
  advance(30s);
  EXPECT_EQ(counts(), (Counts{.active = 1}));
  EXPECT_TRUE(ack(job));
  EXPECT_EQ(totals().expired, 0U);
}

TEST_F(EngineTtl, WorkInHandDiesWhenItComesBack) {
  set_retry(5, 1h);
  const Seq released = push("released", {.ttl = 10s});
  const Seq failed = push("failed", {.ttl = 10s});
  const Seq lost = push("lost", {.ttl = 10s});
  const auto jobs = claim(3, {.lease = 1min});
  advance(30s);
  EXPECT_TRUE(release(jobs[0]));
  expect_expired(released);
  EXPECT_EQ(fail(jobs[1], {.error = "e"})->reason, DeathReason::expired);
  expect_expired(failed);
  EXPECT_EQ(death_of(failed).last_error, "e");
  advance(30s);
  expect_expired(lost);
  EXPECT_EQ(counts(), (Counts{.dead = 3}));
  EXPECT_EQ(totals(), (QueueTotals{.pushed = 3,
                                   .claimed = 3,
                                   .failed = 2,
                                   .released = 1,
                                   .lease_expired = 1,
                                   .expired = 3,
                                   .died = 3,
                                   .dead_now = 3}));
}

TEST_F(EngineTtl, AClaimBeforeTheTickDoesNotGetAJobThatIsOver) {
  const Seq seq = push("a", {.ttl = 10s});
  push("b");
  pass(10s);
  EXPECT_THAT(claim_all(), ElementsAre("b"));
  expect_expired(seq);
  tick();
  EXPECT_EQ(totals().expired, 1U) << "it died once";
}

TEST_F(EngineTtl, TheQueuesTtlIsForJobsThatBringNone) {
  configure({.ttl = 10s});
  const Seq queues = push("a");
  const Seq shorter = push("b", {.ttl = 5s});
  const Seq longer = push("c", {.ttl = 20s});
  advance(5s);
  expect_expired(shorter);
  advance(5s);
  expect_expired(queues);
  advance(10s);
  expect_expired(longer);
}

TEST_F(EngineTtl, AChangedTtlCountsFromTheNextPush) {
  configure({.ttl = 10s});
  const Seq mortal = push("a");
  configure({});
  push("b");
  advance(1h);
  expect_expired(mortal);
  EXPECT_EQ(counts(), (Counts{.pending = 1, .dead = 1}));
}

TEST_F(EngineTtl, SurvivesARestart) {
  set_retry(5, 1h);
  push("pending", {.ttl = 10s});
  push("scheduled", {.delay = 1h, .ttl = 10s});
  push("failed", {.priority = 0, .ttl = 10s});
  EXPECT_TRUE(fail(claim_one()));
  push("active", {.priority = 0, .ttl = 10s});
  const ClaimedJob active = claim_one({.lease = 1min});
  restart();
  EXPECT_EQ(engine_->next_wake(), now() + 10s);
  advance(10s);
  EXPECT_EQ(counts(), (Counts{.active = 1, .dead = 3}));
  EXPECT_TRUE(release(active));
  EXPECT_EQ(counts(), (Counts{.dead = 4}));
}

// A job that expires while everybody waits for one must not be given away.
TEST_F(EngineTtl, NobodyGetsAJobAtTheMomentItExpires) {
  push("a", {.delay = 10s, .ttl = 10s});
  start_waiting(1, {.wait = 10s});
  advance(10s);
  EXPECT_THAT(answers(), ElementsAre(Pair(1, IsEmpty())));
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
}

// --- Much at once.

class EngineBacklog : public test::EngineFixture {
 protected:
  void push_backlog(int count, const NewJob& job) {
    push_all(std::vector<Result<NewJob>>(static_cast<std::size_t>(count), job));
  }
};

TEST_F(EngineBacklog, DelaysThatEndTogetherAreTakenInSteps) {
  constexpr int kJobs = 60'000;
  push_backlog(kJobs, {.delay = 10s});
  advance(10s);
  const auto after_one = counts();
  EXPECT_GT(after_one.pending, 0U);
  EXPECT_LT(after_one.pending, kJobs) << "one tick must not hold up commands";
  EXPECT_LE(engine_->next_wake(), now()) << "so that the rest is not forgotten";
  EXPECT_EQ(claim(1).size(), 1U);
  ticks_until_idle();
  EXPECT_EQ(counts(), (Counts{.pending = kJobs - 1, .active = 1}));
}

TEST_F(EngineBacklog, LeasesThatExpireTogetherAreTakenInSteps) {
  set_retry(2, 1h);
  constexpr int kJobs = 5'000;
  push_backlog(kJobs, {});
  ASSERT_EQ(claim(kJobs, {.lease = 10s}).size(), kJobs);
  advance(10s);
  EXPECT_GT(counts().active, 0U);
  EXPECT_GT(counts().failed, 0U);
  EXPECT_LE(engine_->next_wake(), now());
  ticks_until_idle();
  EXPECT_EQ(counts(), (Counts{.failed = kJobs}));
  EXPECT_EQ(totals().lease_expired, kJobs);
}

TEST_F(EngineBacklog, JobsThatExpireTogetherAreTakenInSteps) {
  constexpr int kJobs = 5'000;
  push_backlog(kJobs, {.ttl = 10s});
  advance(10s);
  EXPECT_GT(counts().pending, 0U);
  EXPECT_GT(counts().dead, 0U);
  EXPECT_THAT(claim_all(), IsEmpty()) << "those not yet buried are over all the same";
  ticks_until_idle();
  EXPECT_EQ(counts(), (Counts{.dead = kJobs}));
  EXPECT_EQ(totals().expired, kJobs);
}

TEST_F(EngineBacklog, LargeJobsThatExpireTogetherAreTakenInSmallerSteps) {
  constexpr int kJobs = 100;
  push_backlog(kJobs, {.payload = std::string(1 << 20, 'x'), .ttl = 10s});
  advance(10s);
  EXPECT_LE(counts().dead, 17U) << "a batch holds their payloads";
  ticks_until_idle();
  EXPECT_EQ(counts(), (Counts{.dead = kJobs}));
}

TEST_F(EngineBacklog, AClaimDoesNotBuryABacklogByItself) {
  constexpr int kJobs = 5'000;
  push_backlog(kJobs, {.ttl = 10s});
  push("live");
  pass(10s);
  EXPECT_THAT(names(claim()), IsEmpty()) << "it is behind those that are over";
  EXPECT_LT(counts().dead, kJobs);
  start_waiting(1);
  ticks_until_idle();
  EXPECT_THAT(answers(), ElementsAre(Pair(1, ElementsAre("live"))));
  EXPECT_EQ(counts(), (Counts{.active = 1, .dead = kJobs}));
}

}  // namespace
}  // namespace reprise
