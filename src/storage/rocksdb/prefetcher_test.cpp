#include "storage/rocksdb/prefetcher.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "storage/keys.h"
#include "storage/rocksdb/table_writer.h"
#include "support/temp_directory.h"

namespace reprise::storage {
namespace {

constexpr Seq kJobs = 4000;
constexpr std::size_t kJobBytes = 1000;

class PrefetcherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string tables = directory_.path() + "/tables";
    std::filesystem::create_directory(tables);
    auto opened = Database::open({.directory = directory_.path() + "/db"});
    ASSERT_TRUE(opened) << opened.error().detail;
    database_ = *std::move(opened);
    TableWriter writer(*database_, tables);
    for (Seq seq = 1; seq <= kJobs; ++seq) {
      ASSERT_TRUE(writer.put(database_->family(Keyspace::jobs), job_key({1, seq}),
                             std::to_string(seq) + std::string(kJobBytes, 'x')));
    }
    ASSERT_TRUE(writer.ingest());
  }
  std::uint64_t cached_bytes() const {
    std::uint64_t bytes = 0;
    EXPECT_TRUE((*database_)
                    ->GetIntProperty(database_->family(Keyspace::jobs), "rocksdb.block-cache-usage",
                                     &bytes));
    return bytes;
  }
  static void wait_for(const Prefetcher& prefetcher, std::uint64_t ranges) {
    for (int i = 0; i < 4000 && prefetcher.done() < ranges; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_EQ(prefetcher.done(), ranges);
  }

  const test::TempDirectory directory_;
  std::unique_ptr<Database> database_;
};

TEST_F(PrefetcherTest, WhatWasNamedIsInTheCache) {
  Prefetcher prefetcher(*database_);
  const std::uint64_t before = cached_bytes();
  prefetcher.add(Keyspace::jobs, job_key({1, 1000}), job_key({1, 2000}));
  ASSERT_NO_FATAL_FAILURE(wait_for(prefetcher, 1));
  const std::uint64_t added = cached_bytes() - before;
  EXPECT_GE(added, 1000 * kJobBytes);
  EXPECT_LE(added, 1500 * kJobBytes) << "more than what was named";
}

TEST_F(PrefetcherTest, ARangeOfMuchIsNotReadToItsEnd) {
  Prefetcher prefetcher(*database_);
  prefetcher.add(Keyspace::jobs, job_key({1, 1}), job_key({1, kJobs + 1}));
  ASSERT_NO_FATAL_FAILURE(wait_for(prefetcher, 1));
  EXPECT_LE(cached_bytes(), 3U << 20);
}

TEST_F(PrefetcherTest, WhatIsNotThereDoesNoHarm) {
  Prefetcher prefetcher(*database_);
  prefetcher.add(Keyspace::jobs, job_key({7, 1}), job_key({7, 100}));
  prefetcher.add(Keyspace::states, job_key({1, 1}), job_key({1, 100}));
  prefetcher.add(Keyspace::jobs, job_key({1, 100}), job_key({1, 1}));
  ASSERT_NO_FATAL_FAILURE(wait_for(prefetcher, 3));
}

TEST_F(PrefetcherTest, ItEndsWithWorkLeftToDo) {
  Prefetcher prefetcher(*database_);
  for (Seq seq = 1; seq < 100; ++seq) {
    prefetcher.add(Keyspace::jobs, job_key({1, seq}), job_key({1, kJobs}));
  }
}

}  // namespace
}  // namespace reprise::storage
