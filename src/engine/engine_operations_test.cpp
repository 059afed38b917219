#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/engine_fixture.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using test::Counts;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class EngineOperations : public test::EngineFixture {
 protected:
  Operation start(OperationKind kind, StartOperationCommand command = {}) {
    command.kind = kind;
    command.queue = queue_;
    command.asked_by = "ops";
    const auto operation = engine_->start_operation(command, now());
    EXPECT_TRUE(operation);
    return operation ? *operation : Operation{};
  }
  Operation step(OperationId id, std::vector<Seq> jobs, std::string cursor = "",
                 bool finished = false) {
    const auto operation = engine_->step_operation(
        {.id = id, .jobs = std::move(jobs), .cursor = std::move(cursor), .finished = finished},
        now());
    EXPECT_TRUE(operation);
    return operation ? *operation : Operation{};
  }
  Operation finish(OperationId id, std::vector<Seq> jobs) {
    return step(id, std::move(jobs), "", true);
  }
  std::vector<Seq> push_dead_jobs(int count) {
    std::vector<Seq> seqs;
    for (int i = 0; i < count; ++i) seqs.push_back(push_dead("p"));
    return seqs;
  }
  const AuditRecord& last_audit() const { return ledger_.audit.rbegin()->second; }
};

// --- Operations.

TEST_F(EngineOperations, ItGoesOnInStepsUntilThereIsNoMore) {
  const auto seqs = push_dead_jobs(3);
  const Operation started = start(OperationKind::retry, {.rate = Rate{100, 1s}});
  EXPECT_EQ(started.state, OperationState::running);
  EXPECT_EQ(started.queue, number());
  EXPECT_EQ(started.name, queue_);
  EXPECT_EQ(started.asked_by, "ops");
  EXPECT_EQ(started.started_at, now());
  EXPECT_EQ(started.total, 3U);
  EXPECT_EQ(ledger_.operations.at(started.id), started);
  advance(1s);
  const Operation after_one = step(started.id, {seqs[0]}, "c1");
  EXPECT_EQ(after_one.done, 1U);
  EXPECT_EQ(after_one.cursor, "c1");
  EXPECT_EQ(after_one.state, OperationState::running);
  EXPECT_EQ(ledger_.operations.at(started.id), after_one);
  EXPECT_EQ(counts(), (Counts{.pending = 1, .dead = 2}));
  advance(1s);
  const Operation done = step(started.id, {seqs[1], seqs[2]}, "c2", true);
  EXPECT_EQ(done.state, OperationState::done);
  EXPECT_EQ(done.done, 3U);
  EXPECT_EQ(done.ended_at, now());
  EXPECT_EQ(ledger_.operations.at(started.id), done);
  EXPECT_EQ(*engine_->operation(started.id), done);
  EXPECT_EQ(counts(), (Counts{.pending = 3}));
  EXPECT_EQ(totals().retried, 3U);
  expect_no_change([&] { EXPECT_EQ(step(started.id, seqs), done) << "it has ended"; });
}

TEST_F(EngineOperations, APurgeToo) {
  const auto seqs = push_dead_jobs(2);
  EXPECT_EQ(finish(start(OperationKind::purge).id, seqs).done, 2U);
  EXPECT_EQ(counts(), Counts{});
  EXPECT_EQ(totals().purged, 2U);
}

TEST_F(EngineOperations, EachHasANumberOfItsOwnAcrossRestarts) {
  const OperationId first = start(OperationKind::retry).id;
  restart();
  const OperationId second = start(OperationKind::retry).id;
  EXPECT_LT(first, second);
  EXPECT_THAT(engine_->operations(), SizeIs(2));
}

TEST_F(EngineOperations, ItGoesOnAfterARestart) {
  const auto seqs = push_dead_jobs(2);
  const Operation before = step(start(OperationKind::retry, {.limit = 2}).id, {seqs[0]}, "c1");
  restart();
  EXPECT_EQ(*engine_->operation(before.id), before);
  EXPECT_EQ(step(before.id, {seqs[1]}, "c2").state, OperationState::done);
}

TEST_F(EngineOperations, ItEndsAtItsLimit) {
  const auto seqs = push_dead_jobs(5);
  const Operation started = start(OperationKind::retry, {.limit = 3});
  EXPECT_EQ(started.total, 3U);
  EXPECT_EQ(started.left(), 3U);
  EXPECT_EQ(step(started.id, {seqs[0], 999, seqs[0], seqs[1]}).left(), 1U)
      << "what is skipped or gone does not count";
  const Operation done = step(started.id, {seqs[2], seqs[3], seqs[4]});
  EXPECT_EQ(done.state, OperationState::done);
  EXPECT_EQ(done.done, 3U) << "and not one more";
  EXPECT_EQ(counts(), (Counts{.pending = 3, .dead = 2}));
}

TEST_F(EngineOperations, TheTotalIsToldWhenItIsKnown) {
  push_dead_jobs(4);
  const JobFilter dead{.status = JobStatus::dead};
  const JobFilter some{.status = JobStatus::dead, .error = "timeout"};
  EXPECT_EQ(start(OperationKind::retry).total, 4U);
  EXPECT_EQ(start(OperationKind::retry, {.filter = dead}).total, 4U);
  EXPECT_EQ(start(OperationKind::retry, {.filter = dead, .limit = 9}).total, 4U);
  EXPECT_EQ(start(OperationKind::retry, {.filter = some}).total, std::nullopt);
  EXPECT_EQ(start(OperationKind::retry, {.filter = some, .limit = 2}).total, 2U);
}

TEST_F(EngineOperations, TheFirstSkippedAreTold) {
  std::vector<Seq> pending;
  for (int i = 0; i < 12; ++i) pending.push_back(push("p"));
  pending.push_back(999);  // gone: neither done nor skipped
  const Operation done = finish(start(OperationKind::retry).id, pending);
  EXPECT_EQ(done.done, 0U);
  EXPECT_EQ(done.skipped, 12U);
  ASSERT_THAT(done.first_skipped, SizeIs(kSkippedTold));
  EXPECT_EQ(done.first_skipped[0].id, encode_job_id(pending[0]));
  EXPECT_EQ(done.first_skipped[0].status, JobStatus::pending);
  EXPECT_THAT(done.first_skipped[0].reason, HasSubstr("is pending"));
}

TEST_F(EngineOperations, ItCanBeCancelled) {
  const auto seqs = push_dead_jobs(2);
  const OperationId id = start(OperationKind::retry).id;
  step(id, {seqs[0]});
  advance(1s);
  const auto cancelled = engine_->cancel_operation(id, "boss", now());
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(cancelled->state, OperationState::cancelled);
  EXPECT_EQ(cancelled->ended_at, now());
  EXPECT_EQ(ledger_.operations.at(id), *cancelled);
  expect_no_change([&] { EXPECT_EQ(step(id, {seqs[1]}), *cancelled); });
  const auto again = engine_->cancel_operation(id, "boss", now());
  EXPECT_EQ(again.error().code, Errc::wrong_status);
  EXPECT_THAT(again.error().detail, HasSubstr("cancelled"));
}

TEST_F(EngineOperations, UnknownOnesAreRefused) {
  EXPECT_EQ(engine_->step_operation({.id = 7}, now()).error().code, Errc::operation_not_found);
  EXPECT_EQ(engine_->cancel_operation(7, "", now()).error().code, Errc::operation_not_found);
  EXPECT_EQ(engine_->operation(7).error().code, Errc::operation_not_found);
  EXPECT_EQ(engine_->start_operation({.queue = {.name = "nowhere"}}, now()).error().code,
            Errc::queue_not_found);
}

TEST_F(EngineOperations, ItFailsWithItsQueue) {
  const auto seqs = push_dead_jobs(2);
  const OperationId id = start(OperationKind::retry).id;
  step(id, {seqs[0]});
  ASSERT_TRUE(engine_->delete_queue(queue_, "", now()));
  const Operation failed = *engine_->operation(id);
  EXPECT_EQ(failed.state, OperationState::failed);
  EXPECT_THAT(failed.error, HasSubstr("deleted"));
  EXPECT_EQ(failed.done, 1U);
  EXPECT_EQ(ledger_.operations.at(id), failed);
  configure({});
  EXPECT_EQ(step(id, {seqs[1]}), failed) << "a new queue of that name is another";
}

TEST_F(EngineOperations, ALowDiskEndsARetryAndNoPurge) {
  const auto seqs = push_dead_jobs(3);
  const OperationId retry = start(OperationKind::retry).id;
  const OperationId purge = start(OperationKind::purge).id;
  engine_->set_disk_low(true);
  const Operation failed = step(retry, {seqs[0]});
  EXPECT_EQ(failed.state, OperationState::failed);
  EXPECT_THAT(failed.error, HasSubstr("disk"));
  EXPECT_EQ(finish(purge, seqs).done, 3U);
}

TEST_F(EngineOperations, ItFailsWhenItsJobsCannotBeFound) {
  const auto seqs = push_dead_jobs(1);
  const OperationId id = start(OperationKind::retry).id;
  const auto failed = engine_->step_operation(
      {.id = id, .jobs = seqs, .finished = true, .failed = "a table is damaged"}, now());
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->state, OperationState::failed);
  EXPECT_EQ(failed->error, "a table is damaged");
  EXPECT_EQ(failed->done, 0U);
  EXPECT_EQ(ledger_.operations.at(id), *failed);
  EXPECT_EQ(counts(), (Counts{.dead = 1}));
}

TEST_F(EngineOperations, OldOnesAreForgottenAndRunningOnesNever) {
  const OperationId running = start(OperationKind::retry).id;
  std::vector<OperationId> ended;
  for (int i = 0; i < 120; ++i) ended.push_back(finish(start(OperationKind::retry).id, {}).id);
  EXPECT_TRUE(engine_->operation(running));
  EXPECT_FALSE(engine_->operation(ended.front()));
  EXPECT_TRUE(engine_->operation(ended.back()));
  EXPECT_LE(engine_->operations().size(), 102U);
  EXPECT_EQ(ledger_.operations, engine_->operations()) << "nor are they stored any more";
}

// --- The audit.

TEST_F(EngineOperations, ASelectionByHandIsAudited) {
  const Seq dead = push_dead("a");
  const Seq pending = push("b");
  advance(1s);
  retry({dead, pending, 999});
  EXPECT_EQ(last_audit(),
            (AuditRecord{.number = 1,
                         .at = now(),
                         .action = AuditAction::retry,
                         .queue = queue_,
                         .asked_by = "ops",
                         .ids = {encode_job_id(dead), encode_job_id(pending), encode_job_id(999)},
                         .done = 1,
                         .skipped = 1,
                         .not_found = 1}));
  purge({dead});
  EXPECT_EQ(last_audit().action, AuditAction::purge);
  EXPECT_EQ(last_audit().number, 2U);
  EXPECT_EQ(last_audit().skipped, 1U) << "a refusal is remembered too";
}

TEST_F(EngineOperations, OfManyIdsTheFirstAreKept) {
  std::vector<Seq> seqs;
  for (Seq seq = 1; seq <= 40; ++seq) seqs.push_back(seq);
  retry(seqs);
  EXPECT_THAT(last_audit().ids, SizeIs(kAuditIdsTold));
  EXPECT_EQ(last_audit().not_found, 40U);
}

TEST_F(EngineOperations, AnOperationIsAuditedOnceWithItsCountsAtTheEnd) {
  const auto seqs = push_dead_jobs(2);
  const Timestamp started_at = now();
  const JobFilter filter{.error = "boom"};
  const OperationId id = start(OperationKind::purge, {.filter = filter}).id;
  ASSERT_THAT(ledger_.audit, SizeIs(1));
  EXPECT_EQ(last_audit().done, 0U);
  EXPECT_EQ(last_audit().operation, id);
  advance(1h);
  finish(id, {seqs[0], seqs[1], push("p")});
  ASSERT_THAT(ledger_.audit, SizeIs(1));
  EXPECT_EQ(last_audit(), (AuditRecord{.number = 1,
                                       .at = started_at,
                                       .action = AuditAction::purge,
                                       .queue = queue_,
                                       .asked_by = "ops",
                                       .filter = filter,
                                       .done = 2,
                                       .skipped = 1,
                                       .operation = id}));
}

TEST_F(EngineOperations, ACancelHasARecordOfItsOwn) {
  const auto seqs = push_dead_jobs(1);
  const OperationId id = start(OperationKind::retry).id;
  step(id, seqs);
  EXPECT_TRUE(engine_->cancel_operation(id, "boss", now()));
  ASSERT_THAT(ledger_.audit, SizeIs(2));
  EXPECT_EQ(ledger_.audit.begin()->second.done, 1U);
  EXPECT_EQ(last_audit().action, AuditAction::cancel);
  EXPECT_EQ(last_audit().asked_by, "boss");
  EXPECT_EQ(last_audit().operation, id);
  EXPECT_EQ(last_audit().done, 1U);
}

TEST_F(EngineOperations, DropsAndDeletedQueuesAreAudited) {
  const auto seqs = push_dead_jobs(2);
  push("alive");
  EXPECT_TRUE(engine_->drop(queue_, seqs[0], "me", now()));
  EXPECT_EQ(last_audit().action, AuditAction::drop);
  EXPECT_EQ(last_audit().asked_by, "me");
  EXPECT_THAT(last_audit().ids, ElementsAre(encode_job_id(seqs[0])));
  EXPECT_FALSE(engine_->drop(queue_, 999, "me", now()));
  ASSERT_TRUE(engine_->delete_queue(queue_, "boss", now()));
  ASSERT_THAT(ledger_.audit, SizeIs(2)) << "what was not done is not remembered";
  EXPECT_EQ(last_audit().action, AuditAction::delete_queue);
  EXPECT_EQ(last_audit().asked_by, "boss");
  EXPECT_EQ(last_audit().done, 2U) << "the jobs it had";
  configure({});
}

TEST_F(EngineOperations, NumbersGoOnAfterARestart) {
  retry({1});
  restart();
  retry({1});
  EXPECT_EQ(last_audit().number, 2U);
}

TEST_F(EngineOperations, TheLastTenThousandAreKept) {
  for (int i = 0; i < 10'010; ++i) retry({});
  EXPECT_EQ(ledger_.audit.size(), 10'000U);
  EXPECT_EQ(ledger_.audit.begin()->first, 11U);
}

// Its record is beyond those that are kept, and must not come back when it ends.
TEST_F(EngineOperations, AnOperationThatOutlivesItsRecordLeavesNone) {
  const OperationId cancelled = start(OperationKind::retry).id;
  const OperationId done = start(OperationKind::retry).id;
  for (int i = 0; i < 10'000; ++i) retry({});
  finish(done, {});
  EXPECT_TRUE(engine_->cancel_operation(cancelled, "", now()));
  EXPECT_EQ(ledger_.audit.size(), 10'000U);
}

}  // namespace
}  // namespace reprise
