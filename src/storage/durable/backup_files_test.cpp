// What a backup holds, and what it leaves behind when it cannot be written. That a server starts on
// one, under load, is tests/e2e/test_backup.py's.
#include "storage/durable/backup.h"

#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <filesystem>
#include <map>
#include <string>

#include "storage/durable/durable_storage.h"
#include "storage/keys.h"
#include "support/temp_directory.h"

namespace reprise::storage {
namespace {

namespace fs = std::filesystem;

// A directory on another file system than the data: nothing can be linked.
class NoLinks final : public ::rocksdb::FileSystemWrapper {
 public:
  NoLinks() : FileSystemWrapper(::rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "NoLinks"; }
  ::rocksdb::IOStatus LinkFile(const std::string&, const std::string&, const ::rocksdb::IOOptions&,
                               ::rocksdb::IODebugContext*) override {
    return ::rocksdb::IOStatus::NotSupported("another file system");
  }
};

using Content = std::map<std::pair<Keyspace, std::string>, std::string>;

Content content_of(const Storage& storage) {
  Content content;
  for (const Keyspace keyspace : kAllKeyspaces) {
    const auto add = [&](std::string_view key, std::string_view value) {
      if (key != kCheckpointKey) content.emplace(std::pair(keyspace, key), value);
      return true;
    };
    EXPECT_TRUE(storage.scan(keyspace, {}, {}, add));
  }
  return content;
}

class BackupTest : public ::testing::Test {
 protected:
  std::unique_ptr<Storage> open(const std::string& path, ::rocksdb::Env* env = nullptr) {
    auto opened = open_durable_storage({.directory = path, .overlay_bytes = 4096, .env = env});
    EXPECT_TRUE(opened) << opened.error().detail;
    return *std::move(opened);
  }
  static void fill(Storage& storage, Seq from, Seq to) {
    for (Seq seq = from; seq < to; ++seq) {
      Batch batch;
      batch.put(Keyspace::jobs, job_key({1, seq}), std::string(100, 'x') + std::to_string(seq));
      if (seq % 3 == 0) batch.erase(Keyspace::jobs, job_key({1, seq - 1}));
      ASSERT_TRUE(storage.commit(batch, Durability::buffered));
    }
  }

  const test::TempDirectory directory;
};

TEST_F(BackupTest, HoldsEverythingCommittedBeforeAndNothingAfter) {
  const auto storage = open(directory / "data");
  fill(*storage, 1, 200);
  const Content before = content_of(*storage);
  const auto bytes = storage->backup(directory / "copy");
  ASSERT_TRUE(bytes) << bytes.error().detail;
  std::uint64_t found = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory / "copy")) {
    if (entry.is_regular_file()) found += entry.file_size();
  }
  EXPECT_EQ(*bytes, found);
  fill(*storage, 200, 300);
  EXPECT_EQ(content_of(*open(directory / "copy")), before);
}

TEST_F(BackupTest, TableFilesAreCopiedWhereTheyCannotBeLinked) {
  const auto env = ::rocksdb::NewCompositeEnv(std::make_shared<NoLinks>());
  const auto storage = open(directory / "data", env.get());
  fill(*storage, 1, 200);
  ASSERT_TRUE(storage->backup(directory / "copy"));
  EXPECT_EQ(content_of(*open(directory / "copy")), content_of(*storage));
  for (const auto& entry : fs::directory_iterator(directory / "copy/db")) {
    EXPECT_EQ(entry.hard_link_count(), 1U);
  }
}

TEST_F(BackupTest, TheCopyAndTheOriginalGoTheirOwnWays) {
  const auto storage = open(directory / "data");
  fill(*storage, 1, 100);
  ASSERT_TRUE(storage->backup(directory / "copy"));
  const auto copy = open(directory / "copy");
  fill(*storage, 100, 200);
  fill(*copy, 500, 600);
  EXPECT_FALSE(*copy->get(Keyspace::jobs, job_key({1, 150})));
  EXPECT_FALSE(*storage->get(Keyspace::jobs, job_key({1, 550})));
  EXPECT_TRUE(*copy->get(Keyspace::jobs, job_key({1, 599})));
}

TEST_F(BackupTest, AnInterruptedOneLeavesNothing) {
  const auto storage = open(directory / "data");
  fill(*storage, 1, 100);
  fs::create_directory(directory / "there");
  storage->interrupt_maintenance();
  for (const char* target : {"there", "new"}) {
    const auto bytes = storage->backup(directory / target);
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().code, Errc::shutting_down);
  }
  EXPECT_TRUE(fs::is_empty(directory / "there"));
  EXPECT_FALSE(fs::exists(directory / "new"));
  fill(*storage, 100, 110);
}

TEST_F(BackupTest, RefusesDirectoriesThatAreInUse) {
  const auto storage = open(directory / "data");
  EXPECT_EQ(storage->backup(directory / "data/copy").error().code, Errc::invalid_field);
  EXPECT_EQ(storage->backup(directory.path()).error().code, Errc::directory_not_empty);
  EXPECT_TRUE(storage->backup(directory / "copy"));
  EXPECT_EQ(storage->backup(directory / "copy").error().code, Errc::directory_not_empty);
}

}  // namespace
}  // namespace reprise::storage
