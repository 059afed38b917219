#include "worker/items_in_hand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/fake_clock.h"
#include "support/fake_step_runner.h"
#include "support/fake_worker_host.h"
#include "support/manual_loop.h"
#include "support/runbook_text.h"

namespace reprise::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kBugs[] = R"(
[queue.bugs]
type = "external"
list = "list"
take = "take"
done = "done ${item.id}"
failed = "failed ${item.id}"
timeout = "5s"
[queue.silent]
type = "external"
list = "list"
take = "take"
)";

class ItemsInHandTest : public testing::Test {
 protected:
  static ItemRecord record(const std::string& key, ItemPhase phase = ItemPhase::taking,
                           const std::string& queue = "bugs") {
    return {.ns = "shop",
            .queue = queue,
            .worker = "fixer",
            .item = {.key = key, .json = "{\"id\":" + key + "}"},
            .phase = phase,
            .run = "RUN1",
            .error = phase == ItemPhase::failed ? "it broke" : ""};
  }
  bool take(const ItemRecord& record) {
    bool taken = false;
    items().take(record, [&](const Status& stored) { taken = stored.has_value(); });
    loop_.run();
    return taken;
  }
  void tell(const ItemRecord& record) {
    items().tell(record, book_, [this](const std::string& error) {
      ++told_;
      last_told_error_ = error;
    });
    loop_.run();
  }
  void exit(const std::string& script, int code) {
    const auto running = steps_.running(script);
    ASSERT_EQ(running.size(), 1U) << script;
    steps_.exit(running[0], code);
    loop_.run();
  }
  ItemsInHand& items() { return host_.items(); }
  ItemPhase stored_phase() const {
    const auto records = host_.records();
    EXPECT_EQ(records.size(), 1U);
    return records.empty() ? ItemPhase::taking : records[0].phase;
  }

  const QueueName kQueue{"shop", "bugs"};
  test::FakeClock clock_;
  test::ManualLoop loop_{clock_};
  test::FakeStepRunner steps_;
  test::FakeWorkerHost host_{loop_, steps_};
  const ItemsInHand::Book book_ = test::runbook_from(kBugs, "/project");
  int told_ = 0;
  std::string last_told_error_;
};

TEST_F(ItemsInHandTest, WhatIsTakenIsInHandAtOnceAndOnDiskWhenThatIsSaid) {
  bool stored = false;
  host_.hold_notes = true;
  items().take(record("7"), [&](const Status& status) { stored = status.has_value(); });
  loop_.run();
  EXPECT_TRUE(items().has(kQueue, "7"));
  EXPECT_FALSE(items().has(kQueue, "8"));
  EXPECT_FALSE(items().has({"shop", "silent"}, "7"));
  EXPECT_EQ(items().count(kQueue), 1U);
  EXPECT_FALSE(stored);
  host_.let_notes_go();
  loop_.run();
  EXPECT_TRUE(stored);
  EXPECT_EQ(stored_phase(), ItemPhase::taking);
}

TEST_F(ItemsInHandTest, WhatCannotBeRecordedIsNotInHand) {
  host_.refuse_notes = Error{Errc::io, "disk full"};
  EXPECT_FALSE(take(record("7")));
  EXPECT_FALSE(items().has(kQueue, "7"));
  EXPECT_EQ(items().count(kQueue), 0U);
}

TEST_F(ItemsInHandTest, HowFarItHasComeIsRecorded) {
  take(record("7"));
  bool then = false;
  items().update(record("7", ItemPhase::running), [&] { then = true; });
  loop_.run();
  EXPECT_TRUE(then);
  EXPECT_EQ(stored_phase(), ItemPhase::running);
}

TEST_F(ItemsInHandTest, ARecordThatCannotBeChangedIsAWarningAndItGoesOn) {
  take(record("7"));
  host_.refuse_notes = Error{Errc::io, "disk full"};
  bool then = false;
  items().update(record("7", ItemPhase::running), [&] { then = true; });
  loop_.run();
  EXPECT_TRUE(then);
  EXPECT_THAT(host_.warnings, ElementsAre(HasSubstr("disk full")));
  EXPECT_TRUE(items().has(kQueue, "7"));
}

TEST_F(ItemsInHandTest, WhatWasNeverOursIsForgotten) {
  take(record("7"));
  items().drop(record("7"));
  loop_.run();
  EXPECT_FALSE(items().has(kQueue, "7"));
  EXPECT_THAT(host_.notes, IsEmpty());
  EXPECT_EQ(steps_.started(), 0U);
}

TEST_F(ItemsInHandTest, DoneIsToldAndThenItIsForgotten) {
  take(record("7"));
  tell(record("7", ItemPhase::succeeded));
  ASSERT_EQ(steps_.running("done").size(), 1U);
  const StepId id = steps_.running("done")[0];
  EXPECT_EQ(steps_.variable(id, "REPRISE_ITEM_id"), "7");
  EXPECT_EQ(steps_.variable(id, "REPRISE_JOB_ID"), "7");
  EXPECT_EQ(steps_.variable(id, "REPRISE_RUN_ID"), "RUN1");
  EXPECT_EQ(steps_.variable(id, "REPRISE_WORKER"), "fixer");
  EXPECT_EQ(steps_.variable(id, "REPRISE_ERROR"), std::nullopt);
  EXPECT_EQ(steps_.spec(id).input,
            R"({"id":"7","namespace":"shop","queue":"bugs","payload":{"id":7}})");
  EXPECT_EQ(steps_.spec(id).directory, "/project");
  EXPECT_EQ(told_, 0);
  EXPECT_EQ(host_.notes.size(), 1U);
  exit("done", 0);
  EXPECT_EQ(told_, 1);
  EXPECT_FALSE(items().has(kQueue, "7"));
  EXPECT_THAT(host_.notes, IsEmpty());
}

TEST_F(ItemsInHandTest, FailedIsToldWithTheError) {
  take(record("7"));
  tell(record("7", ItemPhase::failed));
  ASSERT_EQ(steps_.running("failed").size(), 1U);
  EXPECT_EQ(steps_.variable(steps_.running("failed")[0], "REPRISE_ERROR"), "it broke");
  exit("failed", 0);
  EXPECT_EQ(told_, 1);
  EXPECT_EQ(steps_.started(), 1U);
}

TEST_F(ItemsInHandTest, AQueueWithoutCommandsIsToldNothing) {
  take(record("7", ItemPhase::taking, "silent"));
  tell(record("7", ItemPhase::succeeded, "silent"));
  tell(record("8", ItemPhase::failed, "silent"));
  EXPECT_EQ(told_, 2);
  EXPECT_EQ(steps_.started(), 0U);
  EXPECT_THAT(host_.notes, IsEmpty());
}

TEST_F(ItemsInHandTest, ACommandThatFailsIsTriedAgainThreeTimesWithGrowingWaits) {
  take(record("7"));
  tell(record("7", ItemPhase::succeeded));
  for (const seconds wait : {seconds(1), seconds(2), seconds(4)}) {
    exit("done", 1);
    EXPECT_THAT(steps_.running(), IsEmpty());
    EXPECT_TRUE(items().has(kQueue, "7"));
    EXPECT_EQ(host_.notes.size(), 1U);
    loop_.advance(wait - milliseconds(1));
    EXPECT_THAT(steps_.running(), IsEmpty());
    loop_.advance(milliseconds(1));
    EXPECT_EQ(steps_.running("done").size(), 1U);
  }
  EXPECT_EQ(told_, 0);
  exit("done", 1);
  EXPECT_EQ(told_, 1);
  EXPECT_THAT(last_told_error_, HasSubstr("given up"));
  EXPECT_THAT(host_.warnings.back(), HasSubstr("given up"));
  EXPECT_EQ(host_.warnings.size(), 4U);
  EXPECT_FALSE(items().has(kQueue, "7"));
  EXPECT_THAT(host_.notes, IsEmpty());
  loop_.advance(std::chrono::hours(1));
  EXPECT_EQ(steps_.started(), 4U);
}

TEST_F(ItemsInHandTest, ACommandThatSucceedsAtLastIsEnough) {
  take(record("7"));
  tell(record("7", ItemPhase::failed));
  exit("failed", 1);
  loop_.advance(seconds(1));
  exit("failed", 0);
  EXPECT_EQ(told_, 1);
  EXPECT_EQ(host_.warnings.size(), 1U);
}

TEST_F(ItemsInHandTest, ACommandThatTakesTooLongHasFailed) {
  take(record("7"));
  tell(record("7", ItemPhase::succeeded));
  loop_.advance(seconds(5));
  EXPECT_EQ(steps_.stops().size(), 1U);
  EXPECT_THAT(host_.warnings, ElementsAre(HasSubstr("timed out after 5s")));
}

TEST_F(ItemsInHandTest, AFieldThatIsMissingIsNotTriedAgain) {
  ItemRecord odd = record("7", ItemPhase::succeeded);
  odd.item.json = "{}";
  take(odd);
  tell(odd);
  EXPECT_EQ(told_, 1);
  EXPECT_THAT(host_.warnings, ElementsAre(HasSubstr("item.id")));
  EXPECT_THAT(host_.notes, IsEmpty());
}

// --- What a former server left -----------------------------------------------------------------

TEST_F(ItemsInHandTest, WhatWasLeftIsInHandUntilItIsTold) {
  for (const auto& [key, phase] :
       std::vector<std::pair<std::string, ItemPhase>>{{"1", ItemPhase::taking},
                                                      {"2", ItemPhase::running},
                                                      {"3", ItemPhase::succeeded},
                                                      {"4", ItemPhase::failed}}) {
    const ItemRecord left = record(key, phase);
    host_.notes[item_note_key("shop", "bugs", key)] = encode_item(left);
    items().restore(left);
  }
  EXPECT_EQ(items().count(kQueue), 4U);
  EXPECT_EQ(steps_.started(), 0U);
  items().tell_left(book_);
  loop_.run();
  EXPECT_EQ(steps_.running("done").size(), 1U);
  EXPECT_EQ(steps_.running("done", "3").size(), 1U);
  EXPECT_EQ(steps_.running("failed").size(), 3U);
  for (const char* key : {"1", "2"}) {
    ASSERT_EQ(steps_.running("failed", key).size(), 1U);
    EXPECT_THAT(*steps_.variable(steps_.running("failed", key)[0], "REPRISE_ERROR"),
                HasSubstr("the server ended"));
  }
  EXPECT_EQ(steps_.variable(steps_.running("failed", "4")[0], "REPRISE_ERROR"), "it broke");
  for (const StepId id : steps_.running()) steps_.exit(id);
  loop_.run();
  EXPECT_EQ(items().count(kQueue), 0U);
  EXPECT_THAT(host_.notes, IsEmpty());
  items().tell_left(book_);
  loop_.run();
  EXPECT_EQ(steps_.started(), 4U);
}

TEST_F(ItemsInHandTest, WhatIsOfAnotherProjectOrOfNoQueueWaitsForIt) {
  ItemRecord other = record("1", ItemPhase::failed);
  other.ns = "elsewhere";
  items().restore(other);
  items().restore(record("2", ItemPhase::failed, "gone"));
  items().tell_left(book_);
  loop_.run();
  EXPECT_EQ(steps_.started(), 0U);
  EXPECT_TRUE(items().has({"elsewhere", "bugs"}, "1"));
  EXPECT_TRUE(items().has({"shop", "gone"}, "2"));
  items().tell_left(test::runbook_from(R"(
[queue.gone]
type = "external"
list = "list"
take = "take"
failed = "failed"
)"));
  loop_.run();
  EXPECT_EQ(steps_.running("failed", "2").size(), 1U);
}

// --- Lists that are a little old -----------------------------------------------------------------

TEST_F(ItemsInHandTest, WhatWasLetGoOfAfterAListBeganIsNotFreeInThatList) {
  const auto older = items().list_begins(kQueue);
  EXPECT_TRUE(items().is_free(kQueue, "7", older));
  take(record("7"));
  EXPECT_FALSE(items().is_free(kQueue, "7", older));
  items().drop(record("7"));
  EXPECT_FALSE(items().is_free(kQueue, "7", older));
  EXPECT_TRUE(items().is_free(kQueue, "8", older));
  const auto younger = items().list_begins(kQueue);
  EXPECT_TRUE(items().is_free(kQueue, "7", younger));
  items().list_ends(kQueue, older);
  EXPECT_TRUE(items().is_free(kQueue, "7", younger));
  items().list_ends(kQueue, younger);
  const auto next = items().list_begins(kQueue);
  EXPECT_TRUE(items().is_free(kQueue, "7", next));
}

}  // namespace
}  // namespace reprise::worker
