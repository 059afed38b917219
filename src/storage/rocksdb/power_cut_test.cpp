// What RocksDbStorage keeps when the power goes or the disk fails, on a disk made for that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include "base/random.h"
#include "storage/rocksdb/rocksdb_storage.h"
#include "support/faulty_file_system.h"

namespace reprise::storage {
namespace {

using test::Loss;
using testing::AllOf;
using testing::HasSubstr;

class PowerCut : public testing::Test {
 protected:
  ~PowerCut() override { storage_.reset(); }

  void open(RocksDbOptions options = {}) {
    options.directory = "/disk/data";
    options.env = env_.get();
    options.notice = [this](std::string_view text) { notices_.emplace_back(text); };
    auto opened = open_rocksdb_storage(options);
    ASSERT_TRUE(opened) << opened.error().detail;
    storage_ = *std::move(opened);
  }
  // The process ends, the machine does not.
  void reopen() {
    storage_.reset();
    open();
  }
  void cut_power(Loss loss = Loss::all, std::uint64_t seed = 0) {
    disk_->crash(loss, seed);
    storage_.reset();
    disk_->restart();
  }
  Status put(std::string_view key, std::string_view value,
             Durability durability = Durability::synced) {
    Batch batch;
    batch.put(Keyspace::jobs, key, value);
    return storage_->commit(batch, durability);
  }
  std::optional<std::string> get(std::string_view key) {
    const auto value = storage_->get(Keyspace::jobs, key);
    EXPECT_TRUE(value) << value.error().detail;
    return *value;
  }

  const std::unique_ptr<rocksdb::Env> base_{rocksdb::NewMemEnv(rocksdb::Env::Default())};
  const std::shared_ptr<test::FaultyFileSystem> disk_ =
      std::make_shared<test::FaultyFileSystem>(base_->GetFileSystem());
  const std::unique_ptr<rocksdb::Env> env_ = test::make_env(disk_);
  std::unique_ptr<Storage> storage_;
  std::vector<std::string> notices_;
};

TEST_F(PowerCut, KeepsWhatWasSyncedAndLosesTheRest) {
  open();
  ASSERT_TRUE(put("synced", "1"));
  ASSERT_TRUE(put("buffered", "2", Durability::buffered));
  cut_power();
  open();
  EXPECT_EQ(get("synced"), "1");
  EXPECT_EQ(get("buffered"), std::nullopt);
}

TEST_F(PowerCut, KeepsBufferedCommitsThatWereSyncedLater) {
  open();
  ASSERT_TRUE(put("a", "1", Durability::buffered));
  ASSERT_TRUE(storage_->sync());
  ASSERT_TRUE(put("b", "2", Durability::buffered));
  ASSERT_TRUE(put("c", "3", Durability::synced));
  cut_power();
  open();
  EXPECT_EQ(get("a"), "1");
  EXPECT_EQ(get("b"), "2");
  EXPECT_EQ(get("c"), "3");
}

TEST_F(PowerCut, RightAfterTheFirstCommitKeepsTheNewDirectory) {
  open();
  ASSERT_TRUE(put("a", "1"));
  cut_power();
  open();
  EXPECT_EQ(get("a"), "1");
}

// What a killed process left in the kernel's hands is served by the next one, so it must be made
// durable before that: a later synced commit stands on it.
TEST_F(PowerCut, AfterARestartKeepsWhatTheRestartFound) {
  open();
  ASSERT_TRUE(put("a", "1", Durability::buffered));
  reopen();
  EXPECT_EQ(get("a"), "1");
  ASSERT_TRUE(put("b", "2"));
  cut_power();
  open();
  EXPECT_EQ(get("a"), "1");
  EXPECT_EQ(get("b"), "2");
}

TEST_F(PowerCut, TellsTheOperatorWhatItCutOff) {
  open();
  ASSERT_TRUE(put("a", "1"));
  ASSERT_TRUE(put("b", std::string(100000, 'x'), Durability::buffered));
  for (std::uint64_t seed = 1; notices_.empty() && seed < 20; ++seed) {
    cut_power(Loss::tail, seed);
    open();
    ASSERT_TRUE(put("b", std::string(100000, 'x'), Durability::buffered));
  }
  ASSERT_FALSE(notices_.empty());
  EXPECT_THAT(notices_.front(), AllOf(HasSubstr("/disk/data/db/"), HasSubstr("power cut")));
}

TEST_F(PowerCut, SyncsOncePerSyncedCommitAndNotForBufferedOnes) {
  open();
  const auto before = disk_->syncs();
  ASSERT_TRUE(put("a", "1", Durability::buffered));
  EXPECT_EQ(disk_->syncs(), before);
  ASSERT_TRUE(put("b", "2", Durability::synced));
  EXPECT_EQ(disk_->syncs(), before + 1);
  ASSERT_TRUE(storage_->sync());
  EXPECT_EQ(disk_->syncs(), before + 2);
}

TEST_F(PowerCut, AFailedSyncFailsTheCommitAndAllAfterItWithoutARetry) {
  open();
  ASSERT_TRUE(put("a", "1"));
  disk_->fail_sync(1);
  const auto failed = put("b", "2");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::io);
  EXPECT_THAT(failed.error().detail, AllOf(HasSubstr("/disk/data"), HasSubstr("sync failed")));

  const auto syncs = disk_->syncs();
  EXPECT_EQ(put("c", "3").error(), failed.error());
  EXPECT_EQ(put("d", "4", Durability::buffered).error(), failed.error());
  EXPECT_EQ(storage_->sync().error(), failed.error());
  EXPECT_EQ(disk_->syncs(), syncs);

  cut_power();
  open();
  EXPECT_EQ(get("a"), "1");
  EXPECT_EQ(get("b"), std::nullopt);
  EXPECT_EQ(get("c"), std::nullopt);
}

TEST_F(PowerCut, AFailedSyncCallIsAnErrorToo) {
  open();
  ASSERT_TRUE(put("a", "1", Durability::buffered));
  disk_->fail_sync(1);
  const auto failed = storage_->sync();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::io);
  EXPECT_FALSE(put("b", "2"));
}

// Buffered commits are not synced, but a journal file is before the next one is begun.
TEST_F(PowerCut, AFailedSyncAtTheEndOfAJournalFileFailsABufferedCommit) {
  open({.write_buffer_bytes = 64U << 10});
  disk_->fail_sync(1);
  Status status = ok();
  for (int i = 0; i < 100 && status; ++i) {
    status = put(std::to_string(i), std::string(10000, 'x'), Durability::buffered);
  }
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::io);
  EXPECT_THAT(status.error().detail, HasSubstr("sync failed"));
  EXPECT_EQ(put("later", "1").error(), status.error());
}

TEST_F(PowerCut, AFullDiskFailsTheCommitAndKeepsWhatWasThere) {
  open();
  ASSERT_TRUE(put("a", "1"));
  disk_->fail_write(1);
  const auto failed = put("b", "2");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::io);
  EXPECT_EQ(get("a"), "1");
  reopen();
  EXPECT_EQ(get("a"), "1");
  EXPECT_TRUE(put("b", "2"));
}

// Commits number themselves. Whatever is lost, what is left must be all of them up to some number,
// and that number must not be less than the last synced one.
class RandomPowerCuts : public PowerCut, public testing::WithParamInterface<Loss> {
 protected:
  void run(std::uint64_t seed) {
    SeededRandom random(seed);
    // Small buffers: journal files change and table files are written all the time.
    const RocksDbOptions options{.block_cache_bytes = 1U << 20, .write_buffer_bytes = 64U << 10};
    for (int life = 0; life < 4; ++life) {
      ASSERT_NO_FATAL_FAILURE(open(options));
      ASSERT_NO_FATAL_FAILURE(expect_a_prefix());
      for (std::uint64_t i = random.below(40); i > 0; --i) {
        ASSERT_NO_FATAL_FAILURE(commit(random));
      }
      if (random.below(4) == 0) {
        storage_.reset();  // killed
      } else {
        cut_power(GetParam(), random.next_u64());
      }
    }
  }

 private:
  static std::string name(std::uint64_t number) { return std::to_string(1000000 + number); }

  void commit(SeededRandom& random) {
    const bool synced = random.below(3) == 0;
    ++committed_;
    Batch batch;
    batch.put(Keyspace::jobs, name(committed_), std::string(random.below(20000), 'j'));
    batch.put(Keyspace::states, name(committed_), "s");
    if (committed_ > 1) batch.erase(Keyspace::states, name(committed_ - 1));
    const auto status = storage_->commit(batch, synced ? Durability::synced : Durability::buffered);
    ASSERT_TRUE(status) << status.error().detail;
    if (synced) synced_ = committed_;
  }

  void expect_a_prefix() {
    std::uint64_t jobs = 0;
    const auto status = storage_->scan(Keyspace::jobs, {}, {}, [&](auto key, auto) {
      EXPECT_EQ(key, name(++jobs));
      return true;
    });
    ASSERT_TRUE(status) << status.error().detail;
    ASSERT_GE(jobs, synced_);
    ASSERT_LE(jobs, committed_);
    ASSERT_TRUE(storage_->scan(Keyspace::states, {}, {}, [&](auto key, auto) {
      EXPECT_EQ(key, name(jobs));
      return true;
    }));
    committed_ = jobs;
    synced_ = jobs;
  }

  std::uint64_t committed_ = 0;
  std::uint64_t synced_ = 0;
};

TEST_P(RandomPowerCuts, LeaveAllCommitsUpToSomePointAndEverySyncedOne) {
  const auto base_seed = static_cast<std::uint64_t>(GetParam()) * 1000;
  for (std::uint64_t seed = base_seed; seed < base_seed + 40; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(run(seed));
  }
}

INSTANTIATE_TEST_SUITE_P(Losses, RandomPowerCuts,
                         testing::Values(Loss::all, Loss::tail, Loss::pages), [](const auto& loss) {
                           switch (loss.param) {
                             case Loss::all:
                               return "All";
                             case Loss::tail:
                               return "Tail";
                             case Loss::pages:
                               return "Pages";
                           }
                           return "Unknown";
                         });

}  // namespace
}  // namespace reprise::storage
