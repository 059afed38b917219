// Commits that come faster than a checkpoint writes.
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "storage/durable/durable_storage.h"
#include "storage/keys.h"
#include "support/gated_file_system.h"
#include "support/memory_disk.h"

namespace reprise::storage {
namespace {

using namespace std::chrono_literals;

class Flood : public ::testing::Test {
 protected:
  static constexpr char kDirectory[] = "/disk/data";
  static constexpr std::size_t kOverlayBytes = 64U << 10;
  static constexpr std::size_t kJobBytes = 1024;

  Flood() {
    disk_.load(kDirectory, {});
    files_ = std::make_shared<test::GatedFileSystem>(disk_.shared_files());
    env_ = ::rocksdb::NewCompositeEnv(files_);
    auto opened = open_durable_storage({.directory = kDirectory,
                                        .overlay_bytes = kOverlayBytes,
                                        .journal_bytes = 100 * kOverlayBytes,
                                        .env = env_.get()});
    EXPECT_TRUE(opened) << opened.error().detail;
    storage_ = *std::move(opened);
    files_->hold("/checkpoint/");
  }
  ~Flood() override {
    files_->let_go();
    storage_.reset();
  }

  static std::string value_of(Seq seq) { return std::string(kJobBytes, 'x') + std::to_string(seq); }

  bool push_one() {
    Batch batch;
    ++last_;
    batch.put(Keyspace::jobs, job_key({1, last_}), value_of(last_));
    return storage_->commit(batch, Durability::synced).has_value();
  }
  // Once it is; false when it takes too long.
  template <class Condition>
  static bool comes_true(const Condition& condition) {
    for (int i = 0; i < 6000 && !condition(); ++i) std::this_thread::sleep_for(5ms);
    return condition();
  }
  // About so many overlays, in bytes of values.
  static std::size_t jobs_of(std::size_t overlays) { return overlays * kOverlayBytes / kJobBytes; }

  test::MemoryDisk disk_;
  std::shared_ptr<test::GatedFileSystem> files_;
  std::unique_ptr<::rocksdb::Env> env_;
  std::unique_ptr<Storage> storage_;
  Seq last_ = 0;
};

TEST_F(Flood, PassesBesideACheckpointAsLongAsItIsShort) {
  auto pushes = std::async(std::launch::async, [&] {
    for (std::size_t left = jobs_of(2); left > 0; --left) {
      if (!push_one()) return false;
    }
    return true;
  });
  ASSERT_EQ(pushes.wait_for(30s), std::future_status::ready);
  EXPECT_TRUE(pushes.get());
  EXPECT_TRUE(comes_true([&] { return files_->somebody_waits(); })) << "no checkpoint is done";
}

TEST_F(Flood, IsHeldBackInTheEndAndLosesNothing) {
  const std::size_t jobs = jobs_of(12);
  std::atomic<std::size_t> pushed{0};
  auto pushes = std::async(std::launch::async, [&] {
    for (; pushed < jobs; ++pushed) {
      if (!push_one()) return false;
    }
    return true;
  });
  EXPECT_TRUE(comes_true([&] { return pushed >= jobs_of(3); })) << "far beyond what is held up";
  EXPECT_EQ(pushes.wait_for(500ms), std::future_status::timeout) << "memory must stay bounded";
  EXPECT_LT(pushed, jobs_of(5));
  files_->let_go();
  ASSERT_EQ(pushes.wait_for(60s), std::future_status::ready);
  EXPECT_TRUE(pushes.get());
  for (Seq seq = 1; seq <= last_; ++seq) {
    const auto found = storage_->get(Keyspace::jobs, job_key({1, seq}));
    ASSERT_TRUE(found && *found) << seq;
    ASSERT_EQ(**found, value_of(seq));
  }
}

}  // namespace
}  // namespace reprise::storage
