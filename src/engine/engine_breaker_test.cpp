// A queue's breaker, as its jobs and workers see it (docs/scheduling.md, "An outage guard").
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/engine_fixture.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using test::Names;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr OutagePolicy kPolicy{
    .failure_rate_ppm = 500'000, .window = 1min, .min = 4, .pause = 30s, .canaries = 2};

class EngineBreaker : public test::EngineFixture {
 protected:
  EngineBreaker() { configure(config_); }

  void set_breaker(std::optional<OutagePolicy> policy) {
    config_.breaker = policy;
    configure(config_);
  }
  BreakerState state() { return stats().breaker->state; }
  // Jobs that fail until it opens; they are final, so that none comes back.
  void open() {
    for (int i = 0; i < 20 && state() != BreakerState::open; ++i) {
      push("failing");
      EXPECT_TRUE(fail(claim_one(), {.final = true}));
    }
    EXPECT_EQ(state(), BreakerState::open);
  }
  void begin_trial() {
    open();
    advance(30s);
    EXPECT_EQ(state(), BreakerState::trial);
  }
  std::vector<EventType> breaker_events() {
    std::vector<EventType> types;
    for (const Event& event : engine_->take_events()) {
      if (!is_about_a_job(event.type)) types.push_back(event.type);
    }
    return types;
  }

  QueueConfig config_{.lease = 20s, .retry = {.attempts = 3, .wait = 0s}, .breaker = kPolicy};
};

// --- Closed.

TEST_F(EngineBreaker, IsOffByDefault) {
  configure({});
  EXPECT_FALSE(stats().breaker);
  for (int i = 0; i < 100; ++i) push_dead("x");
  EXPECT_EQ(counts().dead, 100U);
}

TEST_F(EngineBreaker, OpensWhenHalfHaveFailedAndAtLeastMin) {
  push_many({"1", "2", "3", "4", "5", "6", "7", "8"});
  const auto jobs = claim(8);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ack(jobs[static_cast<std::size_t>(i)]));
  for (int i = 4; i < 7; ++i) {
    EXPECT_TRUE(fail(jobs[static_cast<std::size_t>(i)]));
    EXPECT_EQ(state(), BreakerState::closed);
  }
  EXPECT_TRUE(fail(jobs[7]));
  EXPECT_EQ(state(), BreakerState::open);
  EXPECT_EQ(stats().breaker->open_until, now() + 30s);
  EXPECT_THAT(breaker_events(), ElementsAre(EventType::breaker_open));
  EXPECT_EQ(state_of(jobs[7].token.job.seq).failures, 1U) << "what opened it counts";
}

TEST_F(EngineBreaker, ExpiriesFinalFailuresAndLostWorkersAreFailures) {
  push_many({"1", "2", "3", "4"});
  const auto jobs = claim(4);
  EXPECT_TRUE(fail(jobs[0], {.final = true}));
  EXPECT_TRUE(fail(jobs[1], {.outcome = AttemptOutcome::worker_lost}));
  EXPECT_TRUE(fail(jobs[2]));
  EXPECT_EQ(state(), BreakerState::closed);
  advance(20s);
  EXPECT_EQ(state(), BreakerState::open) << "the fourth lease ran out";
}

TEST_F(EngineBreaker, ReleasesAndDropsDoNotCount) {
  for (int i = 0; i < 20; ++i) push(std::to_string(i));
  for (const ClaimedJob& job : claim(10)) EXPECT_TRUE(release(job));
  for (const ClaimedJob& job : claim(10)) EXPECT_TRUE(drop(job.token.job.seq));
  EXPECT_EQ(stats().breaker->ended, 0U);
  EXPECT_EQ(state(), BreakerState::closed);
}

// --- Open.

TEST_F(EngineBreaker, WhileOpenNothingIsGivenOut) {
  open();
  push("a");
  EXPECT_THAT(claim_all(), IsEmpty());
  start_waiting(1);
  advance(30s - 1us);
  EXPECT_THAT(answers(), IsEmpty());
  EXPECT_EQ(engine_->next_wake(), now() + 1us);
  advance(1us);
  EXPECT_THAT(answers()[1], ElementsAre("a"));
  EXPECT_EQ(state(), BreakerState::trial);
  EXPECT_THAT(breaker_events(), ElementsAre(EventType::breaker_open, EventType::breaker_trial));
}

TEST_F(EngineBreaker, AClaimBeginsTheTrialThoughNoTickHasCome) {
  open();
  push("a");
  pass(30s);
  EXPECT_THAT(claim_all(), ElementsAre("a"));
  EXPECT_EQ(state(), BreakerState::trial);
}

TEST_F(EngineBreaker, LeasesThatAreOutGoOn) {
  push("a");
  const ClaimedJob held = claim_one();
  open();
  EXPECT_TRUE(extend(held));
  EXPECT_TRUE(ack(held));
  EXPECT_EQ(state(), BreakerState::open) << "it is no canary";
}

TEST_F(EngineBreaker, FailuresDoNotCountWhileOpen) {
  push_many({"a", "b", "c"});
  const auto held = claim(3);
  open();
  const Seq seq = held[0].token.job.seq;
  const auto failed = fail(held[0], {.error = "down"});
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->retry_at, now());
  EXPECT_EQ(state_of(seq).failures, 0U);
  EXPECT_EQ(state_of(seq).attempts, 1U);
  EXPECT_EQ(state_of(seq).last_error, "down");
  EXPECT_THAT(state_of(seq).history, SizeIs(1));
  EXPECT_EQ(stats().lanes.fresh, 1U) << "back in its lane at once";
  EXPECT_EQ(stats().breaker->spared, 1U);
  advance(20s);  // the other leases run out
  EXPECT_EQ(stats().breaker->spared, 3U);
  EXPECT_EQ(stats().lanes.fresh, 3U);
}

TEST_F(EngineBreaker, NothingDiesForItsAttempts) {
  push("a");
  const Seq seq = push("b");
  std::vector<ClaimedJob> held = claim(2);
  EXPECT_TRUE(fail(held[1]));
  held = claim(1);
  EXPECT_TRUE(fail(held[0]));
  held = claim(1);
  ASSERT_EQ(held[0].token.job.seq, seq);
  EXPECT_EQ(held[0].failures, 2U) << "the next failure would be its last";
  open();
  EXPECT_TRUE(fail(held[0]));
  EXPECT_EQ(state_of(seq).failures, 2U);
  EXPECT_EQ(stats().lanes.retry, 1U) << "back in the lane of retries";
}

TEST_F(EngineBreaker, AClientsDelayHoldsAndFinalMeansDead) {
  push_many({"a", "b"});
  const auto held = claim(2);
  open();
  EXPECT_EQ(fail(held[0], {.delay = 5s})->retry_at, now() + 5s);
  EXPECT_EQ(counts().scheduled, 1U) << "it has not failed, so it is no retry";
  const auto dead = fail(held[1], {.final = true});
  EXPECT_EQ(dead->status, JobStatus::dead);
  EXPECT_EQ(dead->reason, DeathReason::final);
  EXPECT_EQ(death_of(held[1].token.job.seq).failures, 1U);
}

TEST_F(EngineBreaker, ATtlStillEnds) {
  push("a", {.ttl = 10s});
  const ClaimedJob held = claim_one();
  open();
  pass(15s);
  const auto failed = fail(held);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->status, JobStatus::dead);
  EXPECT_EQ(failed->reason, DeathReason::expired);
}

TEST_F(EngineBreaker, NoHookIsAskedForASparedFailure) {
  config_.hooks[static_cast<std::size_t>(HookKind::on_failure)] = "return {}";
  configure(config_);
  push("a");
  const ClaimedJob held = claim_one();
  open();
  engine_->take_hook_work(now());
  EXPECT_TRUE(fail(held)) << "answered at once";
  EXPECT_THAT(engine_->take_hook_work(now()), IsEmpty());
}

// --- Trial.

TEST_F(EngineBreaker, OnlyCanariesAreGivenOut) {
  begin_trial();
  push_many({"a", "b", "c", "d"});
  EXPECT_THAT(claim_all(), ElementsAre("a", "b"));
  EXPECT_THAT(claim_all(), IsEmpty());
  EXPECT_EQ(stats().breaker->canaries_out, 2U);
}

TEST_F(EngineBreaker, ClosesWhenAllCanariesHaveSucceededAndThenAllGoOn) {
  begin_trial();
  push_many({"a", "b", "c", "d"});
  const auto canaries = claim(10);
  start_waiting(1, {.max = 10});
  EXPECT_TRUE(ack(canaries[0]));
  EXPECT_THAT(answers(), IsEmpty());
  EXPECT_TRUE(ack(canaries[1]));
  EXPECT_EQ(state(), BreakerState::closed);
  EXPECT_EQ(stats().breaker->ended, 0U) << "its window is empty";
  EXPECT_THAT(answers()[1], ElementsAre("c", "d"));
  EXPECT_THAT(breaker_events(), ElementsAre(EventType::breaker_open, EventType::breaker_trial,
                                            EventType::breaker_closed));
}

TEST_F(EngineBreaker, OneCanaryThatFailsOpensItForAnotherPause) {
  begin_trial();
  push_many({"a", "b", "c"});
  const auto canaries = claim(10);
  pass(1s);
  EXPECT_TRUE(fail(canaries[0]));
  EXPECT_EQ(state(), BreakerState::open);
  EXPECT_EQ(stats().breaker->open_until, now() + 30s);
  EXPECT_EQ(stats().breaker->opened, 2U);
  EXPECT_EQ(state_of(canaries[0].token.job.seq).failures, 0U);
  EXPECT_TRUE(ack(canaries[1])) << "decides nothing any more";
  EXPECT_EQ(state(), BreakerState::open);
}

TEST_F(EngineBreaker, ACanaryWhoseLeaseRunsOutHasFailed) {
  begin_trial();
  push("a");
  claim_one();
  advance(20s);
  EXPECT_EQ(state(), BreakerState::open);
}

TEST_F(EngineBreaker, ACanaryThatIsReleasedOrDroppedMakesRoomForAnother) {
  begin_trial();
  push_many({"a", "b", "c"});
  const auto canaries = claim(10);
  start_waiting(1);
  start_waiting(2);
  EXPECT_TRUE(release(canaries[0], 1h));
  EXPECT_THAT(answers()[1], ElementsAre("c"));
  push("d");
  EXPECT_TRUE(drop(canaries[1].token.job.seq));
  EXPECT_THAT(answers()[2], ElementsAre("d"));
  EXPECT_EQ(state(), BreakerState::trial);
}

TEST_F(EngineBreaker, ACanaryThatFailedStaysAwayLongerEachTime) {
  config_.breaker->canaries = 1;
  set_breaker(config_.breaker);
  begin_trial();
  push("poison");
  Duration last = 30s;
  for (int i = 0; i < 10; ++i) {
    const auto failed = fail(claim_one());
    ASSERT_TRUE(failed);
    EXPECT_GT(failed->retry_at - now(), last) << "longer than one pause, and than the last time";
    last = failed->retry_at - now();
    EXPECT_EQ(state(), BreakerState::open);
    advance(30s);
    EXPECT_EQ(state(), BreakerState::trial);
    EXPECT_THAT(claim_all(), IsEmpty());
    advance(last - 30s);
  }
  const ClaimedJob poison = claim_one();
  EXPECT_EQ(poison.failures, 0U);
  EXPECT_EQ(poison.attempts, 11U);
}

// Poison jobs are served first, and yet the sound ones get their chance to close it.
TEST_F(EngineBreaker, PoisonCannotKeepItOpen) {
  for (const std::uint32_t canaries : {1U, 2U, 5U}) {
    OutagePolicy policy = kPolicy;
    policy.canaries = canaries;
    set_breaker(policy);
    open();
    for (int i = 0; i < 10; ++i) push("poison", {.priority = 1});
    for (int i = 0; i < 50; ++i) push("sound");
    int trials = 0;
    while (state() != BreakerState::closed && trials < 200) {
      advance(std::max(stats().breaker->open_until - now(), Duration(1s)));
      for (const ClaimedJob& job : claim(100)) {
        EXPECT_TRUE(job.record->payload == "poison" ? fail(job).has_value() : ack(job).has_value());
      }
      ++trials;
    }
    EXPECT_EQ(state(), BreakerState::closed) << canaries << " canaries, " << trials << " trials";
    EXPECT_LT(trials, 60);
    set_breaker(std::nullopt);
    advance(24h * 8);
    for (const ClaimedJob& job : claim(1'000)) EXPECT_TRUE(ack(job));
    EXPECT_EQ(counts().pending + counts().scheduled, 0U);
  }
}

// --- When it begins anew.

TEST_F(EngineBreaker, ARestartBeginsClosed) {
  open();
  push("a");
  restart();
  EXPECT_EQ(state(), BreakerState::closed);
  EXPECT_EQ(stats().breaker->ended, 0U);
  EXPECT_THAT(claim_all(), SizeIs(1));
}

TEST_F(EngineBreaker, AChangeBeginsClosedAndAnotherSettingDoesNot) {
  open();
  push("a");
  start_waiting(1);
  config_.max_jobs = 1'000;
  configure(config_);
  EXPECT_EQ(state(), BreakerState::open);
  EXPECT_THAT(answers(), IsEmpty());
  config_.breaker->pause = 31s;
  configure(config_);
  EXPECT_EQ(state(), BreakerState::closed);
  EXPECT_THAT(answers()[1], ElementsAre("a"));
}

TEST_F(EngineBreaker, RemovingItLetsEverythingGo) {
  open();
  push("a");
  start_waiting(1);
  set_breaker(std::nullopt);
  EXPECT_FALSE(stats().breaker);
  EXPECT_THAT(answers()[1], ElementsAre("a"));
}

// A canary of the breaker before a change is none of the one that came after.
TEST_F(EngineBreaker, ACanaryOfABreakerThatWasChangedDecidesNothing) {
  begin_trial();
  push_many({"old1", "old2"});
  const auto old = claim(2);
  for (const bool removed_between : {false, true}) {
    config_.lease = 1h;
    if (removed_between) set_breaker(std::nullopt);
    OutagePolicy policy = kPolicy;
    policy.window += removed_between ? 2s : 1s;
    set_breaker(policy);
    for (const ClaimedJob& job : old) static_cast<void>(extend(job));
    open();
    clock_.set(stats().breaker->open_until);
    tick();
    ASSERT_EQ(state(), BreakerState::trial);
    const ClaimedJob& job = old[removed_between ? 1 : 0];
    EXPECT_TRUE(ack(job));
    EXPECT_EQ(state(), BreakerState::trial);
    EXPECT_EQ(stats().breaker->canaries_out, 0U);
    push_many({"a", "b", "c"});
    EXPECT_THAT(claim(10), SizeIs(2));
  }
}

}  // namespace
}  // namespace reprise
