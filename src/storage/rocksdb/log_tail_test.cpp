#include "storage/rocksdb/log_tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <algorithm>

#include "storage/rocksdb/rocksdb_storage.h"

namespace reprise::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A database in memory whose files a test can read and change while it is closed.
class LogTail : public testing::Test {
 protected:
  std::unique_ptr<Storage> open() {
    auto opened = open_rocksdb_storage({.directory = directory_.path, .env = env_.get()});
    EXPECT_TRUE(opened) << opened.error().detail;
    return *std::move(opened);
  }
  // Opens, commits each value under a number that goes on counting, and closes.
  void commit(const std::vector<std::string>& values) {
    const auto storage = open();
    for (const std::string& value : values) {
      Batch batch;
      batch.put(Keyspace::jobs, std::string(1, static_cast<char>('a' + commits_++)), value);
      ASSERT_TRUE(storage->commit(batch, Durability::synced));
    }
  }
  // How many of the commits are there: the first so many, or the test fails.
  std::size_t commits_found() {
    std::string keys;
    EXPECT_TRUE(open()->scan(Keyspace::jobs, {}, {}, [&](auto key, auto) {
      keys += key;
      return true;
    }));
    EXPECT_EQ(keys, std::string("abcdefghijklmnopqrstuvwxyz").substr(0, keys.size()));
    return keys.size();
  }

  // Journal files that hold anything, oldest first.
  std::vector<std::string> journals() {
    std::vector<std::string> names;
    EXPECT_TRUE(env_->GetChildren(directory_.database, &names).ok());
    std::erase_if(names, [&](const auto& n) { return !n.ends_with(".log") || read(n).empty(); });
    std::ranges::sort(names);
    return names;
  }
  std::string read(const std::string& name) {
    std::string content;
    EXPECT_TRUE(
        rocksdb::ReadFileToString(env_.get(), directory_.database + "/" + name, &content).ok());
    return content;
  }
  void write(const std::string& name, const std::string& content) {
    const std::string path = directory_.database + "/" + name;
    EXPECT_TRUE(rocksdb::WriteStringToFile(env_.get(), content, path).ok());
  }
  Result<std::vector<TornTail>> mend() {
    return mend_log_tails(*env_->GetFileSystem(), directory_);
  }
  void expect_damage_in(const std::string& name) {
    const auto result = mend();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::corrupt);
    EXPECT_THAT(result.error().detail, HasSubstr(name));
    EXPECT_THAT(result.error().detail, HasSubstr(directory_.path));
  }

  const std::unique_ptr<rocksdb::Env> env_{rocksdb::NewMemEnv(rocksdb::Env::Default())};
  const DataDirectory directory_{.path = "/data", .database = "/data/db"};
  int commits_ = 0;
};

TEST_F(LogTail, WholeFilesAreLeftAlone) {
  commit({"one", std::string(100000, 'x'), "three"});
  const auto name = journals().back();
  const std::string before = read(name);
  const auto cut = mend();
  ASSERT_TRUE(cut) << cut.error().detail;
  EXPECT_THAT(*cut, IsEmpty());
  EXPECT_EQ(read(name), before);
  EXPECT_EQ(commits_found(), 3U);
}

// A process that is killed leaves the front of what it wrote, of any length.
TEST_F(LogTail, AFileThatEndsAnywhereIsCutToItsLastWholeRecord) {
  commit({"one", std::string(200, 'x'), std::string(40000, 'y'), "four"});
  const auto name = journals().back();
  const std::string whole = read(name);
  std::uint64_t kept_before = 0;
  for (std::size_t length = 0; length < whole.size(); length += length < 1000 ? 1 : 97) {
    write(name, whole.substr(0, length));
    const auto cut = mend();
    ASSERT_TRUE(cut) << length << ": " << cut.error().detail;
    const std::string kept = read(name);
    EXPECT_EQ(kept, whole.substr(0, kept.size()));
    EXPECT_GE(kept.size(), kept_before);
    kept_before = kept.size();
    if (!cut->empty()) {
      EXPECT_EQ(cut->front().file, directory_.database + "/" + name);
      EXPECT_EQ(cut->front().kept_bytes, kept.size());
    }
    ASSERT_TRUE(mend());  // what is left is whole
    EXPECT_EQ(read(name), kept);
  }
}

TEST_F(LogTail, RocksDbOpensWhatWasCut) {
  commit({"one", std::string(200, 'x'), std::string(40000, 'y'), "four"});
  const auto name = journals().back();
  const std::string whole = read(name);
  write(name, whole.substr(0, whole.size() - 1));
  EXPECT_EQ(commits_found(), 3U);
  write(name, whole.substr(0, whole.size() / 2));
  EXPECT_EQ(commits_found(), 2U);
}

TEST_F(LogTail, AnyFlippedBitIsDamage) {
  commit({"one", "two", "three"});
  const auto name = journals().back();
  const std::string whole = read(name);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    write(name, flipped);
    SCOPED_TRACE(i);
    expect_damage_in(name);
    EXPECT_EQ(read(name), flipped);  // nothing is touched
  }
}

TEST_F(LogTail, AFlippedBitInALongRecordIsDamage) {
  commit({"one", std::string(100000, 'x'), "three"});
  const auto name = journals().back();
  const std::string whole = read(name);
  for (std::size_t i = 0; i < whole.size(); i += 1009) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 4);
    write(name, flipped);
    SCOPED_TRACE(i);
    expect_damage_in(name);
  }
}

TEST_F(LogTail, OpeningADamagedJournalIsRefused) {
  commit({"one", "two"});
  const auto name = journals().back();
  std::string bytes = read(name);
  bytes[bytes.size() / 2] ^= 1;
  write(name, bytes);
  const auto opened = open_rocksdb_storage({.directory = directory_.path, .env = env_.get()});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::corrupt);
}

// The file had its length, but a page of the last record was still on its way to the disk.
TEST_F(LogTail, AMissingPageInTheLastRecordIsATornTail) {
  commit({"one", std::string(100000, 'x')});
  const auto name = journals().back();
  const std::string whole = read(name);
  for (std::size_t page = 4096; page < whole.size(); page += 4096) {
    std::string torn = whole;
    std::fill(torn.begin() + page, torn.begin() + std::min(page + 4096, torn.size()), '\0');
    write(name, torn);
    const auto cut = mend();
    ASSERT_TRUE(cut) << page << ": " << cut.error().detail;
    EXPECT_EQ(cut->size(), 1U);
  }
  EXPECT_EQ(commits_found(), 1U);
}

// Commits that were not synced reach the disk in any order, so whole ones may follow the hole.
TEST_F(LogTail, AMissingPageEndsTheJournalThoughWholeRecordsFollow) {
  commit({"one", std::string(20000, 'x'), "three", "four"});
  const auto name = journals().back();
  std::string bytes = read(name);
  std::fill_n(bytes.begin() + 8192, 4096, '\0');
  write(name, bytes);
  const auto cut = mend();
  ASSERT_TRUE(cut) << cut.error().detail;
  EXPECT_EQ(commits_found(), 1U);
}

TEST_F(LogTail, ZerosAfterTheLastRecordAreATornTail) {
  commit({"one", "two"});
  const auto name = journals().back();
  write(name, read(name) + std::string(10000, '\0'));
  EXPECT_EQ(commits_found(), 2U);
}

TEST_F(LogTail, ATornTailInAnOlderFileIsDamage) {
  commit({"one", "two"});
  commit({"three"});
  ASSERT_EQ(journals().size(), 2U);
  const auto older = journals().front();
  const std::string bytes = read(older);
  write(older, bytes.substr(0, bytes.size() - 3));
  expect_damage_in(older);
}

TEST_F(LogTail, AnEmptyNewerFileDoesNotMakeATornTailDamage) {
  commit({"one", "two"});
  open();  // begins a new journal file and writes nothing to it
  ASSERT_EQ(journals().size(), 1U);
  const auto name = journals().front();
  const std::string bytes = read(name);
  write(name, bytes.substr(0, bytes.size() - 3));
  EXPECT_EQ(commits_found(), 1U);
}

TEST_F(LogTail, TheManifestIsHeldToTheSameRule) {
  commit({"one", "two"});
  std::string current = read("CURRENT");
  current.pop_back();
  const std::string whole = read(current);
  write(current, whole + std::string("\x01\x02\x03", 3));
  EXPECT_EQ(commits_found(), 2U);

  current = read("CURRENT");
  current.pop_back();
  std::string flipped = read(current);
  flipped[20] ^= 1;
  write(current, flipped);
  expect_damage_in(current);
}

}  // namespace
}  // namespace reprise::storage
