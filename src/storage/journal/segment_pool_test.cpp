#include "storage/journal/segment_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include "support/gated_file_system.h"
#include "support/journal_disk.h"

namespace reprise::storage::journal {
namespace {

using test::DiskImage;
using test::MemoryDisk;
using namespace std::chrono_literals;

constexpr char kDirectory[] = "/journal";

// True once it is; false when it takes too long.
bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

class SegmentPoolTest : public testing::TestWithParam<bool> {
 protected:
  SegmentPoolTest() { disk_.load(kDirectory, {}); }
  ~SegmentPoolTest() override { pool_.reset(); }

  void start(std::uint64_t bytes_min = 1024, std::uint64_t bytes_max = 8192) {
    pool_ = std::make_unique<SegmentPool>(SegmentPoolOptions{.files = disk_.shared_files(),
                                                             .on_real_disk = false,
                                                             .directory = kDirectory,
                                                             .segment_bytes_min = bytes_min,
                                                             .segment_bytes_max = bytes_max,
                                                             .kept_bytes = 4 * bytes_max,
                                                             .background = GetParam()},
                                          1, std::vector<SegmentPtr>());
  }
  SegmentPtr take(std::uint64_t capacity_min = 0) {
    auto taken = pool_->take(capacity_min);
    EXPECT_TRUE(taken) << taken.error().detail;
    return taken ? *std::move(taken) : nullptr;
  }
  // Its bytes, past the file system.
  std::string content(std::uint64_t number) {
    return disk_.image(kDirectory)[segment_file_name(number)];
  }

  MemoryDisk disk_;
  std::unique_ptr<SegmentPool> pool_;
};

TEST_P(SegmentPoolTest, NumbersHaveNoGapsAndSizesDouble) {
  start();
  std::uint64_t number = 0;
  for (const std::uint64_t bytes : {1024, 2048, 4096, 8192, 8192}) {
    const SegmentPtr segment = take();
    EXPECT_EQ(segment->number(), ++number);
    EXPECT_LE(segment->capacity(), bytes);  // those that are made ahead are smaller
    if (!GetParam()) {
      EXPECT_EQ(segment->capacity(), bytes);
    }
    EXPECT_EQ(content(number), std::string(segment->capacity(), '\0'));
  }
}

TEST_P(SegmentPoolTest, AFileIsDurableBeforeItIsGivenOut) {
  start();
  const SegmentPtr segment = take();
  disk_.files().crash(test::Loss::all);
  pool_.reset();
  disk_.files().restart();
  EXPECT_EQ(content(1), std::string(segment->capacity(), '\0'));
}

TEST_P(SegmentPoolTest, ABatchThatNoSegmentHoldsGetsOneOfItsOwn) {
  start();
  take();
  const SegmentPtr large = take(100'000);
  EXPECT_EQ(large->number(), 2U);
  EXPECT_GE(large->capacity(), 100'000U);
  const SegmentPtr next = take();
  EXPECT_EQ(next->number(), 3U);
  EXPECT_LE(next->capacity(), 8192U);
}

TEST_P(SegmentPoolTest, AFileThatNobodyReadsIsUsedAgain) {
  start(4096, 4096);
  SegmentPtr segment = take();
  ASSERT_TRUE(segment->file().write(0, "what it held", {}));
  SegmentPtr reader = segment;
  pool_->give_back(std::move(segment));
  std::vector<SegmentPtr> taken;
  for (int i = 0; i < 5; ++i) taken.push_back(take());
  // While it is read it stays.
  EXPECT_TRUE(content(1).starts_with("what it held"));
  reader.reset();
  for (int i = 0; i < 5; ++i) taken.push_back(take());
  const DiskImage image = disk_.image(kDirectory);
  EXPECT_FALSE(image.contains(segment_file_name(1)));
  std::uint64_t holding = 0;
  for (const auto& [name, bytes] : image) holding += bytes.starts_with("what it held") ? 1 : 0;
  EXPECT_EQ(holding, 1U);
}

TEST_P(SegmentPoolTest, NothingIsLeftOfWhatIsForgotten) {
  start(4096, 4096);
  SegmentPtr segment = take();
  ASSERT_TRUE(segment->file().write(0, "what it held", {}));
  pool_->give_back(std::move(segment));
  // Whether it is a spare again by now or still waits for that.
  pool_->forget_content();
  for (const auto& [name, bytes] : disk_.image(kDirectory)) {
    EXPECT_FALSE(bytes.starts_with("what it held")) << name;
  }
  std::uint64_t last = take()->number();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(take()->number(), ++last);
}

TEST_P(SegmentPoolTest, ManyFilesGivenBackAreNotAllKept) {
  start(4096, 4096);
  std::vector<SegmentPtr> taken;
  for (int i = 0; i < 30; ++i) taken.push_back(take());
  for (SegmentPtr& segment : taken) pool_->give_back(std::move(segment));
  EXPECT_TRUE(comes_true([&] { return pool_->bytes() <= 8 * 4096; }));
  EXPECT_TRUE(comes_true([&] { return disk_.image(kDirectory).size() <= 8; }));
}

TEST_P(SegmentPoolTest, AFailureIsTold) {
  disk_.files().fail_sync(1, ".tmp");
  start();
  const auto taken = pool_->take(0);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Errc::io);
  EXPECT_THAT(taken.error().detail, testing::HasSubstr(kDirectory));
  EXPECT_FALSE(pool_->out_of_space());
  EXPECT_FALSE(pool_->take(0));
}

INSTANTIATE_TEST_SUITE_P(Modes, SegmentPoolTest, testing::Values(false, true),
                         [](const auto& mode) {
                           return mode.param ? "InBackground" : "InTheCallersThread";
                         });

// --- A full disk --------------------------------------------------------------------------------

// Two spares lie ready, and no further file is made until the test says so.
class SegmentPoolWithSpares : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 4096;

  SegmentPoolWithSpares() {
    disk_.load(kDirectory, {});
    pool_ = std::make_unique<SegmentPool>(SegmentPoolOptions{.files = files_,
                                                             .on_real_disk = false,
                                                             .directory = kDirectory,
                                                             .segment_bytes_min = kBytes,
                                                             .segment_bytes_max = kBytes,
                                                             .background = true},
                                          1, std::vector<SegmentPtr>());
    EXPECT_TRUE(comes_true([&] { return pool_->bytes() >= 2 * kBytes; }));
    files_->hold("unfinished");
  }
  ~SegmentPoolWithSpares() override { files_->let_go(); }

  MemoryDisk disk_;
  const std::shared_ptr<test::GatedFileSystem> files_ =
      std::make_shared<test::GatedFileSystem>(disk_.shared_files());
  std::unique_ptr<SegmentPool> pool_;
};

// A commit waits for it.
TEST_F(SegmentPoolWithSpares, GivesOneOutWhileAnotherIsMade) {
  ASSERT_EQ((*pool_->take(0))->number(), 1U);
  ASSERT_TRUE(comes_true([&] { return files_->somebody_waits(); }));
  auto second = std::async(std::launch::async, [&] { return pool_->take(0); });
  EXPECT_EQ(second.wait_for(30s), std::future_status::ready);
  files_->let_go();
  EXPECT_EQ((*second.get())->number(), 2U);
  EXPECT_EQ((*pool_->take(0))->number(), 3U);
}

// They hold nothing, and each would have to be made again.
TEST_F(SegmentPoolWithSpares, KeepsThoseThatWereNeverUsedWhenContentIsForgotten) {
  pool_->forget_content();
  EXPECT_EQ(pool_->bytes(), 2 * kBytes);
  EXPECT_EQ((*pool_->take(0))->number(), 1U);
}

TEST(FullDisk, LeavesRoomForCommitsAndIsNoticedBeforeTheyFail) {
  test::JournalDisk disk(test::JournalDisk::Options{
      .segment_bytes_min = 4096, .segment_bytes_max = 4096, .background = true});
  ASSERT_TRUE(disk.open());
  EXPECT_FALSE(disk.journal().out_of_space());
  // Two spares are ready; no third can be made.
  ASSERT_TRUE(comes_true([&] { return disk.journal().disk_bytes() == 3 * 4096; }));
  disk.files().fill_disk(".tmp");
  ASSERT_TRUE(disk.journal().rotate());
  ASSERT_TRUE(comes_true([&] { return disk.journal().out_of_space(); }));
  const std::string body(1000, 'b');
  for (int i = 0; i < 6; ++i) {  // what is left of this segment and the next one
    const auto appended = disk.append(body, 1, false);
    ASSERT_TRUE(appended) << appended.error().detail;
    ASSERT_TRUE(disk.journal().sync());
  }
  EXPECT_TRUE(disk.journal().out_of_space());
  // Each new attempt makes the file again, and deletes it when it fails.
  EXPECT_TRUE(comes_true([&] { return !disk.image().contains("unfinished.tmp"); }));

  // With room again a commit that waits for it goes on.
  std::thread making_room([&] {
    std::this_thread::sleep_for(50ms);
    disk.files().fill_disk(std::nullopt);
  });
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(disk.append(body, 1, false));
  making_room.join();
  EXPECT_TRUE(comes_true([&] { return !disk.journal().out_of_space(); }));
  ASSERT_TRUE(disk.journal().sync());
  disk.close();
  ASSERT_TRUE(disk.open());
  EXPECT_EQ(disk.bodies().size(), 16U);
}

// Nothing is lost with the mark of what is synced but the mark.
TEST(FullDisk, WithoutRoomForTheMarkGoesOn) {
  test::JournalDisk disk;
  ASSERT_TRUE(disk.open());
  disk.files().fill_disk("synced");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(disk.append("b", 1, false));
    const Status synced = disk.journal().sync();
    ASSERT_TRUE(synced) << synced.error().detail;
  }
  disk.files().fill_disk(std::nullopt);
  ASSERT_TRUE(disk.append("b", 1, true));
  disk.close();
  ASSERT_TRUE(disk.open());
  EXPECT_EQ(disk.bodies().size(), 4U);
}

// The process is restarted while it waits for room.
TEST(FullDisk, DoesNotKeepAJournalFromBeingOpenedLater) {
  test::JournalDisk disk;
  ASSERT_TRUE(disk.open());
  disk.files().fill_disk(".tmp");
  Status done = ok();
  std::size_t appended = 0;
  for (; done; ++appended) {
    const auto next = disk.append(std::string(1000, 'b'), 1, false);
    done = next ? disk.journal().sync() : Status(next.error());
  }
  disk.close();
  disk.files().fill_disk(std::nullopt);
  const Status opened = disk.open();
  ASSERT_TRUE(opened) << opened.error().detail;
  EXPECT_EQ(disk.bodies().size(), appended - 1);
}

}  // namespace
}  // namespace reprise::storage::journal
