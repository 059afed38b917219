// Backup: a copy that opens and holds what was committed before, while commits go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "storage/durable/durable_storage.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "support/files.h"
#include "support/live_attributes.h"
#include "support/storage_contents.h"
#include "support/temp_directory.h"

namespace reprise::storage {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class Backup : public testing::Test {
 protected:
  std::unique_ptr<Storage> open(const std::string& path, DurableOptions options = {}) {
    options.directory = path;
    auto opened = open_durable_storage(options);
    EXPECT_TRUE(opened) << opened.error().detail;
    return opened ? *std::move(opened) : nullptr;
  }
  void commit(Storage& storage, std::uint64_t number) {
    Batch batch;
    batch.put(Keyspace::meta, "commits", std::to_string(number));
    batch.put(Keyspace::jobs, job_key({.queue = 1, .seq = number}),
              "job " + std::to_string(number));
    if (number > 10) batch.erase(Keyspace::jobs, job_key({.queue = 1, .seq = number - 10}));
    ASSERT_TRUE(storage.commit(batch, Durability::buffered));
  }
  static test::Contents after(std::uint64_t commits) {
    test::Contents contents;
    contents[Keyspace::meta]["commits"] = std::to_string(commits);
    for (std::uint64_t i = commits > 10 ? commits - 9 : 1; i <= commits; ++i) {
      contents[Keyspace::jobs][job_key({.queue = 1, .seq = i})] = "job " + std::to_string(i);
    }
    return contents;
  }
  void expect_commits(const std::string& path, std::uint64_t at_least, std::uint64_t at_most) {
    const auto copy = open(path);
    ASSERT_TRUE(copy);
    const auto found = test::read_contents(*copy);
    ASSERT_TRUE(found) << found.error().detail;
    const std::uint64_t count = std::stoull(**copy->get(Keyspace::meta, "commits"));
    EXPECT_GE(count, at_least);
    EXPECT_LE(count, at_most);
    EXPECT_EQ(test::difference(after(count), *found), "");
  }

  const test::TempDirectory parent_;
  const std::string path_ = parent_ / "data";
  const std::string copy_ = parent_ / "copy";
};

TEST_F(Backup, HoldsWhatWasCommittedAndNothingThatCameLater) {
  const auto storage = open(path_);
  for (std::uint64_t i = 1; i <= 30; ++i) commit(*storage, i);
  ASSERT_TRUE(storage->backup(copy_));
  for (std::uint64_t i = 31; i <= 40; ++i) commit(*storage, i);
  expect_commits(copy_, 30, 30);
  ASSERT_TRUE(storage->backup(parent_ / "later"));
  expect_commits(parent_ / "later", 40, 40);
}

TEST_F(Backup, IsADirectoryToGoOnIn) {
  const auto storage = open(path_);
  for (std::uint64_t i = 1; i <= 30; ++i) commit(*storage, i);
  ASSERT_TRUE(storage->backup(copy_));
  {
    const auto copy = open(copy_);
    for (std::uint64_t i = 31; i <= 50; ++i) commit(*copy, i);
    ASSERT_TRUE(copy->sync());
    ASSERT_TRUE(copy->reclaim(Keyspace::dead, "a", "b"));
  }
  expect_commits(copy_, 50, 50);
  // The two share no file that either changes.
  commit(*storage, 31);
  ASSERT_TRUE(storage->reclaim(Keyspace::dead, "a", "b"));
  expect_commits(copy_, 50, 50);
}

TEST_F(Backup, HasTheAttributesOfJobsInTablesAndInTheJournal) {
  const auto storage = open(path_);
  std::map<JobKey, Scheduling> expected;
  for (Seq seq = 1; seq <= 40; ++seq) {
    const Scheduling scheduling{.fairness_key = "tenant-" + std::to_string(seq % 5),
                                .throttle_keys = {"api"}};
    Batch batch;
    batch.put(Keyspace::jobs, job_key({1, seq}), encode_job({.scheduling = scheduling}));
    ASSERT_TRUE(storage->commit(batch, Durability::buffered));
    expected.emplace(JobKey{1, seq}, scheduling);
    if (seq == 20) {
      ASSERT_TRUE(storage->reclaim(Keyspace::dead, "a", "b"));
    }
  }
  ASSERT_TRUE(storage->backup(copy_));
  EXPECT_EQ(test::live_attributes(*open(copy_)), expected);
}

TEST_F(Backup, OfAnEmptyStorageIsEmpty) {
  ASSERT_TRUE(open(path_)->backup(copy_));
  const auto found = test::read_contents(*open(copy_));
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->empty());
}

TEST_F(Backup, BesideCommitsHoldsAPrefixOfThem) {
  const auto storage = open(path_, {.overlay_bytes = 20'000,
                                    .journal_bytes = 60'000,
                                    .segment_bytes_min = 16U << 10,
                                    .segment_bytes_max = 16U << 10});
  std::atomic<std::uint64_t> committed = 0;
  std::atomic<bool> done = false;
  std::thread committing([&] {
    while (!done) {
      commit(*storage, committed + 1);
      ++committed;
    }
  });
  constexpr int kCopies = 3;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> bounds;
  for (int i = 0; i < kCopies; ++i) {
    while (committed < 200U * (i + 1)) std::this_thread::yield();
    const std::uint64_t before = committed;
    const auto made = storage->backup(copy_ + std::to_string(i));
    EXPECT_TRUE(made) << made.error().detail;
    bounds.emplace_back(before, committed + 1);
  }
  done = true;
  committing.join();
  for (int i = 0; i < kCopies; ++i) {
    expect_commits(copy_ + std::to_string(i), bounds[i].first, bounds[i].second);
  }
}

TEST_F(Backup, IsRefusedWhereSomethingIsAlready) {
  const auto storage = open(path_);
  commit(*storage, 1);
  ASSERT_TRUE(storage->backup(copy_));
  commit(*open(copy_), 2);
  const auto again = storage->backup(copy_);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::directory_not_empty);
  EXPECT_THAT(again.error().detail, HasSubstr(copy_));
  expect_commits(copy_, 2, 2);

  const std::string other = parent_ / "other";
  fs::create_directories(other);
  test::write_file(other + "/thesis.tex", "years of work");
  const auto refused = storage->backup(other);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr("thesis.tex"));
  EXPECT_EQ(std::distance(fs::directory_iterator(other), {}), 1);
}

TEST_F(Backup, OntoItselfIsRefusedAndChangesNothing) {
  auto storage = open(path_);
  commit(*storage, 1);
  const auto refused = storage->backup(path_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().detail, HasSubstr(path_));
  commit(*storage, 2);
  storage.reset();
  expect_commits(path_, 2, 2);
}

// As a backup that was interrupted leaves it: it must not be taken for an empty directory.
TEST_F(Backup, ThatWasNotFinishedIsNotServed) {
  const auto storage = open(path_);
  for (std::uint64_t i = 1; i <= 30; ++i) commit(*storage, i);
  ASSERT_TRUE(storage->backup(copy_));
  fs::remove_all(copy_ + "/db");
  const auto opened = open_durable_storage({.directory = copy_});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
}

}  // namespace
}  // namespace reprise::storage
