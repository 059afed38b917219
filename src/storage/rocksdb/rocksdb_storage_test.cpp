#include "storage/rocksdb/rocksdb_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "storage/keys.h"
#include "storage/records.h"
#include "support/temp_directory.h"

namespace reprise::storage {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

// RocksDB in a directory on the real disk.
class RocksDbOnDisk : public testing::Test {
 protected:
  Result<std::unique_ptr<Storage>> try_open() { return open_rocksdb_storage({.directory = path_}); }
  std::unique_ptr<Storage> open() {
    auto opened = try_open();
    EXPECT_TRUE(opened) << opened.error().detail;
    return *std::move(opened);
  }
  void put(Storage& storage, Keyspace keyspace, std::string_view key, std::string_view value) {
    Batch batch;
    batch.put(keyspace, key, value);
    ASSERT_TRUE(storage.commit(batch, Durability::synced));
  }
  // Makes RocksDB write everything out to table files.
  void write_out(Storage& storage) { ASSERT_TRUE(storage.reclaim(Keyspace::dead, "a", "b")); }

  std::vector<std::filesystem::path> files(std::string_view extension) {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      if (entry.path().extension() == extension) found.push_back(entry.path());
    }
    return found;
  }
  bool any_file_holds(std::string_view text) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      if (!entry.is_regular_file()) continue;
      if (read_file(entry.path()).find(text) != std::string::npos) return true;
    }
    return false;
  }

  const test::TempDirectory parent_;
  const std::string path_ = parent_ / "some/data";
};

TEST_F(RocksDbOnDisk, MakesItsDirectoryForItsOwnerOnly) {
  open();
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
}

TEST_F(RocksDbOnDisk, ASecondOpenIsRefusedAndNamesTheOwner) {
  const auto first = open();
  const auto second = try_open();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::io);
  EXPECT_EQ(second.error().detail,
            "data directory " + path_ + " is in use by another reprise (pid " +
                std::to_string(::getpid()) + "); stop it or choose another --data directory");
}

TEST_F(RocksDbOnDisk, AnotherProcessIsRefusedToo) {
  const auto first = open();
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto second = try_open();
    const std::string said = second ? "opened" : second.error().detail;
    const bool written = ::write(pipe_ends[1], said.data(), said.size()) > 0;
    ::_exit(written ? 0 : 1);
  }
  ::close(pipe_ends[1]);
  std::string said(1000, '\0');
  said.resize(std::max<ssize_t>(0, ::read(pipe_ends[0], said.data(), said.size())));
  ::close(pipe_ends[0]);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_THAT(said,
              HasSubstr("in use by another reprise (pid " + std::to_string(::getpid()) + ")"));
}

TEST_F(RocksDbOnDisk, OpensAgainAfterClosing) {
  put(*open(), Keyspace::jobs, "a", "1");
  EXPECT_EQ(*open()->get(Keyspace::jobs, "a"), "1");
  EXPECT_EQ(open()->kind(), "rocksdb");
  EXPECT_GT(open()->disk_bytes(), 0U);
}

TEST_F(RocksDbOnDisk, ADirectoryOfOtherFilesIsRefusedAndLeftAlone) {
  std::filesystem::create_directories(path_);
  write_file(path_ + "/thesis.tex", "years of work");
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::io);
  EXPECT_THAT(opened.error().detail, AllOf(HasSubstr(path_), HasSubstr("thesis.tex")));
  std::filesystem::remove(path_ + "/thesis.tex");
  EXPECT_TRUE(std::filesystem::is_empty(path_));
}

TEST_F(RocksDbOnDisk, TheRootOfAFileSystemWillDo) {
  std::filesystem::create_directories(path_ + "/lost+found");
  open();
}

TEST_F(RocksDbOnDisk, ADirectoryThatCannotBeMadeIsAnErrorThatNamesIt) {
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
  write_file(path_, "a file");
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::io);
  EXPECT_THAT(opened.error().detail, HasSubstr(path_));
}

TEST_F(RocksDbOnDisk, ANewerFormatIsRefusedWithBothVersionsAndTheFix) {
  put(*open(), Keyspace::meta, kFormatKey, encode_format_version(kFormatVersion + 1));
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::io);
  EXPECT_THAT(opened.error().detail,
              AllOf(HasSubstr(path_), HasSubstr("format 2"), HasSubstr("up to format 1"),
                    HasSubstr("run the newer reprise")));
}

// A newer format that has brought a keyspace of its own.
TEST_F(RocksDbOnDisk, ANewerFormatWithMoreKeyspacesIsRefusedTheSameWay) {
  put(*open(), Keyspace::meta, kFormatKey, encode_format_version(kFormatVersion + 1));
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions());
  for (const Keyspace keyspace : kAllKeyspaces) {
    families.emplace_back(std::string(keyspace_name(keyspace)), rocksdb::ColumnFamilyOptions());
  }
  families.emplace_back("workers", rocksdb::ColumnFamilyOptions());
  rocksdb::DBOptions options;
  options.create_missing_column_families = true;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options, path_ + "/db", families, &handles, &db).ok());
  for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
  delete db;

  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().detail, AllOf(HasSubstr("format 2"), HasSubstr("up to format 1")));
}

TEST_F(RocksDbOnDisk, DataWithoutAFormatVersionIsDamage) {
  {
    const auto storage = open();
    Batch batch;
    batch.erase(Keyspace::meta, kFormatKey);
    batch.put(Keyspace::jobs, "a", "1");
    ASSERT_TRUE(storage->commit(batch, Durability::synced));
  }
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
}

TEST_F(RocksDbOnDisk, ADatabaseWithoutItsCurrentFileIsNotStartedAfresh) {
  {
    const auto storage = open();
    put(*storage, Keyspace::jobs, "a", "1");
    write_out(*storage);
  }
  std::filesystem::rename(path_ + "/db/CURRENT", parent_ / "CURRENT");
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
  EXPECT_THAT(opened.error().detail, HasSubstr("CURRENT"));
  std::filesystem::rename(parent_ / "CURRENT", path_ + "/db/CURRENT");
  EXPECT_EQ(*open()->get(Keyspace::jobs, "a"), "1");
}

TEST_F(RocksDbOnDisk, AFlippedBitInATableFileIsFoundByWhoeverReadsIt) {
  {
    const auto storage = open();
    for (char key = 'a'; key <= 'z'; ++key) {
      put(*storage, Keyspace::jobs, std::string(1, key), std::string(5000, key));
    }
    write_out(*storage);
  }
  const auto tables = files(".sst");
  const auto jobs = std::ranges::max_element(
      tables, {}, [](const auto& file) { return std::filesystem::file_size(file); });
  ASSERT_NE(jobs, tables.end());
  std::string content = read_file(*jobs);
  content[10] ^= 1;
  write_file(*jobs, content);
  const auto storage = open();
  const auto scanned = storage->scan(Keyspace::jobs, {}, {}, [](auto, auto) { return true; });
  ASSERT_FALSE(scanned);
  EXPECT_EQ(scanned.error().code, Errc::corrupt);
  EXPECT_THAT(scanned.error().detail, AllOf(HasSubstr(path_), HasSubstr(".sst")));
  const auto got = storage->get(Keyspace::jobs, "a");
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, Errc::corrupt);
}

TEST_F(RocksDbOnDisk, AMissingTableFileStopsTheStart) {
  {
    const auto storage = open();
    put(*storage, Keyspace::jobs, "a", "1");
    write_out(*storage);
  }
  for (const auto& file : files(".sst")) std::filesystem::remove(file);
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
}

class Reclaim : public RocksDbOnDisk {
 protected:
  static constexpr std::string_view kMarker = "MARKER-of-the-queue-that-goes";
  static constexpr std::string_view kOther = "OTHER-of-the-queue-that-stays";

  // 200 jobs in each of the queues 1 to 3. They do not compress, so that a marker stays readable.
  void fill(Storage& storage, Seq from) {
    Batch batch;
    for (Seq seq = from; seq < from + 200; ++seq) {
      for (const QueueNumber queue : {1U, 2U, 3U}) {
        const std::string_view text = queue == 2 ? kMarker : kOther;
        batch.put(Keyspace::jobs, job_key({.queue = queue, .seq = seq}),
                  std::string(text) + std::to_string(seq * 0x9E3779B97F4A7C15));
      }
    }
    ASSERT_TRUE(storage.commit(batch, Durability::synced));
  }
  void erase_queue_2(Storage& storage) {
    Batch batch;
    batch.erase_range(Keyspace::jobs, queue_begin(2), queue_end(2));
    ASSERT_TRUE(storage.commit(batch, Durability::synced));
    const auto status = storage.reclaim(Keyspace::jobs, queue_begin(2), queue_end(2));
    ASSERT_TRUE(status) << status.error().detail;
  }
  std::size_t count(Storage& storage, QueueNumber queue) {
    std::size_t jobs = 0;
    EXPECT_TRUE(storage.scan(Keyspace::jobs, queue_begin(queue), queue_end(queue), [&](auto, auto) {
      ++jobs;
      return true;
    }));
    return jobs;
  }
};

TEST_F(Reclaim, LeavesNothingOfTheRangeOnDisk) {
  const auto storage = open();
  fill(*storage, 0);  // to table files
  write_out(*storage);
  fill(*storage, 1000);  // to newer ones
  write_out(*storage);
  fill(*storage, 2000);  // in the journal only
  ASSERT_TRUE(any_file_holds(kMarker));
  erase_queue_2(*storage);
  EXPECT_FALSE(any_file_holds(kMarker));
  EXPECT_TRUE(any_file_holds(kOther));
  EXPECT_EQ(count(*storage, 1), 600U);
  EXPECT_EQ(count(*storage, 2), 0U);
  EXPECT_EQ(count(*storage, 3), 600U);
}

TEST_F(Reclaim, OfARangeErasedInAnEarlierRunWorksToo) {
  {
    const auto storage = open();
    fill(*storage, 0);
    write_out(*storage);
    Batch batch;
    batch.erase_range(Keyspace::jobs, queue_begin(2), queue_end(2));
    ASSERT_TRUE(storage->commit(batch, Durability::synced));
    write_out(*storage);
  }
  const auto storage = open();
  erase_queue_2(*storage);
  EXPECT_FALSE(any_file_holds(kMarker));
  EXPECT_EQ(count(*storage, 1), 200U);
}

TEST_F(Reclaim, IsSkippedOnceInterrupted) {
  const auto storage = open();
  fill(*storage, 0);
  storage->interrupt_reclaim();
  erase_queue_2(*storage);
  EXPECT_TRUE(any_file_holds(kMarker));
  EXPECT_EQ(count(*storage, 2), 0U);
}

// So many tombstones that the storage writes them out by itself.
TEST_F(RocksDbOnDisk, ErasingManyKeysOneByOneKeepsTheOthers) {
  const auto storage = open();
  constexpr Seq kJobs = 100000;
  for (const bool erase : {false, true}) {
    Batch batch;
    for (Seq seq = 0; seq < kJobs; ++seq) {
      const std::string key = job_key({.queue = 1, .seq = seq});
      if (!erase) batch.put(Keyspace::jobs, key, "v");
      if (erase && seq % 1000 != 0) batch.erase(Keyspace::jobs, key);
    }
    ASSERT_TRUE(storage->commit(batch, Durability::synced));
  }
  std::size_t left = 0;
  ASSERT_TRUE(storage->scan(Keyspace::jobs, {}, {}, [&](auto, auto) { return ++left > 0; }));
  EXPECT_EQ(left, kJobs / 1000);
}

}  // namespace
}  // namespace reprise::storage
