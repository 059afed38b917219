// One fixed run with checkpoints, rotations and segments that are used again, and a disk that fails
// at every single step of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "storage/durable/durable_storage.h"
#include "storage/keys.h"
#include "support/memory_disk.h"
#include "support/storage_contents.h"

namespace reprise::storage {
namespace {

using test::Contents;
using test::DiskImage;
using test::Loss;
using testing::AllOf;
using testing::HasSubstr;

constexpr char kDirectory[] = "/disk/data";

class FixedRun {
 public:
  FixedRun() = default;
  explicit FixedRun(const DiskImage& image) { disk_.load(kDirectory, image); }
  // The next life, on what an earlier one has left.
  FixedRun(const DiskImage& image, const FixedRun& earlier)
      : states_(earlier.states_), synced_(earlier.synced_) {
    disk_.load(kDirectory, image);
  }

  Status open() {
    auto opened = open_durable_storage({.directory = kDirectory,
                                        .block_cache_bytes = 1U << 20,
                                        .overlay_bytes = 3000,
                                        .journal_bytes = 6000,
                                        .segment_bytes_min = 1024,
                                        .segment_bytes_max = 2048,
                                        .env = &disk_.env(),
                                        .background = false,
                                        .on_failure = [this](const Error&) { end_here(); }});
    if (!opened) return opened.error();
    storage_ = *std::move(opened);
    return ok();
  }

  // Until the first failure, if there is one.
  Status run() {
    for (std::size_t number = 1; number <= kCommits; ++number) REPRISE_TRY(commit(number));
    return ok();
  }

  // Every second commit is synced.
  Status commit(std::size_t number) {
    const Batch batch = make_batch(number);
    Contents after = states_.back();
    test::apply(batch, after);
    states_.push_back(std::move(after));  // it may be there even if the call fails
    const bool synced = number % 2 == 0;
    const Status done = storage_->commit(batch, synced ? Durability::synced : Durability::buffered);
    if (done && synced) synced_ = number;
    return done;
  }
  Status sync() { return storage_->sync(); }

  void cut_power(Loss loss, std::uint64_t seed) {
    disk_.files().crash(loss, seed);
    storage_.reset();
    disk_.files().restart();
  }
  void close() { storage_.reset(); }

  // Opens, and finds every synced commit and all before the last one that it finds.
  void expect_all_that_was_synced() {
    const Status opened = open();
    ASSERT_TRUE(opened) << opened.error().detail;
    const auto found = test::read_contents(*storage_);
    ASSERT_TRUE(found) << found.error().detail;
    const auto commits = storage_->get(Keyspace::meta, "commits");
    ASSERT_TRUE(commits);
    const std::size_t count = *commits ? std::stoul(**commits) : 0;
    ASSERT_GE(count, synced_);
    ASSERT_LT(count, states_.size());
    ASSERT_EQ(test::difference(states_[count], *found), "");
    states_.resize(count + 1);
    synced_ = 0;
    const Status again = commit(count + 1);
    ASSERT_TRUE(again) << again.error().detail;
  }

  DiskImage image() { return disk_.image(kDirectory); }
  // What there was when it was told of a failure, as a server ends at once; else what there is now.
  DiskImage left_behind() { return at_failure_ ? *at_failure_ : image(); }
  test::FaultyFileSystem& files() { return disk_.files(); }
  Storage& storage() { return *storage_; }

 private:
  static constexpr std::size_t kCommits = 36;

  void end_here() {
    if (!at_failure_) at_failure_ = image();
  }

  static Batch make_batch(std::size_t number) {
    Batch batch;
    batch.put(Keyspace::meta, "commits", std::to_string(number));
    const QueueNumber queue = 1 + number % 2;
    batch.put(Keyspace::jobs, job_key({.queue = queue, .seq = number}),
              std::string(150 + number * 7 % 200, static_cast<char>('a' + number % 26)));
    batch.put(Keyspace::keys, idempotency_key(queue, "key " + std::to_string(number)), "entry");
    if (number > 6) batch.erase(Keyspace::jobs, job_key({.queue = queue, .seq = number - 6}));
    if (number % 14 == 0) {
      batch.erase_range(Keyspace::jobs, queue_begin(2), queue_end(2));
      batch.erase_range(Keyspace::keys, queue_begin(2), queue_end(2));
    }
    return batch;
  }

  test::MemoryDisk disk_;
  std::unique_ptr<Storage> storage_;
  std::vector<Contents> states_ = {{}};  // by how many commits there were
  std::size_t synced_ = 0;
  std::optional<DiskImage> at_failure_;
};

// A directory in which nothing has happened yet, to save the time of making it.
const DiskImage& new_directory() {
  static const DiskImage image = [] {
    FixedRun run;
    EXPECT_TRUE(run.open());
    run.close();
    return run.image();
  }();
  return image;
}

Loss nth_loss(std::uint64_t n) { return static_cast<Loss>(n % 3); }

TEST(DiskFaults, TheRunHasAllThatCanGoWrongInIt) {
  FixedRun run(new_directory());
  ASSERT_TRUE(run.open());
  const auto tables = run.files().syncs(".sst");
  ASSERT_TRUE(run.run());
  EXPECT_GE(run.files().syncs(".sst"), tables + 12) << "several checkpoints of several tables";
  std::uint64_t highest = 0;
  std::uint64_t segments = 0;
  for (const auto& [name, content] : run.image()) {
    if (!name.ends_with(".seg")) continue;
    ++segments;
    highest = std::max<std::uint64_t>(highest, std::stoull(name.substr(name.find('/') + 1)));
  }
  EXPECT_GE(highest, 8U);
  EXPECT_LT(segments, highest) << "some were given back";
  run.close();
  run.expect_all_that_was_synced();
}

TEST(DiskFaults, APowerCutAtEveryStepOfTheMakingOfADirectory) {
  std::uint64_t steps = 0;
  {
    FixedRun run;
    ASSERT_TRUE(run.open());
    steps = run.files().operations();
  }
  for (std::uint64_t step = 1; step <= steps; ++step) {
    SCOPED_TRACE(step);
    FixedRun run;
    run.files().crash_at(step);
    (void)run.open().has_value();  // the last steps are deletions, which may fail
    run.cut_power(nth_loss(step), step);
    ASSERT_NO_FATAL_FAILURE(run.expect_all_that_was_synced());
  }
}

TEST(DiskFaults, APowerCutAtEveryStep) {
  std::uint64_t steps = 0;
  {
    FixedRun run(new_directory());
    ASSERT_TRUE(run.open());
    ASSERT_TRUE(run.run());
    steps = run.files().operations();
  }
  for (std::uint64_t step = 1; step <= steps; ++step) {
    SCOPED_TRACE(step);
    FixedRun run(new_directory());
    run.files().crash_at(step);
    if (run.open()) (void)run.run().has_value();
    run.cut_power(nth_loss(step), step);
    ASSERT_NO_FATAL_FAILURE(run.expect_all_that_was_synced());
  }
}

// Whatever call it is that fails: from then on all fail in the same way, unless it was something
// that can be tried again, and nothing that was acknowledged is lost.
void expect_a_clean_end(FixedRun& run) {
  if (run.open()) {
    const Status done = run.run();
    if (!done) {
      EXPECT_TRUE(done.error().code == Errc::io || done.error().code == Errc::disk_full);
      const Status later = run.commit(1000);
      ASSERT_FALSE(later);
      EXPECT_EQ(later.error(), done.error());
      EXPECT_EQ(run.sync().error(), done.error());
    }
  }
}

TEST(DiskFaults, AFailedSyncAtEveryStep) {
  std::uint64_t syncs = 0;
  {
    FixedRun run(new_directory());
    ASSERT_TRUE(run.open());
    ASSERT_TRUE(run.run());
    syncs = run.files().syncs("");
  }
  for (std::uint64_t nth = 1; nth <= syncs; ++nth) {
    SCOPED_TRACE(nth);
    FixedRun run(new_directory());
    run.files().fail_sync(nth, "");
    ASSERT_NO_FATAL_FAILURE(expect_a_clean_end(run));
    run.cut_power(nth_loss(nth), nth);
    ASSERT_NO_FATAL_FAILURE(run.expect_all_that_was_synced());
  }
}

// The process ends, the machine goes on: what could not be synced is in the files nevertheless. So
// a change that RocksDB takes for failed, and would take back, is found by the next start.
TEST(DiskFaults, AFailedSyncAtEveryStepAndAProcessThatEnds) {
  std::uint64_t syncs = 0;
  {
    FixedRun run(new_directory());
    ASSERT_TRUE(run.open());
    ASSERT_TRUE(run.run());
    syncs = run.files().syncs("");
  }
  for (std::uint64_t nth = 1; nth <= syncs; ++nth) {
    SCOPED_TRACE(nth);
    FixedRun run(new_directory());
    run.files().fail_sync(nth, "");
    if (run.open()) (void)run.run().has_value();
    FixedRun next(run.left_behind(), run);
    ASSERT_NO_FATAL_FAILURE(next.expect_all_that_was_synced());
  }
}

TEST(DiskFaults, AFullDiskAtEveryWrite) {
  std::uint64_t steps = 0;
  {
    FixedRun run(new_directory());
    ASSERT_TRUE(run.open());
    ASSERT_TRUE(run.run());
    steps = run.files().operations();
  }
  for (std::uint64_t nth = 1; nth <= steps; ++nth) {
    SCOPED_TRACE(nth);
    FixedRun run(new_directory());
    run.files().fail_write(nth, "");
    ASSERT_NO_FATAL_FAILURE(expect_a_clean_end(run));
    if (!run.files().write_failed()) break;  // there are no more
    if (nth % 2 == 0) {
      run.cut_power(nth_loss(nth), nth);
    } else {
      run.close();
    }
    ASSERT_NO_FATAL_FAILURE(run.expect_all_that_was_synced());
  }
}

// --- What exactly is said -----------------------------------------------------------------------

class FailingDisk : public testing::Test {
 protected:
  void SetUp() override { open(); }
  void open(DurableOptions options = {.background = false}) {
    storage_.reset();
    options.directory = kDirectory;
    options.env = &disk_.env();
    auto opened = open_durable_storage(options);
    ASSERT_TRUE(opened) << opened.error().detail;
    storage_ = *std::move(opened);
  }
  void cut_power() {
    disk_.files().crash();
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
};

TEST_F(FailingDisk, AFailedSyncFailsTheCommitAndAllAfterItWithoutARetry) {
  ASSERT_TRUE(put("a", "1"));
  disk_.files().fail_sync(1, ".seg");
  const auto failed = put("b", "2");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::io);
  EXPECT_THAT(failed.error().detail,
              AllOf(HasSubstr(kDirectory), HasSubstr(".seg"), HasSubstr("sync failed")));

  const auto syncs = disk_.files().syncs(".seg");
  EXPECT_EQ(put("c", "3").error(), failed.error());
  EXPECT_EQ(put("d", "4", Durability::buffered).error(), failed.error());
  EXPECT_EQ(storage_->sync().error(), failed.error());
  EXPECT_EQ(disk_.files().syncs(".seg"), syncs);
  EXPECT_EQ(get("b"), std::nullopt);

  cut_power();
  open();
  EXPECT_EQ(get("a"), "1");
  EXPECT_EQ(get("b"), std::nullopt);
  EXPECT_EQ(get("c"), std::nullopt);
}

TEST_F(FailingDisk, AFailedSyncCallIsAnErrorToo) {
  ASSERT_TRUE(put("a", "1", Durability::buffered));
  disk_.files().fail_sync(1, ".seg");
  const auto failed = storage_->sync();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::io);
  EXPECT_EQ(put("b", "2").error(), failed.error());
}

// Buffered commits are not synced, but a segment is before the next one is begun.
TEST_F(FailingDisk, AFailedSyncAtTheEndOfASegmentFailsABufferedCommit) {
  open({.segment_bytes_min = 64U << 10, .segment_bytes_max = 64U << 10, .background = false});
  disk_.files().fail_sync(1, ".seg");
  Status status = ok();
  for (int i = 0; i < 100 && status; ++i) {
    status = put(std::to_string(i), std::string(10000, 'x'), Durability::buffered);
  }
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::io);
  EXPECT_THAT(status.error().detail, HasSubstr("sync failed"));
  EXPECT_EQ(put("later", "1").error(), status.error());
}

TEST_F(FailingDisk, AFailedWriteFailsTheCommitAndKeepsWhatWasThere) {
  ASSERT_TRUE(put("a", "1"));
  disk_.files().fail_write(1, ".seg");
  const auto failed = put("b", "2");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Errc::disk_full);
  EXPECT_EQ(get("a"), "1");
  EXPECT_EQ(get("b"), std::nullopt);
  open();
  EXPECT_EQ(get("a"), "1");
  EXPECT_TRUE(put("b", "2"));
}

TEST_F(FailingDisk, ACheckpointThatFindsTheDiskFullIsMadeLater) {
  open({.overlay_bytes = 1000, .background = false});
  disk_.files().fail_write(1, ".sst");
  ASSERT_TRUE(put("a", std::string(2000, 'a')));
  EXPECT_TRUE(storage_->out_of_space());
  EXPECT_EQ(get("a"), std::string(2000, 'a'));
  ASSERT_TRUE(put("b", "2"));
  EXPECT_FALSE(storage_->out_of_space());
  cut_power();
  open();
  EXPECT_EQ(get("a"), std::string(2000, 'a'));
  EXPECT_EQ(get("b"), "2");
}

}  // namespace
}  // namespace reprise::storage
