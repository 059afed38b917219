// What DurableStorage keeps when the power goes, on a disk made for that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "storage/durable/durable_storage.h"
#include "storage/keys.h"
#include "support/memory_disk.h"
#include "support/seeds.h"
#include "support/storage_contents.h"

namespace reprise::storage {
namespace {

using test::Contents;
using test::Loss;
using testing::AllOf;
using testing::HasSubstr;

// Segments that are soon full and checkpoints that come often.
DurableOptions restless() {
  return {.block_cache_bytes = 1U << 20,
          .overlay_bytes = 6000,
          .journal_bytes = 12000,
          .segment_bytes_min = 1024,
          .segment_bytes_max = 4096,
          .background = false};
}

// A storage on its own disk, the process and the machine around it.
class Machine {
 public:
  void open(DurableOptions options = {.background = false}) {
    options.directory = "/disk/data";
    options.env = &disk_.env();
    options.notice = [this](std::string_view text) { notices_.emplace_back(text); };
    auto opened = open_durable_storage(options);
    ASSERT_TRUE(opened) << opened.error().detail;
    storage_ = *std::move(opened);
  }
  // The process ends, the machine does not.
  void reopen() {
    storage_.reset();
    open();
  }
  void cut_power(Loss loss = Loss::all, std::uint64_t seed = 0) {
    disk_.files().crash(loss, seed);
    storage_.reset();
    disk_.files().restart();
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

  test::MemoryDisk disk_;
  std::unique_ptr<Storage> storage_;
  std::vector<std::string> notices_;
};

class PowerCut : public testing::Test, protected Machine {};

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

TEST_F(PowerCut, RightAfterARestartKeepsWhatTheRestartFound) {
  open();
  ASSERT_TRUE(put("a", "1", Durability::buffered));
  reopen();
  cut_power();
  open();
  EXPECT_EQ(get("a"), "1");
}

// A backup and a reclaim go on in a new segment and give the others back.
TEST_F(PowerCut, RightAfterAReclaimKeepsEverything) {
  open();
  ASSERT_TRUE(put("a", "1"));
  ASSERT_TRUE(storage_->reclaim(Keyspace::dead, "a", "b"));
  cut_power();
  open();
  EXPECT_EQ(get("a"), "1");
  ASSERT_TRUE(storage_->reclaim(Keyspace::dead, "a", "b"));  // with nothing new to write
  cut_power();
  open();
  EXPECT_EQ(get("a"), "1");
}

TEST_F(PowerCut, RightAfterABackupKeepsBoth) {
  open();
  ASSERT_TRUE(put("a", "1"));
  ASSERT_TRUE(storage_->backup("/disk/copy"));
  cut_power();
  open();
  EXPECT_EQ(get("a"), "1");
  auto copy =
      open_durable_storage({.directory = "/disk/copy", .env = &disk_.env(), .background = false});
  ASSERT_TRUE(copy) << copy.error().detail;
  EXPECT_EQ(*(*copy)->get(Keyspace::jobs, "a"), "1");
}

TEST_F(PowerCut, TellsTheOperatorWhatItLeftOut) {
  open();
  ASSERT_TRUE(put("a", "1"));
  ASSERT_TRUE(put("b", std::string(100000, 'x'), Durability::buffered));
  for (std::uint64_t seed = 1; notices_.empty() && seed < 20; ++seed) {
    cut_power(Loss::tail, seed);
    open();
    ASSERT_TRUE(put("b", std::string(100000, 'x'), Durability::buffered));
  }
  ASSERT_FALSE(notices_.empty());
  EXPECT_THAT(notices_.front(), AllOf(HasSubstr("/disk/data/journal/"), HasSubstr("power cut")));
}

TEST_F(PowerCut, SyncsOncePerSyncedCommitAndNotForBufferedOnes) {
  open();
  const auto syncs = [this] { return disk_.files().syncs(".seg"); };
  const auto before = syncs();
  ASSERT_TRUE(put("a", "1", Durability::buffered));
  EXPECT_EQ(syncs(), before);
  ASSERT_TRUE(put("b", "2", Durability::synced));
  EXPECT_EQ(syncs(), before + 1);
  ASSERT_TRUE(storage_->sync());  // nothing is left to sync
  EXPECT_EQ(syncs(), before + 1);
  ASSERT_TRUE(put("c", "3", Durability::buffered));
  ASSERT_TRUE(storage_->sync());
  EXPECT_EQ(syncs(), before + 2);
}

// --- Random lives -------------------------------------------------------------------------------

// Whatever is lost, what is left must be all commits up to some number, and that number must not be
// less than the last synced one.
class RandomLives : private Machine {
 public:
  // With threads of its own, checkpoints and compactions go on beside the commits; such a run does
  // not repeat itself.
  enum class Work : std::uint8_t { in_commits, in_background };

  RandomLives(Loss loss, std::uint64_t seed, Work work)
      : loss_(loss), background_(work == Work::in_background), random_(seed) {}

  void run() {
    for (int life = 0; life < 4; ++life) {
      if (life > 0 && random_.below(4) == 0) disk_.files().crash_at(1 + random_.below(40));
      ASSERT_NO_FATAL_FAILURE(open_in_the_end());
      ASSERT_NO_FATAL_FAILURE(expect_a_prefix());
      if (random_.below(2) == 0) disk_.files().crash_at(1 + random_.below(200));
      for (std::uint64_t i = random_.below(60); i > 0; --i) {
        if (!step()) break;
      }
      lose_power();
    }
    ASSERT_NO_FATAL_FAILURE(open(options()));
    ASSERT_NO_FATAL_FAILURE(expect_a_prefix());
  }

  std::uint64_t cuts() const { return cuts_; }

 private:
  DurableOptions options() const {
    DurableOptions options = restless();
    options.background = background_;
    return options;
  }
  void lose_power() {
    cut_power(loss_, random_.next_u64());
    ++cuts_;
  }
  // The power may go during the start, too.
  void open_in_the_end() {
    DurableOptions once = options();
    once.directory = "/disk/data";
    once.env = &disk_.env();
    if (auto opened = open_durable_storage(once)) {
      storage_ = *std::move(opened);
      return;
    }
    lose_power();
    ASSERT_NO_FATAL_FAILURE(open(options()));
  }

  // Ranges are erased, and reclaimed, only where no compaction can meet the power cut: RocksDB 7.8
  // ends the process, by an assertion, when one that has nothing but a range tombstone to write
  // cannot write it.
  bool step() {
    if (!background_ && random_.below(40) == 0) {
      disk_.files().crash_at(0);
      return storage_->reclaim(Keyspace::jobs, queue_begin(2), queue_end(2)).has_value();
    }
    if (random_.below(20) == 0) {
      if (!storage_->sync()) return false;
      synced_ = states_.size() - 1;
      return true;
    }
    const Batch batch = make_batch(states_.size());
    Contents after = states_.back();
    test::apply(batch, after);
    states_.push_back(std::move(after));  // it may be there even if the call fails
    const bool synced = random_.below(3) == 0;
    if (!storage_->commit(batch, synced ? Durability::synced : Durability::buffered)) return false;
    if (synced) synced_ = states_.size() - 1;
    return true;
  }

  Batch make_batch(std::size_t number) {
    Batch batch;
    batch.put(Keyspace::meta, "commits", std::to_string(number));
    for (std::uint64_t i = 1 + random_.below(4); i > 0; --i) {
      const Seq seq = random_.below(2) == 0 ? number : random_.below(number + 1);
      const std::string key =
          job_key({.queue = static_cast<QueueNumber>(1 + random_.below(3)), .seq = seq});
      const Keyspace keyspace = random_.below(2) == 0 ? Keyspace::jobs : Keyspace::keys;
      if (random_.below(3) == 0) {
        batch.erase(keyspace, key);
      } else {
        const std::size_t bytes = random_.below(30) == 0 ? 6000 : random_.below(300);
        batch.put(keyspace, key, std::string(bytes, static_cast<char>('a' + number % 26)));
      }
    }
    if (!background_ && random_.below(30) == 0) {
      const auto queue = static_cast<QueueNumber>(1 + random_.below(3));
      for (const Keyspace keyspace : {Keyspace::jobs, Keyspace::keys}) {
        batch.erase_range(keyspace, queue_begin(queue), queue_end(queue));
      }
    }
    return batch;
  }

  void expect_a_prefix() {
    const auto found = test::read_contents(*storage_);
    ASSERT_TRUE(found) << found.error().detail;
    const auto commits = storage_->get(Keyspace::meta, "commits");
    ASSERT_TRUE(commits);
    const std::size_t count = *commits ? std::stoul(**commits) : 0;
    ASSERT_GE(count, synced_);
    ASSERT_LT(count, states_.size());
    ASSERT_EQ(test::difference(states_[count], *found), "");
    states_.resize(count + 1);
    synced_ = count;
  }

  const Loss loss_;
  const bool background_;
  SeededRandom random_;
  std::uint64_t cuts_ = 0;
  std::vector<Contents> states_ = {{}};  // by how many commits there were
  std::size_t synced_ = 0;
};

class RandomPowerCuts : public testing::TestWithParam<Loss> {};

void live_many_lives(Loss loss, RandomLives::Work work, std::uint64_t seeds) {
  const auto base_seed = static_cast<std::uint64_t>(loss) * 100'000;
  std::uint64_t cuts = 0;
  for (std::uint64_t seed = base_seed; seed < base_seed + seeds; ++seed) {
    SCOPED_TRACE(seed);
    RandomLives lives(loss, seed, work);
    ASSERT_NO_FATAL_FAILURE(lives.run());
    cuts += lives.cuts();
  }
  EXPECT_GE(cuts, 4 * seeds);
  testing::Test::RecordProperty("power_cuts", std::to_string(cuts));
}

TEST_P(RandomPowerCuts, LeaveAllCommitsUpToSomePointAndEverySyncedOne) {
  live_many_lives(GetParam(), RandomLives::Work::in_commits, test::seed_count(60));
}

TEST_P(RandomPowerCuts, DuringCheckpointsAndCompactionsOfOtherThreads) {
  live_many_lives(GetParam(), RandomLives::Work::in_background, test::seed_count(30));
}

INSTANTIATE_TEST_SUITE_P(Losses, RandomPowerCuts,
                         testing::Values(Loss::all, Loss::tail, Loss::pages),
                         [](const auto& loss) { return test::loss_name(loss.param); });

}  // namespace
}  // namespace reprise::storage
