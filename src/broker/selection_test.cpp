#include "broker/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/core.h"
#include "model/error_fingerprint.h"
#include "storage/memory/memory_storage.h"
#include "support/fake_clock.h"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

class SelectionTest : public testing::Test {
 protected:
  SelectionTest() {
    core_ = *BrokerCore::recover(*storage_, random_, {});
    configure({});
  }

  void configure(const QueueConfig& config, const QueueName& name = {.name = "orders"}) {
    ASSERT_TRUE(core_->engine().put_queue({.queue = name, .config = config}, clock_.now()));
  }
  // A job that fails with this error; without a policy it is dead.
  Seq fail(const std::string& error, Headers headers = {}) {
    PushCommand command{.queue = queue_};
    command.jobs.emplace_back(NewJob{.payload = "1", .headers = std::move(headers)});
    const auto pushed = core_->engine().push(++requests_, std::move(command), clock_.now());
    const Seq seq = (*pushed)->results[0]->seq;
    const auto claimed = core_->engine().claim(++claims_, {.queue = queue_}, clock_.now());
    const std::vector<FailItem> items{{.token = (*claimed)->jobs.at(0).token, .error = error}};
    EXPECT_TRUE(core_->engine().fail(++requests_, items, clock_.now())->at(0));
    return seq;
  }
  void commit() {
    SealedBatch batch = core_->seal(clock_.now());
    ASSERT_TRUE(BrokerCore::commit(*storage_, batch.changes, storage::Durability::synced));
    core_->settled(batch.number);
  }
  Operation operation(JobFilter filter = {}, OperationKind kind = OperationKind::retry,
                      const QueueName& name = {.name = "orders"}) {
    return {.kind = kind,
            .queue = *core_->engine().find_queue(name),
            .name = name,
            .filter = std::move(filter),
            .started_at = clock_.now()};
  }
  // All pages of so many.
  std::vector<Seq> select(Operation operation, std::size_t most = 3) {
    commit();
    std::vector<Seq> seqs;
    for (int pages = 0; pages < 1000; ++pages) {
      const auto page = select_page(*storage_, operation, most);
      EXPECT_TRUE(page) << page.error().detail;
      EXPECT_LE(page->jobs.size(), most);
      seqs.insert(seqs.end(), page->jobs.begin(), page->jobs.end());
      if (page->finished) return seqs;
      operation.cursor = page->cursor;
    }
    ADD_FAILURE() << "never finished";
    return seqs;
  }

  const QueueName queue_{.name = "orders"};
  test::FakeClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<storage::Storage> storage_ = storage::make_memory_storage();
  std::unique_ptr<BrokerCore> core_;
  ClaimId claims_ = 0;
  RequestId requests_ = 0;
};

TEST_F(SelectionTest, TakesTheDeadFromTheLongestDeadOn) {
  std::vector<Seq> dead;
  for (int i = 0; i < 10; ++i) {
    dead.push_back(fail("e"));
    clock_.advance(1s);
  }
  EXPECT_EQ(select(operation()), dead);
  EXPECT_EQ(select(operation(), 100), dead);
  EXPECT_EQ(select(operation({}, OperationKind::purge)), dead);
}

TEST_F(SelectionTest, LeavesOutWhatDiedSinceItBegan) {
  const Seq before = fail("e");
  const Operation begun = operation();
  clock_.advance(1us);
  fail("e");
  EXPECT_THAT(select(begun), ElementsAre(before));
}

TEST_F(SelectionTest, AgesAreStrictAndCountFromTheDeath) {
  const Seq old = fail("e");
  clock_.advance(10s);
  const Seq young = fail("e");
  clock_.advance(10s);
  EXPECT_THAT(select(operation({.older_than = 20s})), IsEmpty());
  EXPECT_THAT(select(operation({.older_than = 20s - 1us})), ElementsAre(old));
  EXPECT_THAT(select(operation({.older_than = 10s})), ElementsAre(old));
  EXPECT_THAT(select(operation({.newer_than = 10s})), IsEmpty());
  EXPECT_THAT(select(operation({.newer_than = 10s + 1us})), ElementsAre(young));
  EXPECT_THAT(select(operation({.older_than = 5s, .newer_than = 15s})), ElementsAre(young));
}

TEST_F(SelectionTest, FiltersByErrorFingerprintReasonAndHeader) {
  const Seq timeout = fail("timeout after 31 ms", {{"tenant", "a"}});
  const Seq refused = fail("card refused", {{"tenant", "b"}});
  EXPECT_THAT(select(operation({.error = "refused"})), ElementsAre(refused));
  EXPECT_THAT(select(operation({.fingerprint = error_fingerprint("timeout after 7 ms", "")})),
              ElementsAre(timeout));
  EXPECT_THAT(select(operation({.reason = DeathReason::max_attempts})),
              ElementsAre(timeout, refused));
  EXPECT_THAT(select(operation({.reason = DeathReason::final})), IsEmpty());
  EXPECT_THAT(select(operation({.headers = {{"tenant", "b"}}})), ElementsAre(refused));
}

TEST_F(SelectionTest, CoolingJobsOnlyWhenAskedFor) {
  const Seq dead = fail("e");
  configure({.retry = {.attempts = 5, .wait = 1h}});
  const Seq failed = fail("e");
  EXPECT_THAT(select(operation()), ElementsAre(dead));
  EXPECT_THAT(select(operation({.status = JobStatus::failed})), ElementsAre(failed));
  EXPECT_THAT(select(operation({.status = JobStatus::dead})), ElementsAre(dead));
  EXPECT_THAT(select(operation({.status = JobStatus::failed}, OperationKind::purge)), IsEmpty());
  clock_.advance(1h);  // due again
  EXPECT_THAT(select(operation({.status = JobStatus::failed})), IsEmpty());
}

TEST_F(SelectionTest, LettersFromAnotherQueueCanBeRetried) {
  configure({.dead_letter_queue = "graves"});
  const Seq letter = fail("e");
  const QueueName graves{.name = "graves"};
  EXPECT_THAT(select(operation({}, OperationKind::retry, graves)), ElementsAre(letter));
  EXPECT_THAT(select(operation({}, OperationKind::purge, graves)), IsEmpty());
  EXPECT_THAT(select(operation({.error = "x"}, OperationKind::retry, graves)), IsEmpty());
}

TEST_F(SelectionTest, APreviewCountsAllAndShowsTheFirst) {
  for (int i = 0; i < 25; ++i) fail("e" + std::to_string(i));
  commit();
  const auto preview = preview_selection(*storage_, operation());
  ASSERT_TRUE(preview);
  EXPECT_EQ(preview->matched, 25U);
  ASSERT_EQ(preview->examples.size(), 10U);
  EXPECT_EQ(preview->examples[0].state->last_error, "e0");
  Operation limited = operation();
  limited.limit = 7;
  EXPECT_EQ(preview_selection(*storage_, limited)->matched, 7U);
}

TEST_F(SelectionTest, GroupsErrorsByWhatTheyHaveInCommon) {
  const Timestamp first = clock_.now();
  fail("timeout after 31 ms");
  clock_.advance(1s);
  const Seq last = fail("timeout after 7 ms");
  fail("card refused");
  configure({.retry = {.attempts = 5, .wait = 1h}});
  clock_.advance(1s);
  const Seq cooling = fail("timeout after 9 ms");
  commit();
  const QueueNumber queue = *core_->engine().find_queue(queue_);
  const auto groups = group_errors(*storage_, queue, {.queue = queue_}, clock_.now());
  ASSERT_TRUE(groups);
  ASSERT_EQ(groups->groups.size(), 2U);
  const ErrorGroup& timeouts = groups->groups[0];
  EXPECT_EQ(timeouts.dead, 2U);
  EXPECT_EQ(timeouts.failed, 1U);
  EXPECT_EQ(timeouts.error, "timeout after <n> ms");
  EXPECT_EQ(timeouts.first_seen, first);
  EXPECT_EQ(timeouts.last_seen, clock_.now());
  EXPECT_EQ(timeouts.example, cooling);
  EXPECT_EQ(groups->other, 0U);
  const auto dead =
      group_errors(*storage_, queue, {.queue = queue_, .status = JobStatus::dead}, clock_.now());
  EXPECT_EQ(dead->groups[0].example, last);
  const auto top = group_errors(*storage_, queue, {.queue = queue_, .limit = 1}, clock_.now());
  EXPECT_EQ(top->groups.size(), 1U);
  EXPECT_EQ(top->other, 1U);
}

}  // namespace
}  // namespace reprise
