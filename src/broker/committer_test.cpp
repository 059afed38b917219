// The committer: in which order batches end, and how many are under way.
#include "broker/committer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/gated_storage.h"

namespace reprise {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

class CommitterTest : public testing::TestWithParam<DurabilityMode> {
 protected:
  void SetUp() override { start(GetParam()); }
  void TearDown() override {
    storage_.let_go();
    committer_.reset();
  }

  void start(DurabilityMode mode) {
    committer_.emplace(
        storage_, events_, mode, milliseconds(10),
        Committer::Hooks{
            .on_committed = [this](std::uint64_t batch) { note("end " + std::to_string(batch)); },
            .on_fatal = [this](const Error& error) { note(error.detail); }});
  }
  Committer::Work work(std::uint64_t number) {
    Committer::Work work{.batch = {.number = number}, .commands = 1};
    work.batch.changes.changes.emplace_back(
        PutConfig{std::make_shared<const ConfigEntry>(ConfigEntry{.key = std::to_string(number)})});
    work.replies.emplace_back([this, number] { note("reply " + std::to_string(number)); });
    return work;
  }
  void note(std::string what) {
    {
      const std::lock_guard lock(mutex_);
      notes_.push_back(std::move(what));
    }
    changed_.notify_all();
  }
  // Those there are when there are so many.
  std::vector<std::string> notes(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, seconds(20), [&] { return notes_.size() >= count; }));
    return notes_;
  }

  test::GatedStorage storage_;
  EventHub events_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> notes_;
  std::optional<Committer> committer_;
};

INSTANTIATE_TEST_SUITE_P(Modes, CommitterTest,
                         testing::Values(DurabilityMode::sync, DurabilityMode::interval,
                                         DurabilityMode::none),
                         [](const auto& mode) {
                           return std::string(durability_mode_name(mode.param));
                         });

class SideBySide : public CommitterTest {};
INSTANTIATE_TEST_SUITE_P(Modes, SideBySide, testing::Values(DurabilityMode::sync),
                         [](const auto& mode) {
                           return std::string(durability_mode_name(mode.param));
                         });

TEST_P(CommitterTest, ABatchIsAnsweredAndThenEnded) {
  for (std::uint64_t number = 1; number <= 2; ++number) {
    committer_->submit(work(number));
    notes(2 * number);
  }
  EXPECT_THAT(notes(4), ElementsAre("reply 1", "end 1", "reply 2", "end 2"));
  EXPECT_EQ(storage_.commits(), 2);
}

TEST_P(CommitterTest, WhatIsCommittedHereIsAnsweredHereAndNotTold) {
  Committer::Work here = work(1);
  // In interval mode its thread may be syncing.
  while (committer_->commit_here(here) == Committer::Here::busy) {
  }
  EXPECT_THAT(notes(1), ElementsAre("reply 1"));
  committer_->submit(work(2));
  EXPECT_THAT(notes(3), ElementsAre("reply 1", "reply 2", "end 2"));
}

TEST_P(CommitterTest, StopCommitsWhatWasSubmitted) {
  storage_.hold();
  const std::size_t count = Committer::batches_at_once(GetParam());
  for (std::uint64_t number = 1; number <= count; ++number) committer_->submit(work(number));
  storage_.wait_for_commit_at_gate();
  storage_.let_go();
  committer_->stop();
  EXPECT_EQ(storage_.commits(), static_cast<int>(count));
  EXPECT_EQ(storage_.syncs(), GetParam() == DurabilityMode::sync ? 0 : 1);
}

TEST_P(CommitterTest, AFailureIsToldOnceAndAnswersNothing) {
  storage_.fail_commits();
  committer_->submit(work(1));
  EXPECT_THAT(notes(1), ElementsAre("planted failure"));
  committer_->submit(work(2));
  Committer::Work here = work(3);
  committer_->stop();
  EXPECT_THAT(notes(1), ElementsAre("planted failure"));
}

TEST_P(SideBySide, TwoAreWrittenAtOnce) {
  storage_.hold();
  committer_->submit(work(1));
  committer_->submit(work(2));
  storage_.wait_for_commits_at_gate(2);
  storage_.let_go();
  EXPECT_THAT(notes(4), ElementsAre("reply 1", "end 1", "reply 2", "end 2"));
}

TEST_P(SideBySide, WhatIsWrittenFirstWaitsForWhatBeganBefore) {
  storage_.hold_next();
  committer_->submit(work(1));
  storage_.wait_for_commits_at_gate(1);
  committer_->submit(work(2));
  storage_.wait_for_writes(1);  // the second
  EXPECT_EQ(storage_.commits(), 0);
  EXPECT_THAT(notes(0), ElementsAre());
  storage_.let_go();
  EXPECT_THAT(notes(4), ElementsAre("reply 1", "end 1", "reply 2", "end 2"));
}

TEST_P(SideBySide, AfterAFailureWhatWasWrittenBesideItIsNotAnsweredEither) {
  storage_.hold_next();
  committer_->submit(work(1));
  storage_.wait_for_commits_at_gate(1);
  committer_->submit(work(2));
  storage_.wait_for_writes(1);
  storage_.fail_commits();
  storage_.let_go();
  EXPECT_THAT(notes(1), ElementsAre("planted failure"));
  committer_->stop();
  EXPECT_THAT(notes(1), ElementsAre("planted failure"));
  EXPECT_EQ(storage_.commits(), 0);
}

// Nothing but replies: nothing is written, but they keep their turn.
TEST_P(SideBySide, RepliesWithoutChangesWaitForThoseBeforeThem) {
  storage_.hold_next();
  committer_->submit(work(1));
  storage_.wait_for_commits_at_gate(1);
  Committer::Work empty{.batch = {.number = 2}};
  empty.replies.emplace_back([this] { note("reply 2"); });
  committer_->submit(std::move(empty));
  EXPECT_THAT(notes(0), ElementsAre());
  storage_.let_go();
  EXPECT_THAT(notes(4), ElementsAre("reply 1", "end 1", "reply 2", "end 2"));
  EXPECT_EQ(storage_.commits(), 1);
}

}  // namespace
}  // namespace reprise
