// What becomes of jobs that have ended: purged by hand, kept for a while, let go of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/engine_fixture.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using test::Counts;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class EngineKeeping : public test::EngineFixture {
 protected:
  // As who looks for ended jobs finds it now, to be let go of then or later.
  Engine::EndedRef found(Seq seq, PurgeCause cause = PurgeCause::keep_dead) const {
    const auto completed = ledger_.completed_jobs.find(key_of(seq));
    if (completed != ledger_.completed_jobs.end()) {
      return {key_of(seq), JobStatus::completed, completed->second.state->ended_at, {}};
    }
    return {key_of(seq), JobStatus::dead, death_of(seq).ended_at, cause};
  }
  void let_go(const Engine::EndedRef& ref) { engine_->let_go({&ref, 1}, now()); }
  // Of the queue, or one that wants nothing.
  Engine::Keeping keeping() {
    for (const Engine::Keeping& keeping : engine_->keepings(now())) {
      if (keeping.queue == number()) return keeping;
    }
    return {};
  }
  Seq push_completed(std::string payload) {
    const Seq seq = push(std::move(payload));
    EXPECT_TRUE(ack(claim_one({.worker = "w"})));
    return seq;
  }
};

// --- Purge.

TEST_F(EngineKeeping, APurgedJobIsGone) {
  const Seq seq = push_dead("a");
  const Seq other = push_dead("b");
  engine_->take_events();
  EXPECT_EQ(purge({seq}).done, 1U);
  EXPECT_FALSE(ledger_.dead_jobs.contains(key_of(seq)));
  EXPECT_TRUE(ledger_.dead_jobs.contains(key_of(other)));
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
  EXPECT_EQ(totals().purged, 1U);
  const auto events = engine_->take_events();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].type, EventType::purged);
  EXPECT_EQ(events[0].cause, PurgeCause::purge);
  EXPECT_EQ(events[0].seq, seq);
  EXPECT_THAT(purge({seq}).not_found, SizeIs(1));
  EXPECT_THAT(retry({seq}).not_found, SizeIs(1));
}

TEST_F(EngineKeeping, AJobThatCoolsDownCannotBePurged) {
  set_retry(5, 1h);
  const Seq seq = push("a");
  EXPECT_TRUE(fail(claim_one()));
  expect_no_change([&] { EXPECT_EQ(purge({seq}).skipped.at(0).status, JobStatus::failed); });
}

TEST_F(EngineKeeping, OneThatDiedAsCorruptCanBePurged) {
  const Seq seq = push("a");
  ledger_.corrupt_records.insert(key_of(seq));
  EXPECT_THAT(claim_all(), IsEmpty());
  EXPECT_EQ(purge({seq}).done, 1U);
  EXPECT_EQ(counts(), Counts{});
}

// --- Completed jobs.

TEST_F(EngineKeeping, CompletedJobsAreKeptWhenAskedFor) {
  configure({.retry = {.attempts = 3}, .keep_completed = 1h});
  const Seq seq = push("a", {.headers = {{"tenant", "t"}}, .ttl = 10min});
  EXPECT_TRUE(fail(claim_one(), {.error = "e"}));
  const Timestamp claimed_at = now();
  const ClaimedJob job = claim_one({.worker = "w"});
  advance(5s);
  EXPECT_TRUE(ack(job));
  EXPECT_THAT(ledger_.jobs, IsEmpty());
  EXPECT_THAT(ledger_.states, IsEmpty());
  const EndedJob kept = ledger_.completed_jobs.at(key_of(seq));
  EXPECT_EQ(kept.record->payload, "a");
  EXPECT_EQ(kept.state->status, JobStatus::completed);
  EXPECT_EQ(kept.state->ended_at, now());
  EXPECT_EQ(kept.state->lease_nonce, 0U);
  EXPECT_EQ(kept.state->history.back(), (Attempt{.number = 2,
                                                 .started_at = claimed_at,
                                                 .ended_at = now(),
                                                 .outcome = AttemptOutcome::completed,
                                                 .worker = "w"}));
  EXPECT_EQ(totals().completed, 1U);
  EXPECT_EQ(totals().completed_now, 1U);
  EXPECT_EQ(stats().bytes, 0U);
  EXPECT_EQ(ack(job).error().code, Errc::lease_lost);
  advance(10min);
  EXPECT_TRUE(ledger_.completed_jobs.contains(key_of(seq))) << "its ttl is nothing to it any more";
}

TEST_F(EngineKeeping, WithoutItTheyAreGoneAtOnce) {
  push_completed("a");
  EXPECT_THAT(ledger_.completed_jobs, IsEmpty());
  EXPECT_EQ(totals().completed_now, 0U);
}

TEST_F(EngineKeeping, ACompletedJobThatCannotBeReadIsNotKept) {
  configure({.keep_completed = 1h});
  const Seq seq = push("a");
  const ClaimedJob job = claim_one();
  ledger_.corrupt_states.insert(key_of(seq));
  EXPECT_TRUE(ack(job));
  EXPECT_THAT(ledger_.completed_jobs, IsEmpty());
  EXPECT_THAT(ledger_.jobs, IsEmpty());
  EXPECT_EQ(totals().completed, 1U);
}

TEST_F(EngineKeeping, ACompletedJobCanBeDropped) {
  configure({.keep_completed = 1h});
  const Seq seq = push_completed("a");
  EXPECT_EQ(drop(seq)->status, JobStatus::completed);
  EXPECT_THAT(ledger_.completed_jobs, IsEmpty());
  EXPECT_EQ(totals().completed, 1U) << "it was";
  EXPECT_EQ(totals().dropped, 0U) << "it had left the queue already";
}

TEST_F(EngineKeeping, CompletedJobsAreLetGoOfWhenTheirTimeIsOver) {
  configure({.keep_completed = 1h});
  const Seq seq = push_completed("a");
  EXPECT_EQ(keeping().completed_before, now() - 1h);
  advance(1h + 1us);
  EXPECT_EQ(keeping().completed_before, now() - 1h);
  restart();
  EXPECT_EQ(keeping().completed_before, now() - 1h) << "the number of those kept is stored";
  const Engine::EndedRef ref = found(seq);
  let_go(ref);
  EXPECT_THAT(ledger_.completed_jobs, IsEmpty());
  EXPECT_EQ(totals().completed_now, 0U);
  EXPECT_FALSE(keeping().completed_before) << "there are none left to look for";
  let_go(ref);
  EXPECT_EQ(totals().completed_now, 0U);
}

TEST_F(EngineKeeping, AQueueThatKeepsNoneAnyMoreLetsGoOfAll) {
  configure({.keep_completed = 1h});
  push_completed("a");
  configure({});
  EXPECT_EQ(keeping().completed_before, now());
}

// --- Dead jobs.

TEST_F(EngineKeeping, DeadJobsAreKeptForGoodUnlessTold) {
  push_dead("a");
  EXPECT_THAT(engine_->keepings(now()), IsEmpty());
}

TEST_F(EngineKeeping, KeepDeadSaysSinceWhenTheyAreOver) {
  configure({.keep_dead = 1h});
  EXPECT_THAT(engine_->keepings(now()), IsEmpty()) << "nobody has died";
  const Seq seq = push_dead("a");
  EXPECT_EQ(keeping().dead_before, now() - 1h);
  advance(1h + 1us);
  engine_->take_events();
  let_go(found(seq, PurgeCause::keep_dead));
  EXPECT_EQ(counts(), Counts{});
  EXPECT_EQ(totals().dead_expired, 1U);
  EXPECT_EQ(totals().purged, 0U);
  const auto events = engine_->take_events();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].type, EventType::purged);
  EXPECT_EQ(events[0].cause, PurgeCause::keep_dead);
  EXPECT_THAT(engine_->keepings(now()), IsEmpty());
}

TEST_F(EngineKeeping, MaxDeadSaysHowManyAreTooMany) {
  configure({.max_dead = 2});
  const std::vector<Seq> seqs = {push_dead("a"), push_dead("b")};
  EXPECT_THAT(engine_->keepings(now()), IsEmpty());
  push_dead("c");
  push_dead("d");
  EXPECT_EQ(keeping().dead_beyond_max, 2U);
  EXPECT_FALSE(keeping().dead_before);
  for (const Seq seq : seqs) let_go(found(seq, PurgeCause::max_dead));
  EXPECT_EQ(counts(), (Counts{.dead = 2}));
  EXPECT_EQ(totals().dead_evicted, 2U);
  EXPECT_THAT(engine_->keepings(now()), IsEmpty());
}

TEST_F(EngineKeeping, MaxDeadOfNoneKeepsNone) {
  configure({.max_dead = 0});
  push_dead("a");
  EXPECT_EQ(keeping().dead_beyond_max, 1U);
}

TEST_F(EngineKeeping, WhatWasRetriedMeanwhileIsLeftAlone) {
  configure({.keep_dead = 1h, .max_dead = 0});
  const Seq seq = push_dead("a");
  advance(2h);
  const auto ref = found(seq, PurgeCause::keep_dead);
  const auto other_ref = found(seq, PurgeCause::max_dead);
  retry({seq});
  expect_no_change([&] {
    let_go(ref);
    let_go(other_ref);
  });
}

TEST_F(EngineKeeping, WhatHasDiedAgainMeanwhileIsLeftAlone) {
  configure({.keep_dead = 1h});
  const Seq seq = push_dead("a");
  advance(2h);
  const auto ref = found(seq);
  retry({seq});
  EXPECT_TRUE(fail(claim_one(), {.final = true}));
  expect_no_change([&] { let_go(ref); });
  advance(1h);
  expect_no_change([&] { let_go(found(seq)); });
  advance(1us);
  let_go(found(seq));
  EXPECT_EQ(counts(), Counts{});
}

TEST_F(EngineKeeping, WhatIsToBeKeptAfterAllIsLeftAlone) {
  configure({.keep_dead = 1h, .max_dead = 1, .keep_completed = 1h});
  const Seq completed = push_completed("c");
  const Seq seq = push_dead("a");
  const Seq other = push_dead("b");
  advance(2h);
  const std::vector<Engine::EndedRef> refs = {found(seq, PurgeCause::keep_dead),
                                              found(seq, PurgeCause::max_dead), found(completed)};
  configure({.keep_dead = 3h, .max_dead = 2, .keep_completed = 3h});
  expect_no_change([&] { engine_->let_go(refs, now()); });
  configure({.keep_completed = 3h});
  expect_no_change([&] { engine_->let_go(refs, now()); });
  configure({.max_dead = 1, .keep_completed = 3h});
  purge({other});
  expect_no_change([&] { engine_->let_go(refs, now()); });
}

TEST_F(EngineKeeping, ADeadJobThatCannotBeReadIsLetGoOf) {
  configure({.keep_dead = 1h});
  const Seq seq = push_dead("a");
  const auto ref = found(seq);
  ledger_.corrupt_dead.insert(key_of(seq));
  advance(2h);
  let_go(ref);
  EXPECT_THAT(ledger_.dead_jobs, IsEmpty());
  EXPECT_EQ(counts(), Counts{});
}

TEST_F(EngineKeeping, AJobOfAQueueThatIsGoneIsNobodysBusiness) {
  configure({.keep_dead = 1h});
  const auto ref = found(push_dead("a"));
  advance(2h);
  ASSERT_TRUE(engine_->delete_queue(queue_, "", now()));
  configure({});
  expect_no_change([&] { let_go(ref); });
}

// --- Webhooks.

TEST_F(EngineKeeping, EachDeathIsStoredToBeTold) {
  configure({.retry = {.attempts = 2}, .on_dead_webhook = "http://hooks.example"});
  const Seq seq = push("a");
  EXPECT_TRUE(fail(claim_one(), {.error = "e1"}));
  EXPECT_THAT(ledger_.webhooks, IsEmpty()) << "a failure is no death";
  EXPECT_TRUE(fail(claim_one(), {.error = "e2"}));
  const WebhookKey key{.died_at = now(), .queue = number(), .seq = seq};
  ASSERT_THAT(ledger_.webhooks, SizeIs(1));
  const EndedJob told = ledger_.webhooks.at(key);
  EXPECT_EQ(told.record->payload, "a");
  EXPECT_EQ(told.state->status, JobStatus::dead);
  EXPECT_EQ(told.state->death_reason, DeathReason::max_attempts);
  EXPECT_EQ(told.state->last_error, "e2");
  purge({seq});
  EXPECT_THAT(ledger_.webhooks, SizeIs(1)) << "it has died all the same";
  engine_->finish_webhooks({&key, 1});
  EXPECT_THAT(ledger_.webhooks, IsEmpty());
}

TEST_F(EngineKeeping, ADeathOnTheWayToADeadLetterQueueIsToldToo) {
  configure({.dead_letter_queue = "graves", .on_dead_webhook = "http://hooks.example"});
  const Seq seq = push_dead("a");
  ASSERT_THAT(ledger_.webhooks, SizeIs(1));
  EXPECT_EQ(ledger_.webhooks.begin()->first.queue, number());
  const EndedJob& told = ledger_.webhooks.begin()->second;
  EXPECT_EQ(told.state->status, JobStatus::dead);
  EXPECT_THAT(told.record->headers, IsEmpty()) << "as it died, not as it went on";
  look_at("graves");
  EXPECT_TRUE(ledger_.jobs.contains(key_of(seq)));
}

TEST_F(EngineKeeping, WithoutAnAddressNobodyIsTold) {
  push_dead("a");
  EXPECT_THAT(ledger_.webhooks, IsEmpty());
}

}  // namespace
}  // namespace reprise
