#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
using testing::SizeIs;

class EngineDeadLetterQueue : public test::EngineFixture {
 protected:
  void SetUp() override { configure({.dead_letter_queue = "graves"}); }
  // Why that is refused; nothing: it is not.
  std::optional<Errc> put(const std::string& name, const std::string& dead_letter_queue) {
    const auto reply = engine_->put_queue(
        {.queue = {.name = name}, .config = {.dead_letter_queue = dead_letter_queue}}, now());
    return reply ? std::nullopt : std::optional(reply.error().code);
  }
  std::string header(Seq seq, const std::string& name) const {
    const auto& headers = ledger_.jobs.at(key_of(seq))->headers;
    const auto found = std::ranges::find(headers, name, [](const auto& h) { return h.first; });
    return found == headers.end() ? "none" : found->second;
  }
};

// --- On the way there.

TEST_F(EngineDeadLetterQueue, AJobThatDiesIsPendingThereInTheSameStep) {
  configure({.retry = {.attempts = 2}, .dead_letter_queue = "graves"});
  const Seq seq = push("a", {.headers = {{"tenant", "t"}}, .priority = 7, .key = "k"});
  const Timestamp pushed_at = now();
  EXPECT_TRUE(fail(claim_one(), {.error = "e1"}));
  advance(5s);
  EXPECT_EQ(fail(claim_one({.worker = "w"}), {.error = "e2", .error_type = "T"})->status,
            JobStatus::dead);
  EXPECT_EQ(counts(), Counts{});
  EXPECT_EQ(stats().bytes, 0U);
  EXPECT_EQ(totals().died, 1U);
  EXPECT_EQ(totals().moved_out, 1U);
  EXPECT_EQ(totals().dead_now, 0U);
  EXPECT_THAT(ledger_.dead_jobs, IsEmpty());
  ASSERT_THAT(ledger_.jobs, SizeIs(1)) << "one job, in one queue";

  look_at("graves");
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  EXPECT_EQ(totals().moved_in, 1U);
  EXPECT_EQ(totals().pushed, 0U);
  const JobRecord record = *ledger_.jobs.at(key_of(seq));
  EXPECT_EQ(record.payload, "a");
  EXPECT_EQ(record.priority, 7U);
  EXPECT_EQ(record.pushed_at, pushed_at);
  EXPECT_THAT(
      record.headers,
      ElementsAre(Pair("tenant", "t"), Pair("reprise-origin-queue", "orders"),
                  Pair("reprise-death-reason", "max_attempts"), Pair("reprise-error", "e2"),
                  Pair("reprise-attempts", "2"), Pair("reprise-died-at", format_timestamp(now()))));
  const JobState state = state_of(seq);
  EXPECT_EQ(state.status, JobStatus::pending);
  EXPECT_EQ(state.origin_queue, "orders");
  EXPECT_EQ(state.failures, 0U);
  EXPECT_EQ(state.attempts, 2U);
  EXPECT_EQ(state.generation, 1U);
  EXPECT_EQ(state.death_reason, DeathReason::none);
  EXPECT_THAT(state.history, SizeIs(2));
}

TEST_F(EngineDeadLetterQueue, TheEventSaysWhereItWent) {
  push("a");
  const ClaimedJob job = claim_one();
  engine_->take_events();
  EXPECT_TRUE(fail(job));
  const auto events = engine_->take_events();
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[1].type, EventType::dead);
  EXPECT_EQ(events[1].queue->name, "orders");
  ASSERT_NE(events[1].dead_letter_queue, nullptr);
  EXPECT_EQ(events[1].dead_letter_queue->name, "graves");
}

TEST_F(EngineDeadLetterQueue, ItIsMadeWhenItIsNotThere) {
  EXPECT_EQ(engine_->list_queues("", now()).size(), 1U);
  push_dead("a");
  look_at("graves");
  EXPECT_EQ(stats().queue.config, QueueConfig{});
  EXPECT_EQ(stats().queue.created_at, now());
  restart();
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  EXPECT_EQ(claim_one().attempts, 2U);
}

TEST_F(EngineDeadLetterQueue, ItIsOfTheSameNamespace) {
  const QueueName other{.ns = "other", .name = "orders"};
  ASSERT_TRUE(
      engine_->put_queue({.queue = other, .config = {.dead_letter_queue = "graves"}}, now()));
  queue_ = other;
  push_dead("a");
  queue_ = {.ns = "other", .name = "graves"};
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  EXPECT_EQ(engine_->list_queues("default", now()).size(), 1U);
}

TEST_F(EngineDeadLetterQueue, EveryDeathButACorruptOneGoesThere) {
  configure({.lease = 10s, .dead_letter_queue = "graves"});
  const Seq final = push_dead("final");
  const Seq lease_expired = push("silent");
  claim_one();
  advance(10s);
  const Seq waits = push("waits", {.ttl = 1s});
  advance(1s);
  const Seq late = push("late", {.ttl = 1s});
  const ClaimedJob job = claim_one();
  pass(1s);
  EXPECT_TRUE(release(job));
  const Seq met = push("met by a claim", {.ttl = 1s});
  pass(1s);
  EXPECT_THAT(claim(1), IsEmpty());
  const Seq corrupt = push("corrupt");
  ledger_.corrupt_records.insert(key_of(corrupt));
  EXPECT_THAT(claim(1), IsEmpty());
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
  EXPECT_EQ(death_of(corrupt).death_reason, DeathReason::corrupt);
  EXPECT_EQ(death_of(corrupt).origin_queue, "");
  look_at("graves");
  EXPECT_EQ(counts(), (Counts{.pending = 5}));
  EXPECT_EQ(header(final, "reprise-death-reason"), "final");
  EXPECT_EQ(header(lease_expired, "reprise-death-reason"), "lease_expired");
  for (const Seq seq : {waits, late, met}) {
    EXPECT_EQ(header(seq, "reprise-death-reason"), "expired");
  }
  EXPECT_EQ(header(waits, "reprise-attempts"), "0");
  EXPECT_EQ(header(waits, "reprise-error"), "");
}

TEST_F(EngineDeadLetterQueue, ALongErrorIsCutBetweenCharacters) {
  push("a");
  std::string error = "x";
  while (error.size() < 3000) error += "é";
  const Seq seq = fail(claim_one(), {.error = error})->job.seq;
  look_at("graves");
  EXPECT_EQ(header(seq, "reprise-error"), error.substr(0, 2047)) << "a whole character less";
  EXPECT_EQ(state_of(seq).last_error, error);
}

TEST_F(EngineDeadLetterQueue, HeadersOfTheseNamesAreReplaced) {
  const Seq seq = push_dead("a", {.headers = {{"reprise-error", "mine"}, {"b", "c"}}});
  look_at("graves");
  EXPECT_EQ(header(seq, "reprise-error"), "boom");
  EXPECT_THAT(ledger_.jobs.at(key_of(seq))->headers, SizeIs(6));
}

TEST_F(EngineDeadLetterQueue, NoQuotaRefusesWhatComes) {
  look_at("graves");
  configure({.max_jobs = 1, .max_bytes = 1});
  look_at("orders");
  push_dead("a");
  push_dead("b");
  look_at("graves");
  EXPECT_EQ(counts(), (Counts{.pending = 2}));
  EXPECT_EQ(push_error("c"), Errc::queue_full);
}

TEST_F(EngineDeadLetterQueue, ALowDiskDoesNotKeepJobsFromDying) {
  push("a");
  const ClaimedJob job = claim_one();
  engine_->set_disk_low(true);
  EXPECT_EQ(fail(job)->status, JobStatus::dead);
  look_at("graves");
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
}

TEST_F(EngineDeadLetterQueue, TheTtlIsThatOfTheDeadLetterQueue) {
  look_at("graves");
  configure({.ttl = 1h});
  look_at("orders");
  const Seq seq = push_dead("a", {.ttl = 10s});
  look_at("graves");
  EXPECT_EQ(ledger_.jobs.at(key_of(seq))->expires_at, now() + 1h);
  advance(1h - 1us);
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  advance(1us);
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
}

TEST_F(EngineDeadLetterQueue, WithoutATtlThereItStays) {
  push_dead("a", {.ttl = 10s});
  advance(24h);
  look_at("graves");
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
}

TEST_F(EngineDeadLetterQueue, AClaimThatWaitsThereIsServed) {
  look_at("graves");
  configure({});
  start_waiting(1);
  look_at("orders");
  push_dead("a");
  EXPECT_THAT(answers(), ElementsAre(Pair(1, Names{"a"})));
}

// Both queues have claims that wait, and the death happens while one of them is served.
TEST_F(EngineDeadLetterQueue, AClaimThatBuriesServesBothQueues) {
  look_at("graves");
  configure({});
  start_waiting(1);
  look_at("orders");
  push("over", {.delay = 1s, .ttl = 1s});
  push("good", {.delay = 1s});
  start_waiting(2);
  advance(1s);
  EXPECT_THAT(answers(), ElementsAre(Pair(1, Names{"over"}), Pair(2, Names{"good"})));
}

// --- There.

TEST_F(EngineDeadLetterQueue, ThereItIsAJobLikeAnyOther) {
  look_at("graves");
  configure({.retry = {.attempts = 2, .wait = 10s}});
  look_at("orders");
  const Seq seq = push_dead("a");
  look_at("graves");
  EXPECT_EQ(fail(claim_one(), {.error = "again"})->retry_at, now() + 10s);
  advance(10s);
  const ClaimedJob job = claim_one();
  EXPECT_EQ(job.attempts, 3U);
  EXPECT_EQ(job.failures, 1U);
  EXPECT_EQ(fail(job)->status, JobStatus::dead);
  EXPECT_EQ(counts(), (Counts{.dead = 1})) << "it stays: there is nowhere else to go";
  EXPECT_THAT(death_of(seq).history, SizeIs(3)) << "its history goes on";
  EXPECT_EQ(death_of(seq).origin_queue, "orders");
}

TEST_F(EngineDeadLetterQueue, ThereItCanBeAcked) {
  push_dead("a");
  look_at("graves");
  EXPECT_TRUE(ack(claim_one()));
  EXPECT_THAT(ledger_.jobs, IsEmpty());
  EXPECT_THAT(ledger_.states, IsEmpty());
}

// --- And back.

TEST_F(EngineDeadLetterQueue, ARetryBringsItBackFromPending) {
  const Seq seq = push_dead("a", {.headers = {{"tenant", "t"}}});
  const std::uint64_t retried_at_home = totals().retried;
  look_at("graves");
  advance(1h);
  engine_->take_events();
  EXPECT_EQ(retry({seq}).done, 1U);
  EXPECT_EQ(counts(), Counts{});
  EXPECT_EQ(totals().retried, 1U);
  EXPECT_EQ(totals().moved_out, 1U);
  const auto events = engine_->take_events();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].type, EventType::retry);
  EXPECT_EQ(events[0].queue->name, "orders");
  look_at("orders");
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  EXPECT_EQ(totals().moved_in, 1U);
  EXPECT_EQ(totals().retried, retried_at_home);
  EXPECT_THAT(ledger_.jobs.at(key_of(seq))->headers, ElementsAre(Pair("tenant", "t")));
  EXPECT_EQ(state_of(seq).origin_queue, "");
  EXPECT_EQ(state_of(seq).generation, 2U);
  EXPECT_EQ(state_of(seq).failures, 0U);
  EXPECT_EQ(claim_one().attempts, 2U);
}

TEST_F(EngineDeadLetterQueue, ARetryBringsItBackFromDead) {
  const Seq seq = push_dead("a");
  look_at("graves");
  EXPECT_TRUE(fail(claim_one()));
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
  EXPECT_EQ(retry({seq}).done, 1U);
  EXPECT_EQ(counts(), Counts{});
  EXPECT_THAT(ledger_.dead_jobs, IsEmpty());
  look_at("orders");
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  EXPECT_THAT(ledger_.jobs.at(key_of(seq))->headers, IsEmpty());
  EXPECT_THAT(state_of(seq).history, SizeIs(2));
}

TEST_F(EngineDeadLetterQueue, ARetryBringsItBackWhileItCoolsDown) {
  look_at("graves");
  configure({.retry = {.attempts = 2, .wait = 10s}});
  look_at("orders");
  const Seq seq = push_dead("a");
  look_at("graves");
  EXPECT_TRUE(fail(claim_one()));
  EXPECT_EQ(retry({seq}).done, 1U);
  EXPECT_EQ(engine_->next_wake(), kNever);
  look_at("orders");
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
}

TEST_F(EngineDeadLetterQueue, ItMayGoRoundByHand) {
  const Seq seq = push_dead("a");
  for (std::uint32_t round = 1; round <= 3; ++round) {
    look_at("graves");
    EXPECT_EQ(retry({seq}).done, 1U);
    look_at("orders");
    EXPECT_TRUE(fail(claim_one(), {.error = "round " + std::to_string(round)}));
    look_at("graves");
    EXPECT_EQ(state_of(seq).generation, round + 1);
    EXPECT_EQ(header(seq, "reprise-error"), "round " + std::to_string(round));
    EXPECT_THAT(ledger_.jobs.at(key_of(seq))->headers, SizeIs(5));
  }
}

TEST_F(EngineDeadLetterQueue, BackHomeItHasTheTtlOfItsQueue) {
  configure({.ttl = 1h, .dead_letter_queue = "graves"});
  const Seq seq = push_dead("a");
  advance(3h);
  look_at("graves");
  EXPECT_EQ(retry({seq}).done, 1U);
  look_at("orders");
  EXPECT_EQ(ledger_.jobs.at(key_of(seq))->expires_at, now() + 1h);
}

TEST_F(EngineDeadLetterQueue, AClaimThatWaitsAtHomeIsServed) {
  const Seq seq = push_dead("a");
  start_waiting(1);
  look_at("graves");
  retry({seq});
  EXPECT_THAT(answers(), ElementsAre(Pair(1, Names{"a"})));
}

TEST_F(EngineDeadLetterQueue, WhileItIsActiveThereItIsNotBroughtBack) {
  const Seq seq = push_dead("a");
  look_at("graves");
  claim_one();
  expect_no_change([&] { EXPECT_EQ(retry({seq}).first_refusal->code, Errc::wrong_status); });
}

TEST_F(EngineDeadLetterQueue, AJobThatWasPushedThereIsNoneOfThem) {
  look_at("graves");
  configure({});
  const Seq seq = push("a");
  expect_no_change([&] { EXPECT_EQ(retry({seq}).first_refusal->code, Errc::wrong_status); });
  EXPECT_TRUE(fail(claim_one()));
  EXPECT_EQ(retry({seq}).done, 1U);
  EXPECT_EQ(counts(), (Counts{.pending = 1})) << "it belongs here";
}

TEST_F(EngineDeadLetterQueue, WithoutItsQueueItCannotGoBack) {
  const Seq dead = push_dead("a");
  const Seq pending = push_dead("b");
  ASSERT_TRUE(engine_->delete_queue(queue_, "", now()));
  look_at("graves");
  EXPECT_EQ(fail(claim_one())->job.seq, dead);
  for (const Seq seq : {dead, pending}) {
    expect_no_change([&] {
      const SelectionReply reply = retry({seq});
      EXPECT_EQ(reply.first_refusal->code, Errc::queue_not_found);
      EXPECT_THAT(reply.first_refusal->detail, HasSubstr("'orders'"));
      EXPECT_THAT(reply.skipped, SizeIs(1));
    });
  }
  look_at("orders");
  configure({});
  look_at("graves");
  EXPECT_EQ(retry({dead, pending}).done, 2U) << "any queue of its name will do";
}

// --- No chains, however they are made.

TEST_F(EngineDeadLetterQueue, AQueueIsNotItsOwn) { EXPECT_EQ(put("a", "a"), Errc::invalid_field); }

TEST_F(EngineDeadLetterQueue, ThereAreNoChains) {
  EXPECT_EQ(put("graves", "pit"), Errc::invalid_field) << "it is that of orders, if not there";
  EXPECT_EQ(put("graves", ""), std::nullopt);
  EXPECT_EQ(put("graves", "pit"), Errc::invalid_field);
  EXPECT_EQ(put("graves", "orders"), Errc::invalid_field);
  EXPECT_EQ(put("c", "orders"), Errc::invalid_field) << "it has one of its own";
  EXPECT_EQ(put("c", "graves"), std::nullopt) << "two may share one";
  const auto chain = [](QueueConfig& config) {
    config.dead_letter_queue = "orders";
    return ok();
  };
  EXPECT_EQ(engine_->edit_queue({.name = "graves"}, chain, now()).error().code,
            Errc::invalid_field);
  EXPECT_EQ(engine_->edit_queue({.name = "c"}, chain, now()).error().code, Errc::invalid_field);
  EXPECT_EQ(ledger_.queues.at(*engine_->find_queue({.name = "c"})).config.dead_letter_queue,
            "graves");
}

TEST_F(EngineDeadLetterQueue, ARefusalSaysWhichQueueIsInTheWay) {
  const auto chained = engine_->put_queue(
      {.queue = {.name = "c"}, .config = {.dead_letter_queue = "orders"}}, now());
  EXPECT_THAT(chained.error().detail, HasSubstr("'graves'"));
  const auto used = engine_->put_queue(
      {.queue = {.name = "graves"}, .config = {.dead_letter_queue = "pit"}}, now());
  EXPECT_THAT(used.error().detail, HasSubstr("'orders'"));
}

TEST_F(EngineDeadLetterQueue, OtherNamespacesAreNoneOfItsBusiness) {
  const PutQueueCommand command{.queue = {.ns = "other", .name = "graves"},
                                .config = {.dead_letter_queue = "orders"}};
  EXPECT_TRUE(engine_->put_queue(command, now()));
}

// The roles of two queues change, and a letter is still in one of them.
TEST_F(EngineDeadLetterQueue, ALetterThatDiesComesFromWhereItDied) {
  const Seq seq = push_dead("a", {.headers = {{"tenant", "t"}}});
  configure({});
  EXPECT_EQ(put("graves", "orders"), std::nullopt);
  look_at("graves");
  EXPECT_TRUE(fail(claim_one(), {.error = "again"}));
  look_at("orders");
  EXPECT_EQ(counts(), (Counts{.pending = 1}));
  EXPECT_EQ(header(seq, "reprise-origin-queue"), "graves");
  EXPECT_EQ(state_of(seq).origin_queue, "graves") << "where the header says it comes from";
}

}  // namespace
}  // namespace reprise
