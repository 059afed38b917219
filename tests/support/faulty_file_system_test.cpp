#include "support/faulty_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/utilities/checkpoint.h>

#include <optional>
#include <set>

#include "support/temp_directory.h"

namespace reprise::test {
namespace {

using rocksdb::FileOptions;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

// A base that cannot link, as some real file systems.
class NoLinks final : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "NoLinks"; }
  IOStatus LinkFile(const std::string&, const std::string&, const IOOptions&,
                    rocksdb::IODebugContext*) override {
    return IOStatus::NotSupported("no links here");
  }
};

class FaultyDisk : public testing::Test {
 protected:
  FaultyDisk() { mkdir("/d"), sync_directory("/"); }

  static void ok(const IOStatus& status) { ASSERT_TRUE(status.ok()) << status.ToString(); }

  std::unique_ptr<rocksdb::FSWritableFile> create(const std::string& path) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    ok(disk_->NewWritableFile(path, FileOptions(), &file, nullptr));
    return file;
  }
  std::unique_ptr<rocksdb::FSRandomRWFile> open(const std::string& path) {
    std::unique_ptr<rocksdb::FSRandomRWFile> file;
    ok(disk_->NewRandomRWFile(path, FileOptions(), &file, nullptr));
    return file;
  }
  // A file that is wholly durable, and its name too.
  void make_durable(const std::string& path, const std::string& content) {
    const auto file = create(path);
    ok(file->Append(content, IOOptions(), nullptr));
    ok(file->Sync(IOOptions(), nullptr));
    sync_directory("/d");
  }
  void make(const std::string& path, const std::string& content) {
    const auto file = create(path);
    ok(file->Append(content, IOOptions(), nullptr));
    ok(file->Sync(IOOptions(), nullptr));
  }
  IOStatus write(const std::string& path, std::uint64_t offset, const std::string& data) {
    return open(path)->Write(offset, data, IOOptions(), nullptr);
  }
  IOStatus sync(const std::string& path) { return open(path)->Sync(IOOptions(), nullptr); }
  IOStatus try_sync_directory(const std::string& path) {
    std::unique_ptr<rocksdb::FSDirectory> directory;
    ok(disk_->NewDirectory(path, IOOptions(), &directory, nullptr));
    return directory->FsyncWithDirOptions(IOOptions(), nullptr, {});
  }
  void sync_directory(const std::string& path) { ok(try_sync_directory(path)); }
  void mkdir(const std::string& path) { ok(disk_->CreateDir(path, IOOptions(), nullptr)); }
  void rename(const std::string& from, const std::string& to) {
    ok(disk_->RenameFile(from, to, IOOptions(), nullptr));
  }
  void link(const std::string& from, const std::string& to) {
    ok(disk_->LinkFile(from, to, IOOptions(), nullptr));
  }
  void unlink(const std::string& path) { ok(disk_->DeleteFile(path, IOOptions(), nullptr)); }

  void cut_power(Loss loss = Loss::all, std::uint64_t seed = 0) {
    disk_->crash(loss, seed);
    disk_->restart();
  }
  // nullopt: no such file.
  std::optional<std::string> read(const std::string& path) {
    std::unique_ptr<rocksdb::FSSequentialFile> file;
    if (!disk_->NewSequentialFile(path, FileOptions(), &file, nullptr).ok()) return std::nullopt;
    std::string content(1U << 20, '\0');
    rocksdb::Slice got;
    ok(file->Read(content.size(), IOOptions(), &got, content.data(), nullptr));
    return got.ToString();
  }
  std::vector<std::string> list(const std::string& path) {
    std::vector<std::string> names;
    ok(disk_->GetChildren(path, IOOptions(), &names, nullptr));
    return names;
  }

  const std::unique_ptr<rocksdb::Env> base_{rocksdb::NewMemEnv(rocksdb::Env::Default())};
  std::shared_ptr<FaultyFileSystem> disk_ =
      std::make_shared<FaultyFileSystem>(base_->GetFileSystem());
};

TEST_F(FaultyDisk, LosesAppendsThatWereNotSynced) {
  make_durable("/d/f", "kept");
  std::unique_ptr<rocksdb::FSWritableFile> file;
  ok(disk_->ReopenWritableFile("/d/f", FileOptions(), &file, nullptr));
  ok(file->Append(" lost", IOOptions(), nullptr));
  EXPECT_EQ(read("/d/f"), "kept lost");
  cut_power();
  EXPECT_EQ(read("/d/f"), "kept");
}

TEST_F(FaultyDisk, PutsOldBytesBackWhereAFileWasWrittenInPlace) {
  make_durable("/d/f", "0123456789");
  ok(write("/d/f", 2, "ab"));
  ok(sync("/d/f"));
  ok(write("/d/f", 3, "xyz"));
  ok(write("/d/f", 8, "beyond the end"));
  EXPECT_EQ(read("/d/f"), "01axyz67beyond the end");
  cut_power();
  EXPECT_EQ(read("/d/f"), "01ab456789");
}

TEST_F(FaultyDisk, ReadsBackWhatWasWrittenInPlace) {
  make_durable("/d/f", "0123456789");
  const auto file = open("/d/f");
  ok(file->Write(12, "xy", IOOptions(), nullptr));
  std::string buffer(100, '?');
  rocksdb::Slice got;
  ok(file->Read(8, 100, IOOptions(), &got, buffer.data(), nullptr));
  EXPECT_EQ(got.ToString(), std::string("89\0\0xy", 6));
  ok(file->Fsync(IOOptions(), nullptr));
  cut_power();
  EXPECT_EQ(read("/d/f"), std::string("0123456789\0\0xy", 14));
}

TEST_F(FaultyDisk, TakesBackWritesInPlaceIntoAppendsThatWereNotSynced) {
  make_durable("/d/f", "");
  ok(create("/d/f")->Append("00000", IOOptions(), nullptr));
  ok(write("/d/f", 1, "xx"));
  EXPECT_EQ(read("/d/f"), "0xx00");
  disk_->crash();
  EXPECT_EQ(read("/d/f"), "");
}

TEST_F(FaultyDisk, SyncsAFileAsAWholeWhicheverHandleIsUsed) {
  const auto appended = create("/d/f");
  sync_directory("/d");
  ok(appended->Append("00000", IOOptions(), nullptr));
  ok(write("/d/f", 1, "xx"));
  ok(sync("/d/f"));
  ok(write("/d/f", 3, "yy"));
  ok(appended->Append("z", IOOptions(), nullptr));
  cut_power();
  EXPECT_EQ(read("/d/f"), "0xx00");
}

TEST_F(FaultyDisk, KeepsOrLosesSectorsOneByOne) {
  const std::string old(4096, 'o');
  make_durable("/d/f", old);
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    ok(write("/d/f", 0, std::string(512, 'x')));
    ok(write("/d/f", 1024, std::string(512, 'y')));
    cut_power(Loss::pages, seed);
    const std::string left = read("/d/f").value_or("");
    ASSERT_EQ(left.size(), old.size());
    seen.insert({left[0], left[1024]});
    ok(write("/d/f", 0, old));
    ok(sync("/d/f"));
  }
  EXPECT_THAT(seen, UnorderedElementsAre("oo", "xo", "oy", "xy"));
}

TEST_F(FaultyDisk, RepeatsWithASeed) {
  const std::string old(64 << 10, 'o');
  for (const Loss loss : {Loss::tail, Loss::pages}) {
    std::set<std::optional<std::string>> seen;
    for (int run = 0; run < 3; ++run) {
      make_durable("/d/f", old);
      ok(write("/d/f", 1000, std::string(50000, 'x')));
      cut_power(loss, 7);
      seen.insert(read("/d/f"));
    }
    EXPECT_EQ(seen.size(), 1U);
  }
}

TEST_F(FaultyDisk, TruncatesAtOnceAndGrowsWithASync) {
  make_durable("/d/f", "0123456789");
  ok(disk_->Truncate("/d/f", 4, IOOptions(), nullptr));
  ok(disk_->Truncate("/d/f", 6, IOOptions(), nullptr));
  EXPECT_EQ(read("/d/f"), std::string("0123\0\0", 6));
  cut_power();
  EXPECT_EQ(read("/d/f"), "0123");
  std::unique_ptr<rocksdb::FSWritableFile> file;
  ok(disk_->ReopenWritableFile("/d/f", FileOptions(), &file, nullptr));
  ok(file->Truncate(6, IOOptions(), nullptr));
  ok(file->Sync(IOOptions(), nullptr));
  cut_power();
  EXPECT_EQ(read("/d/f"), std::string("0123\0\0", 6));
}

TEST_F(FaultyDisk, LosesANameUntilItsDirectoryIsSynced) {
  make("/d/f", "synced");
  cut_power();
  EXPECT_EQ(read("/d/f"), std::nullopt);
  make("/d/f", "synced");
  sync_directory("/d");
  cut_power();
  EXPECT_EQ(read("/d/f"), "synced");
}

TEST_F(FaultyDisk, BringsBackADeletedFileUntilItsDirectoryIsSynced) {
  make_durable("/d/f", "old");
  ok(write("/d/f", 0, "new"));
  unlink("/d/f");
  cut_power();
  EXPECT_EQ(read("/d/f"), "old");
  unlink("/d/f");
  sync_directory("/d");
  cut_power();
  EXPECT_EQ(read("/d/f"), std::nullopt);
}

TEST_F(FaultyDisk, UndoesARenameOnBothSides) {
  make_durable("/d/a", "a");
  make_durable("/d/b", "b");
  rename("/d/a", "/d/b");
  EXPECT_EQ(read("/d/a"), std::nullopt);
  EXPECT_EQ(read("/d/b"), "a");
  cut_power();
  EXPECT_EQ(read("/d/a"), "a");
  EXPECT_EQ(read("/d/b"), "b");
  rename("/d/a", "/d/b");
  sync_directory("/d");
  cut_power();
  EXPECT_EQ(read("/d/a"), std::nullopt);
  EXPECT_EQ(read("/d/b"), "a");
}

TEST_F(FaultyDisk, UndoesARenameOfAFileThatWasNew) {
  make_durable("/d/CURRENT", "old");
  make("/d/tmp", "new");
  rename("/d/tmp", "/d/CURRENT");
  cut_power();
  EXPECT_THAT(list("/d"), ElementsAre("CURRENT"));
  EXPECT_EQ(read("/d/CURRENT"), "old");
}

TEST_F(FaultyDisk, UndoesAChainOfRenamesAndNewFiles) {
  make_durable("/d/1", "one");
  make_durable("/d/2", "two");
  rename("/d/1", "/d/3");
  rename("/d/2", "/d/1");
  rename("/d/3", "/d/2");
  make("/d/3", "three");
  unlink("/d/1");
  cut_power();
  EXPECT_THAT(list("/d"), UnorderedElementsAre("1", "2"));
  EXPECT_EQ(read("/d/1"), "one");
  EXPECT_EQ(read("/d/2"), "two");
}

TEST_F(FaultyDisk, KeepsNamesUpToSomeMoment) {
  std::set<std::vector<std::string>> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    make_durable("/d/1", "one");
    rename("/d/1", "/d/2");
    make("/d/3", "three");
    unlink("/d/2");
    cut_power(Loss::tail, seed);
    seen.insert(list("/d"));
    for (const std::string& name : list("/d")) unlink("/d/" + name);
    sync_directory("/d");
  }
  using Names = std::vector<std::string>;
  EXPECT_THAT(seen, UnorderedElementsAre(Names{"1"}, Names{"2"}, Names{"2", "3"}, Names{"3"}));
}

// A journal's segment that is used again: renamed, then written over.
TEST_F(FaultyDisk, KeepsTheStateOfAFileWhenItIsRenamed) {
  make_durable("/d/old", "0123456789");
  const auto file = open("/d/old");
  ok(file->Write(0, "aa", IOOptions(), nullptr));
  rename("/d/old", "/d/new");
  ok(file->Write(4, "bb", IOOptions(), nullptr));
  ok(write("/d/new", 8, "cc"));
  sync_directory("/d");
  EXPECT_EQ(read("/d/new"), "aa23bb67cc");
  cut_power();
  EXPECT_EQ(read("/d/old"), std::nullopt);
  EXPECT_EQ(read("/d/new"), "0123456789");
}

TEST_F(FaultyDisk, UndoesARenameAndKeepsWhatWasSyncedUnderTheNewName) {
  make_durable("/d/old", "0123456789");
  rename("/d/old", "/d/new");
  ok(write("/d/new", 0, "aa"));
  ok(sync("/d/new"));
  ok(write("/d/new", 4, "bb"));
  cut_power();
  EXPECT_EQ(read("/d/old"), "aa23456789");
  EXPECT_EQ(read("/d/new"), std::nullopt);
}

TEST_F(FaultyDisk, MakesARenameBetweenDirectoriesDurableWithEither) {
  mkdir("/d/a");
  mkdir("/d/b");
  sync_directory("/d");
  for (const std::string synced : {"/d/a", "/d/b"}) {
    make("/d/a/f", "moved");
    rename("/d/a/f", "/d/b/f");
    make("/d/a/f", "new");
    sync_directory(synced);
    cut_power();
    EXPECT_EQ(read("/d/b/f"), "moved");
    EXPECT_EQ(read("/d/a/f"), synced == "/d/a" ? std::optional("new") : std::nullopt);
  }
}

TEST_F(FaultyDisk, LosesANewDirectoryWithAllThatIsInIt) {
  mkdir("/d/new");
  mkdir("/d/new/sub");
  make("/d/new/sub/f", "content");
  sync_directory("/d/new/sub");
  sync_directory("/d/new");
  cut_power();
  EXPECT_THAT(list("/d"), ElementsAre());
  EXPECT_EQ(read("/d/new/sub/f"), std::nullopt);
}

// As a checkpoint does: filled under one name, then given its own.
TEST_F(FaultyDisk, UndoesTheRenameOfADirectory) {
  mkdir("/d/tmp");
  make("/d/tmp/f", "content");
  sync_directory("/d/tmp");
  sync_directory("/d");
  make("/d/tmp/unsynced", "");
  rename("/d/tmp", "/d/final");
  make("/d/final/later", "");
  EXPECT_EQ(read("/d/final/f"), "content");
  cut_power();
  EXPECT_EQ(read("/d/tmp/f"), "content");
  EXPECT_THAT(list("/d/tmp"), ElementsAre("f"));

  make("/d/tmp/synced", "");
  rename("/d/tmp", "/d/final");
  sync_directory("/d/final");
  sync_directory("/d");
  cut_power();
  EXPECT_THAT(list("/d"), ElementsAre("final"));
  EXPECT_THAT(list("/d/final"), ElementsAre("f", "synced"));
}

TEST_F(FaultyDisk, MovesTheStateOfAllFilesWithTheirDirectory) {
  mkdir("/d/tmp");
  make("/d/tmp/f", "0123");
  link("/d/tmp/f", "/d/tmp/g");
  make("/d/tmpx", "0123");
  sync_directory("/d/tmp");
  sync_directory("/d");
  ok(write("/d/tmp/f", 0, "x"));
  ok(write("/d/tmpx", 0, "x"));
  rename("/d/tmp", "/d/final");
  sync_directory("/d");
  cut_power();
  EXPECT_EQ(read("/d/final/f"), "0123");
  EXPECT_EQ(read("/d/final/g"), "0123");
  EXPECT_EQ(read("/d/tmpx"), "0123");
}

TEST_F(FaultyDisk, ForgetsADeletedDirectory) {
  mkdir("/d/tmp");
  make("/d/tmp/f", "content");
  rename("/d/tmp", "/d/final");
  unlink("/d/final/f");
  ok(disk_->DeleteDir("/d/final", IOOptions(), nullptr));
  cut_power();
  EXPECT_THAT(list("/d"), ElementsAre());
}

TEST_F(FaultyDisk, CanBeARealOne) {
  const TempDirectory directory;
  disk_ = std::make_shared<FaultyFileSystem>(rocksdb::FileSystem::Default());
  for (const std::string name : {"renamed", "replaced", "deleted", "linked", "written"}) {
    make(directory / name, name);
  }
  sync_directory(directory.path());
  rename(directory / "renamed", directory / "replaced");
  unlink(directory / "deleted");
  link(directory / "linked", directory / "link");
  ok(write(directory / "written", 2, "something longer"));
  mkdir(directory / "new");
  make(directory / "new/f", "");
  ok(write(directory / "linked", 100, "through a hole"));
  cut_power();
  for (const std::string name : {"renamed", "replaced", "deleted", "linked", "written"}) {
    EXPECT_EQ(read(directory / name), name);
  }
  EXPECT_EQ(read(directory / "link"), std::nullopt);
  EXPECT_EQ(read(directory / "new/f"), std::nullopt);
}

class FaultyDiskLinks : public FaultyDisk, public testing::WithParamInterface<bool> {
 protected:
  FaultyDiskLinks() {
    if (GetParam()) return;
    disk_ = std::make_shared<FaultyFileSystem>(std::make_shared<NoLinks>(base_->GetFileSystem()));
  }
};

INSTANTIATE_TEST_SUITE_P(Base, FaultyDiskLinks, testing::Bool(),
                         [](const auto& links) { return links.param ? "Links" : "Copies"; });

TEST_P(FaultyDiskLinks, AreLostUntilTheDirectoryIsSynced) {
  make_durable("/d/f", "content");
  link("/d/f", "/d/g");
  EXPECT_EQ(read("/d/g"), "content");
  cut_power();
  EXPECT_EQ(read("/d/f"), "content");
  EXPECT_EQ(read("/d/g"), std::nullopt);
}

// RocksDB takes in a file: link, sync the directory, delete the first name.
TEST_P(FaultyDiskLinks, OutliveTheFirstName) {
  make("/d/f", "content");
  link("/d/f", "/d/g");
  sync_directory("/d");
  unlink("/d/f");
  cut_power();
  EXPECT_EQ(read("/d/f"), "content");
  EXPECT_EQ(read("/d/g"), "content");
  unlink("/d/f");
  sync_directory("/d");
  cut_power();
  EXPECT_EQ(read("/d/f"), std::nullopt);
  EXPECT_EQ(read("/d/g"), "content");
}

TEST_P(FaultyDiskLinks, LoseTheBytesThatTheFileLoses) {
  for (const Loss loss : {Loss::all, Loss::tail, Loss::pages}) {
    make_durable("/d/f", std::string(10000, 'o'));
    ok(write("/d/f", 0, std::string(9000, 'x')));
    link("/d/f", "/d/g");
    sync_directory("/d");
    cut_power(loss, 3);
    if (loss == Loss::all) {
      EXPECT_EQ(read("/d/f"), std::string(10000, 'o'));
    }
    if (GetParam() || loss == Loss::all) {
      EXPECT_EQ(read("/d/g"), read("/d/f"));
    }
    unlink("/d/f");
    unlink("/d/g");
    sync_directory("/d");
  }
}

TEST_P(FaultyDiskLinks, ComeBackAsOneFileAfterDeletions) {
  make_durable("/d/f", "0123456789");
  link("/d/f", "/d/g");
  sync_directory("/d");
  unlink("/d/f");
  unlink("/d/g");
  cut_power();
  EXPECT_EQ(read("/d/f"), "0123456789");
  EXPECT_EQ(read("/d/g"), "0123456789");
  if (!GetParam()) return;
  ok(write("/d/f", 0, "ab"));
  EXPECT_EQ(read("/d/g"), "ab23456789");
}

TEST_P(FaultyDiskLinks, NeverReplaceAFile) {
  make_durable("/d/f", "f");
  make_durable("/d/g", "g");
  EXPECT_FALSE(disk_->LinkFile("/d/f", "/d/g", IOOptions(), nullptr).ok());
  EXPECT_FALSE(disk_->LinkFile("/d/none", "/d/h", IOOptions(), nullptr).ok());
  EXPECT_EQ(read("/d/g"), "g");
}

TEST_F(FaultyDisk, FailsTheWriteInPlaceThatItWasToldTo) {
  make_durable("/d/f.seg", "0123");
  make_durable("/d/f.other", "0123");
  disk_->fail_write(2, ".seg");
  ok(write("/d/f.seg", 0, "a"));
  ok(write("/d/f.other", 0, "a"));
  EXPECT_TRUE(write("/d/f.seg", 1, "b").IsNoSpace());
  ok(write("/d/f.seg", 2, "c"));
  EXPECT_EQ(read("/d/f.seg"), "a1c3");
}

TEST_F(FaultyDisk, FailsTheSyncInPlaceThatItWasToldTo) {
  make_durable("/d/f.seg", std::string(1024, '0'));
  disk_->fail_sync(1, ".seg");
  const auto syncs = disk_->syncs(".seg");
  ok(write("/d/f.seg", 0, "lost"));
  EXPECT_TRUE(sync("/d/f.seg").IsIOError());
  ok(write("/d/f.seg", 512, "kept"));
  ok(sync("/d/f.seg"));
  EXPECT_EQ(disk_->syncs(".seg"), syncs + 2);
  cut_power();
  std::string expected(1024, '0');
  expected.replace(512, 4, "kept");
  EXPECT_EQ(read("/d/f.seg"), expected);
}

TEST_F(FaultyDisk, FailsEveryChangeWhileThePowerIsOff) {
  make_durable("/d/f", "0123");
  const auto file = open("/d/f");
  disk_->crash();
  const auto operations = disk_->operations();
  std::unique_ptr<rocksdb::FSWritableFile> made;
  EXPECT_FALSE(file->Write(0, "a", IOOptions(), nullptr).ok());
  EXPECT_FALSE(file->Sync(IOOptions(), nullptr).ok());
  EXPECT_FALSE(disk_->NewWritableFile("/d/g", FileOptions(), &made, nullptr).ok());
  EXPECT_FALSE(disk_->RenameFile("/d/f", "/d/g", IOOptions(), nullptr).ok());
  EXPECT_FALSE(disk_->LinkFile("/d/f", "/d/g", IOOptions(), nullptr).ok());
  EXPECT_FALSE(disk_->DeleteFile("/d/f", IOOptions(), nullptr).ok());
  EXPECT_FALSE(disk_->Truncate("/d/f", 0, IOOptions(), nullptr).ok());
  EXPECT_FALSE(disk_->CreateDir("/d/e", IOOptions(), nullptr).ok());
  EXPECT_FALSE(disk_->DeleteDir("/d", IOOptions(), nullptr).ok());
  EXPECT_FALSE(try_sync_directory("/d").ok());
  EXPECT_EQ(disk_->operations(), operations);
  disk_->restart();
  EXPECT_FALSE(file->Write(0, "a", IOOptions(), nullptr).ok()) << "a handle from before";
  EXPECT_EQ(read("/d/f"), "0123");
}

// Replaces /d/f in the careful way, in six steps. False: the power went.
class CrashAtEveryStep : public FaultyDisk {
 protected:
  bool replace_file() {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    return disk_->NewWritableFile("/d/tmp", FileOptions(), &file, nullptr).ok() &&
           file->Append("new", IOOptions(), nullptr).ok() &&
           file->Sync(IOOptions(), nullptr).ok() &&
           disk_->RenameFile("/d/tmp", "/d/f", IOOptions(), nullptr).ok() &&
           try_sync_directory("/d").ok() &&
           disk_->DeleteFile("/d/garbage", IOOptions(), nullptr).ok();
  }
  void reset() {
    make_durable("/d/f", "old");
    make_durable("/d/garbage", "");
    if (read("/d/tmp")) unlink("/d/tmp");
    sync_directory("/d");
  }
};

TEST_F(CrashAtEveryStep, CountsTheSteps) {
  reset();
  const auto before = disk_->operations();
  ASSERT_TRUE(replace_file());
  EXPECT_EQ(disk_->operations() - before, 6U);
}

TEST_F(CrashAtEveryStep, FailsThatStepAndAllLaterOnes) {
  for (std::uint64_t step = 1; step <= 7; ++step) {
    SCOPED_TRACE(step);
    reset();
    disk_->crash_at(step);
    EXPECT_EQ(replace_file(), step > 6);
    EXPECT_EQ(disk_->CreateDir("/d/e", IOOptions(), nullptr).ok(), false);
    cut_power();
    EXPECT_EQ(read("/d/f"), step <= 5 ? "old" : "new");
    EXPECT_EQ(read("/d/tmp"), std::nullopt);
    EXPECT_EQ(read("/d/garbage"), "");
  }
}

TEST_F(CrashAtEveryStep, MayHaveMadeThatStepOrNot) {
  std::set<std::optional<std::string>> in_rename;
  std::set<std::optional<std::string>> in_append;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    reset();
    disk_->crash_at(4);
    EXPECT_FALSE(replace_file());
    cut_power(Loss::tail, seed);
    in_rename.insert(read("/d/f"));

    reset();
    disk_->crash_at(2);
    EXPECT_FALSE(replace_file());
    cut_power(Loss::tail, seed);
    in_append.insert(read("/d/tmp"));
  }
  EXPECT_THAT(in_rename, UnorderedElementsAre("old", "new"));
  EXPECT_THAT(in_append, UnorderedElementsAre(std::nullopt, "", "n", "ne", "new"));
}

TEST_F(CrashAtEveryStep, IsForgottenWithTheCrash) {
  reset();
  disk_->crash_at(100);
  cut_power();
  const auto before = disk_->operations();
  while (disk_->operations() < before + 100) ok(write("/d/f", 0, "x"));
  disk_->crash_at(1);
  disk_->crash_at(0);
  ok(write("/d/f", 0, "x"));
}

// RocksDB moves a table file in by a link. Whenever the power goes, all of it is there or nothing,
// and all of it once RocksDB said so.
class RocksDbOnFaultyDisk : public FaultyDisk {
 protected:
  void open(const std::string& path = "/d/db") {
    rocksdb::Options options;
    options.env = env_.get();
    options.create_if_missing = true;
    rocksdb::DB* db = nullptr;
    const auto status = rocksdb::DB::Open(options, path, &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
    sync_directory("/d");
  }
  rocksdb::Status ingest(int generation) {
    rocksdb::Options options;
    options.env = env_.get();
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
    const std::string path = "/d/" + std::to_string(generation) + ".sst";
    auto status = writer.Open(path);
    for (int i = 10; i < 20 && status.ok(); ++i) {
      status = writer.Put(std::to_string(i), std::to_string(generation));
    }
    if (status.ok()) status = writer.Finish();
    if (!status.ok()) return status;
    rocksdb::IngestExternalFileOptions how;
    how.move_files = true;
    how.failed_move_fall_back_to_copy = false;
    return db_->IngestExternalFile({path}, how);
  }
  std::string all_values() {
    std::string result;
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator({}));
    for (at->SeekToFirst(); at->Valid(); at->Next()) result += at->value().ToString();
    EXPECT_TRUE(at->status().ok()) << at->status().ToString();
    return result;
  }
  void die_and_open(Loss loss, std::uint64_t seed) {
    disk_->crash(loss, seed);
    db_.reset();
    disk_->restart();
    open();
  }

  const std::unique_ptr<rocksdb::Env> env_ = make_env(disk_);
  std::unique_ptr<rocksdb::DB> db_;
};

TEST_F(RocksDbOnFaultyDisk, KeepsAFileTakenInByALinkOnceItSaidSo) {
  ASSERT_NO_FATAL_FAILURE(open());
  ASSERT_TRUE(ingest(1).ok());
  ASSERT_NO_FATAL_FAILURE(die_and_open(Loss::all, 0));
  EXPECT_EQ(all_values(), "1111111111");
}

TEST_F(RocksDbOnFaultyDisk, HasAllOfAFileTakenInByALinkOrNothingAtEveryStep) {
  ASSERT_NO_FATAL_FAILURE(open());
  ASSERT_TRUE(ingest(1).ok());
  std::string value(10, '1');
  bool finished = false;
  for (std::uint64_t step = 1; !finished; ++step) {
    ASSERT_LT(step, 200U);
    SCOPED_TRACE(step);
    const int generation = 2 + static_cast<int>(step % 2);
    disk_->crash_at(step);
    finished = ingest(generation).ok();
    const auto loss = static_cast<Loss>(step % 3);
    ASSERT_NO_FATAL_FAILURE(die_and_open(loss, step));
    const std::string found = all_values();
    const std::string ingested(10, static_cast<char>('0' + generation));
    if (finished) {
      EXPECT_EQ(found, ingested);
    } else {
      EXPECT_TRUE(found == value || found == ingested) << found;
    }
    value = found;
  }
}

// RocksDB renames a checkpoint's directory and leaves the sync above it to the caller.
TEST_F(RocksDbOnFaultyDisk, KeepsACheckpointOnceTheDirectoryAboveItIsSynced) {
  for (const bool synced : {false, true}) {
    ASSERT_NO_FATAL_FAILURE(open());
    ASSERT_TRUE(ingest(1).ok());
    rocksdb::Checkpoint* raw = nullptr;
    ASSERT_TRUE(rocksdb::Checkpoint::Create(db_.get(), &raw).ok());
    const std::unique_ptr<rocksdb::Checkpoint> checkpoint(raw);
    ASSERT_TRUE(checkpoint->CreateCheckpoint("/d/copy").ok());
    if (synced) sync_directory("/d");
    disk_->crash();
    db_.reset();
    disk_->restart();
    EXPECT_EQ(read("/d/copy/CURRENT").has_value(), synced);
  }
  open("/d/copy");
  EXPECT_EQ(all_values(), "1111111111");
}

}  // namespace
}  // namespace reprise::test
