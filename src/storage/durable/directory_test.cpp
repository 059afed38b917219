// A data directory on the real disk: how it is made, who may open it, and which ones are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "storage/durable/durable_storage.h"
#include "storage/journal/format.h"
#include "storage/journal/segment.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "support/files.h"
#include "support/temp_directory.h"

namespace reprise::storage {
namespace {

using test::read_file;
using test::write_file;
using testing::AllOf;
using testing::AnyOf;
using testing::Eq;
using testing::HasSubstr;
namespace fs = std::filesystem;

class DirectoryOnDisk : public testing::Test {
 protected:
  Result<std::unique_ptr<Storage>> try_open() { return open_durable_storage({.directory = path_}); }
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
  // A database as another version of reprise might have left it.
  void make_database(std::uint32_t format, const std::vector<std::string>& keyspaces) {
    fs::create_directories(path_);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    families.emplace_back(rocksdb::kDefaultColumnFamilyName, options);
    for (const auto& name : keyspaces) families.emplace_back(name, options);
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(options, path_ + "/db", families, &handles, &db).ok());
    ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), handles[1], std::string(kFormatKey),
                        encode_format_version(format))
                    .ok());
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
    delete db;
  }
  std::vector<std::string> keyspaces() {
    std::vector<std::string> names;
    for (const Keyspace keyspace : kAllKeyspaces) names.emplace_back(keyspace_name(keyspace));
    return names;
  }

  const test::TempDirectory parent_;
  const std::string path_ = parent_ / "some/data";
};

TEST_F(DirectoryOnDisk, IsMadeForItsOwnerOnly) {
  open();
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
}

TEST_F(DirectoryOnDisk, ASecondOpenIsRefusedAndNamesTheOwner) {
  const auto first = open();
  const auto second = try_open();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::io);
  EXPECT_EQ(second.error().detail,
            "data directory " + path_ + " is in use by another reprise (pid " +
                std::to_string(::getpid()) + "); stop it or choose another --data directory");
}

TEST_F(DirectoryOnDisk, AnotherProcessIsRefusedToo) {
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

TEST_F(DirectoryOnDisk, OpensAgainAfterClosing) {
  put(*open(), Keyspace::jobs, "a", "1");
  EXPECT_EQ(*open()->get(Keyspace::jobs, "a"), "1");
  EXPECT_EQ(open()->kind(), "rocksdb");
  EXPECT_GT(open()->disk_bytes(), 0U);
  EXPECT_FALSE(open()->out_of_space());
}

TEST_F(DirectoryOnDisk, OfOtherFilesIsRefusedAndLeftAlone) {
  fs::create_directories(path_);
  write_file(path_ + "/thesis.tex", "years of work");
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::io);
  EXPECT_THAT(opened.error().detail, AllOf(HasSubstr(path_), HasSubstr("thesis.tex")));
  fs::remove(path_ + "/thesis.tex");
  EXPECT_TRUE(fs::is_empty(path_));
}

TEST_F(DirectoryOnDisk, MayBeTheRootOfAFileSystem) {
  fs::create_directories(path_ + "/lost+found");
  open();
}

TEST_F(DirectoryOnDisk, ThatCannotBeMadeIsAnErrorThatNamesIt) {
  fs::create_directories(fs::path(path_).parent_path());
  write_file(path_, "a file");
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::io);
  EXPECT_THAT(opened.error().detail, HasSubstr(path_));
}

TEST_F(DirectoryOnDisk, OfTheFormerFormatIsRefusedWithBothVersionsAndTheFix) {
  make_database(2, {"meta", "queues", "jobs", "states", "dead", "keys", "index"});
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::io);
  EXPECT_THAT(opened.error().detail,
              AllOf(HasSubstr(path_), HasSubstr("format 2"), HasSubstr("reads formats 3 to 5"),
                    HasSubstr("older reprise")));
}

TEST_F(DirectoryOnDisk, OfANewerFormatIsRefusedWithBothVersionsAndTheFix) {
  auto families = keyspaces();
  families.emplace_back("index");
  make_database(kFormatVersion + 1, families);
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::io);
  EXPECT_THAT(opened.error().detail,
              AllOf(HasSubstr(path_), HasSubstr("format 6"), HasSubstr("reads formats 3 to 5"),
                    HasSubstr("run the newer reprise")));
}

// A newer format that has brought a keyspace of its own.
TEST_F(DirectoryOnDisk, OfANewerFormatWithMoreKeyspacesIsRefusedTheSameWay) {
  auto families = keyspaces();
  families.emplace_back("index");
  families.emplace_back("workers");
  make_database(kFormatVersion + 1, families);
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().detail,
              AllOf(HasSubstr("format 6"), HasSubstr("reads formats 3 to 5")));
}

// The base may still be of our format when a newer reprise has only written to the journal.
TEST_F(DirectoryOnDisk, WithANewerJournalIsRefusedWithBothVersions) {
  put(*open(), Keyspace::jobs, "a", "1");
  const std::string segment = path_ + "/journal/" + journal::segment_file_name(1);
  std::string content = read_file(segment);
  auto header = *journal::decode_segment_header(content);
  header.format = kFormatVersion + 1;
  content.replace(0, journal::kSegmentHeaderBytes, journal::encode_segment_header(header));
  write_file(segment, content);
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::io);
  EXPECT_THAT(opened.error().detail, AllOf(HasSubstr(segment), HasSubstr("format 6"),
                                           HasSubstr("format 5"), HasSubstr("newer reprise")));
}

TEST_F(DirectoryOnDisk, WithASegmentOfAnotherDirectoryIsRefused) {
  put(*open(), Keyspace::jobs, "a", "1");
  const std::string other = parent_ / "other";
  {
    auto storage = open_durable_storage({.directory = other});
    ASSERT_TRUE(storage);
    put(**storage, Keyspace::jobs, "a", "2");
  }
  const std::string name = "/journal/" + journal::segment_file_name(1);
  fs::copy_file(other + name, path_ + name, fs::copy_options::overwrite_existing);
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
  EXPECT_THAT(opened.error().detail, AllOf(HasSubstr(path_ + name), HasSubstr("another data")));
}

// The records that say what a directory is are storage's own.
TEST_F(DirectoryOnDisk, NoBatchCanTakeTheFormatVersionAway) {
  {
    const auto storage = open();
    Batch batch;
    batch.erase(Keyspace::meta, kFormatKey);
    batch.erase_range(Keyspace::meta, "a", "z");
    batch.put(Keyspace::jobs, "a", "1");
    ASSERT_TRUE(storage->commit(batch, Durability::synced));
    ASSERT_TRUE(storage->reclaim(Keyspace::dead, "a", "b"));
  }
  EXPECT_EQ(*open()->get(Keyspace::jobs, "a"), "1");
}

TEST_F(DirectoryOnDisk, WithoutItsCurrentFileIsNotStartedAfresh) {
  {
    const auto storage = open();
    put(*storage, Keyspace::jobs, "a", "1");
    ASSERT_TRUE(storage->reclaim(Keyspace::dead, "a", "b"));
  }
  fs::rename(path_ + "/db/CURRENT", parent_ / "CURRENT");
  const auto opened = try_open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
  EXPECT_THAT(opened.error().detail, HasSubstr("CURRENT"));
  fs::rename(parent_ / "CURRENT", path_ + "/db/CURRENT");
  EXPECT_EQ(*open()->get(Keyspace::jobs, "a"), "1");
}

TEST_F(DirectoryOnDisk, AFlippedBitInATableFileIsNamedAtTheStart) {
  {
    const auto storage = open();
    for (char key = 'a'; key <= 'z'; ++key) {
      put(*storage, Keyspace::jobs, std::string(1, key), std::string(5000, key));
    }
    ASSERT_TRUE(storage->reclaim(Keyspace::dead, "a", "b"));
  }
  for (const fs::path& file : test::files_below(path_)) {
    if (file.extension() != ".sst") continue;
    const std::string whole = read_file(file);
    std::string flipped = whole;
    flipped[10] ^= 1;
    write_file(file, flipped);
    const auto opened = try_open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Errc::corrupt);
    EXPECT_THAT(opened.error().detail, HasSubstr(path_));
    write_file(file, whole);
  }
  EXPECT_EQ(*open()->get(Keyspace::jobs, "z"), std::string(5000, 'z'));
}

// What is left of an interrupted first start, whatever it is, does not stand in the way.
TEST_F(DirectoryOnDisk, ThatWasNeverFinishedIsMadeAgain) {
  open();
  fs::remove_all(path_ + "/db");
  open();
  fs::remove_all(path_ + "/journal");
  fs::remove_all(path_ + "/db");
  put(*open(), Keyspace::jobs, "a", "1");
  EXPECT_EQ(*open()->get(Keyspace::jobs, "a"), "1");
}

TEST_F(DirectoryOnDisk, IsRidOfWhatAnInterruptedCheckpointLeft) {
  put(*open(), Keyspace::jobs, "a", "1");
  write_file(path_ + "/checkpoint/0.sst", "half a table");
  write_file(path_ + "/journal/unfinished.tmp", "half a segment");
  EXPECT_EQ(*open()->get(Keyspace::jobs, "a"), "1");
  EXPECT_TRUE(fs::is_empty(path_ + "/checkpoint"));
  EXPECT_FALSE(fs::exists(path_ + "/journal/unfinished.tmp"));
}

// So many tombstones that RocksDB compacts them by itself.
TEST_F(DirectoryOnDisk, ErasingManyKeysOneByOneKeepsTheOthers) {
  const auto storage = open();
  constexpr Seq kJobs = 100'000;
  for (const bool erase : {false, true}) {
    Batch batch;
    for (Seq seq = 1; seq <= kJobs; ++seq) {
      const std::string key = job_key({.queue = 1, .seq = seq});
      if (!erase) batch.put(Keyspace::jobs, key, "v");
      if (erase && seq % 1000 != 0) batch.erase(Keyspace::jobs, key);
    }
    ASSERT_TRUE(storage->commit(batch, Durability::synced));
    ASSERT_TRUE(storage->reclaim(Keyspace::dead, "a", "b"));
  }
  std::size_t left = 0;
  ASSERT_TRUE(storage->scan(Keyspace::jobs, {}, {}, [&](auto, auto) { return ++left > 0; }));
  EXPECT_EQ(left, kJobs / 1000);
}

}  // namespace
}  // namespace reprise::storage
