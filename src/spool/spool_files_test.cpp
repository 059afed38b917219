#include "spool/spool_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/crashing.h"
#include "support/files.h"
#include "support/spool_crash.h"
#include "support/temp_directory.h"

namespace reprise::spool {
namespace {

namespace fs = std::filesystem;
using test::ChildEnd;
using test::names_in;
using test::read_file;
using test::write_file;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

unsigned mode_of(const fs::path& path) {
  struct stat info {};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

std::vector<NewFile> group(int count) {
  std::vector<NewFile> files;
  for (int i = 0; i < count; ++i) {
    files.push_back({std::to_string(1000 + i) + ".json", "content " + std::to_string(i)});
  }
  return files;
}

// Sets a variable of the environment, and sets it back.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  ~Variable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

class SpoolFilesTest : public testing::Test {
 protected:
  SpoolFilesTest() : files_(std::move(*SpoolFiles::create(spool()))) {}

  fs::path spool() const { return directory_ / "spool"; }
  fs::path queue() const { return spool() / "queue"; }
  fs::path dead() const { return spool() / "dead-letter"; }
  std::vector<std::string> added(const std::vector<NewFile>& files) {
    const auto taken = files_.add(*files_.write_shared(), Folder::queue, files);
    EXPECT_TRUE(taken) << taken.error().detail;
    return taken ? *taken : std::vector<std::string>{"error"};
  }
  Listing listed(Folder folder, Sizes sizes = Sizes::no) { return *files_.list(folder, sizes); }
  Result<bool> kept(const std::string& name, const std::string& raw) {
    return files_.keep_raw(*files_.write_shared(), name, raw);
  }

  test::TempDirectory directory_;
  SpoolFiles files_;
};

TEST(SpoolDirectory, IsTheFirstThatIsGiven) {
  const Variable own("REPRISE_SPOOL", "/own");
  const Variable data("XDG_DATA_HOME", "/data");
  const Variable home("HOME", "/home/me");
  EXPECT_EQ(*SpoolFiles::default_directory("/flag"), "/flag");
  EXPECT_EQ(*SpoolFiles::default_directory({}), "/own");
  EXPECT_EQ(SpoolFiles::default_directory("").error().code, Errc::invalid_field);
  const Variable no_own("REPRISE_SPOOL", "");
  EXPECT_EQ(*SpoolFiles::default_directory({}), "/data/reprise/spool");
  const Variable relative("XDG_DATA_HOME", "data");
  EXPECT_EQ(*SpoolFiles::default_directory({}), "/home/me/.local/share/reprise/spool");
  const Variable no_home("HOME", nullptr);
  EXPECT_EQ(SpoolFiles::default_directory({}).error().code, Errc::invalid_field);
}

TEST(SpoolDirectory, OpeningMakesNothing) {
  const test::TempDirectory directory;
  EXPECT_FALSE(*SpoolFiles::open(directory / "none"));
  EXPECT_FALSE(*SpoolFiles::open(directory.path()));
  EXPECT_THAT(names_in(directory.path()), IsEmpty());
}

TEST(SpoolDirectory, AFolderThatIsLostIsMadeAnew) {
  const test::TempDirectory directory;
  ASSERT_TRUE(SpoolFiles::create(directory.path()));
  fs::remove(directory / "dead-letter");
  ASSERT_TRUE(*SpoolFiles::open(directory.path()));
  EXPECT_THAT(names_in(directory.path()), ElementsAre("dead-letter", "queue"));
}

TEST(SpoolDirectory, IsMadeWithItsParentsForItsOwnerAlone) {
  const test::TempDirectory directory;
  for (const mode_t mask : {0, 022, 0777}) {
    const fs::path top = directory / std::to_string(mask);
    const mode_t before = ::umask(mask);
    const auto files = SpoolFiles::create(top / "a" / "spool");
    ::umask(before);
    ASSERT_TRUE(files) << files.error().detail;
    for (const char* made : {"", "a", "a/spool", "a/spool/queue", "a/spool/dead-letter"}) {
      EXPECT_EQ(mode_of(top / made), 0700U) << made;
    }
  }
}

TEST(SpoolDirectory, WhatIsNoDirectoryIsToldByName) {
  const test::TempDirectory directory;
  write_file(directory / "file", "");
  EXPECT_THAT(SpoolFiles::create(directory / "file").error().detail, HasSubstr("/file"));
  EXPECT_THAT(SpoolFiles::create(directory / "file/spool").error().detail, HasSubstr("/file"));
  EXPECT_THAT(SpoolFiles::open(directory / "file").error().detail, HasSubstr("/file"));
  fs::create_directories(directory / "elsewhere");
  fs::create_directories(directory / "spool");
  fs::create_symlink(directory / "elsewhere", directory / "spool/queue");
  EXPECT_THAT(SpoolFiles::create(directory / "spool").error().detail, HasSubstr("/spool/queue"));
  EXPECT_THAT(names_in(directory / "elsewhere"), IsEmpty());
}

TEST_F(SpoolFilesTest, FilesAreForTheirOwnerAloneWhateverTheUmask) {
  for (const mode_t mask : {0, 022, 0777}) {
    const mode_t before = ::umask(mask);
    const std::string name = std::to_string(mask) + ".json";
    EXPECT_THAT(added({{name, "x"}}), IsEmpty());
    EXPECT_TRUE(*files_.replace(*files_.write_shared(), Folder::queue, {name, "y"}));
    ::umask(before);
    EXPECT_EQ(mode_of(queue() / name), 0600U);
  }
}

TEST_F(SpoolFilesTest, AGroupIsStoredWhole) {
  for (const int count : {1, 8, 9, 40}) {
    const auto files = group(count);
    fs::remove_all(queue());
    files_ = std::move(*SpoolFiles::create(spool()));
    EXPECT_THAT(added(files), IsEmpty());
    ASSERT_EQ(names_in(queue()).size(), files.size());
    for (const NewFile& file : files) EXPECT_EQ(read_file(queue() / file.name), file.content);
  }
}

TEST_F(SpoolFilesTest, ANameThatIsTakenIsLeftAsItIs) {
  write_file(queue() / "1001.json", "before");
  EXPECT_THAT(added(group(3)), ElementsAre("1001.json"));
  EXPECT_EQ(read_file(queue() / "1001.json"), "before");
  EXPECT_THAT(names_in(queue()), ElementsAre("1000.json", "1001.json", "1002.json"));
}

TEST_F(SpoolFilesTest, OfOneNameTwiceInAGroupTheFirstIsStored) {
  EXPECT_THAT(added({{"a.json", "1"}, {"a.json", "2"}}), ElementsAre("a.json"));
  EXPECT_EQ(read_file(queue() / "a.json"), "1");
  EXPECT_THAT(names_in(queue()), ElementsAre("a.json"));
}

TEST_F(SpoolFilesTest, ATemporaryThatACrashHasLeftIsNotInTheWay) {
  write_file(queue() / ".a.json.tmp", "half");
  EXPECT_THAT(added({{"a.json", "whole"}}), IsEmpty());
  EXPECT_EQ(read_file(queue() / "a.json"), "whole");
  EXPECT_EQ(read_file(queue() / ".a.json.tmp"), "half");
}

TEST_F(SpoolFilesTest, TheLongestNameCanBeStored) {
  const std::string name = std::string(250, 'n') + ".json";
  EXPECT_THAT(added({{name, "x"}}), IsEmpty());
  EXPECT_TRUE(*files_.replace(*files_.write_shared(), Folder::queue, {name, "y"}));
  EXPECT_EQ(read_file(queue() / name), "y");
}

TEST_F(SpoolFilesTest, NothingOfAGroupStaysWhenOneCannotBeWritten) {
  for (const int count : {3, 20}) {
    auto files = group(count);
    files[1].content = std::string(5000, 'x');
    test::run_in_child([&] {
      test::limit_file_size(4096);
      const auto taken = files_.add(*files_.write_shared(), Folder::queue, files);
      write_file(directory_ / "error", taken ? "stored" : taken.error().detail);
      return true;
    });
    EXPECT_EQ(read_file(directory_ / "error"),
              "cannot write " + (queue() / "1001.json").string() + ": File too large");
    EXPECT_THAT(names_in(queue()), IsEmpty());
  }
}

TEST_F(SpoolFilesTest, WhatWasNamedAlreadyIsTakenBackWhenTheRestFails) {
  const auto taken =
      files_.add(*files_.write_shared(), Folder::queue, {{"a.json", "1"}, {"missing/b.json", "2"}});
  EXPECT_FALSE(taken);
  EXPECT_THAT(names_in(queue()), IsEmpty());
  // Here the temporaries can be made; the second one vanishes before it gets its name.
  int written = 0;
  files_.set_step_observer([&](std::string_view step) {
    if (step == "data synced") fs::remove(queue() / ".1001.json.tmp");
    written += step == "temporary written" ? 1 : 0;
  });
  const auto again = files_.add(*files_.write_shared(), Folder::queue, group(3));
  ASSERT_FALSE(again);
  EXPECT_EQ(written, 3);
  EXPECT_THAT(again.error().detail, HasSubstr("1001.json: No such file or directory"));
  EXPECT_THAT(names_in(queue()), IsEmpty());
}

TEST_F(SpoolFilesTest, ADirectoryThatIsRenamedMeanwhileDoesNoHarm) {
  fs::rename(spool(), directory_ / "elsewhere");
  EXPECT_THAT(added({{"a.json", "1"}}), IsEmpty());
  EXPECT_EQ(read_file(directory_ / "elsewhere/queue/a.json"), "1");
  EXPECT_EQ(listed(Folder::queue).files.size(), 1U);
}

TEST_F(SpoolFilesTest, ReplacingGivesANewContentToWhatIsThere) {
  write_file(queue() / "a.json", "old");
  const auto writing = *files_.write_shared();
  EXPECT_TRUE(*files_.replace(writing, Folder::queue, {"a.json", "new"}));
  EXPECT_EQ(read_file(queue() / "a.json"), "new");
  EXPECT_FALSE(*files_.replace(writing, Folder::queue, {"gone.json", "new"}));
  EXPECT_THAT(names_in(queue()), ElementsAre("a.json"));
}

TEST_F(SpoolFilesTest, ManyAreReplacedAtOnce) {
  ASSERT_THAT(added(group(20)), IsEmpty());
  auto files = group(21);
  for (NewFile& file : files) file.content += " again";
  EXPECT_THAT(*files_.replace_all(*files_.write_shared(), Folder::queue, files),
              ElementsAre("1020.json"));
  EXPECT_EQ(names_in(queue()).size(), 20U);
  EXPECT_EQ(read_file(queue() / "1019.json"), "content 19 again");
}

TEST_F(SpoolFilesTest, AReplacementThatFailsLeavesTheOldContent) {
  write_file(queue() / "a.json", "old");
  const auto end = test::run_in_child([&] {
    test::limit_file_size(4096);
    return files_.replace(*files_.write_shared(), Folder::queue, {"a.json", std::string(5000, 'x')})
        .has_value();
  });
  EXPECT_EQ(end, ChildEnd::failed);
  EXPECT_EQ(read_file(queue() / "a.json"), "old");
  EXPECT_THAT(names_in(queue()), ElementsAre("a.json"));
}

TEST_F(SpoolFilesTest, PuttingOverwrites) {
  const auto alone = *files_.write_alone();
  ASSERT_TRUE(files_.put(alone, Folder::root, {"quota.json", "1"}));
  ASSERT_TRUE(files_.put(alone, Folder::root, {"quota.json", "2"}));
  EXPECT_EQ(files_.read(Folder::root, "quota.json", 100).bytes, "2");
  EXPECT_THAT(names_in(spool()), ElementsAre("dead-letter", "queue", "quota.json"));
}

TEST_F(SpoolFilesTest, AListHasEventsByNameAndTellsWhatElseIsThere) {
  for (const char* name : {"b.json", "a.json", "c.json", "x.raw", "README", ".a.json.tmp",
                           "z.json.tmp", ".hidden", ".json"}) {
    write_file(queue() / name, name);
  }
  fs::create_symlink(queue() / "a.json", queue() / "link.json");
  fs::create_symlink(queue() / "a.json", queue() / ".link.tmp");
  fs::create_directory(queue() / "dir.json");
  ASSERT_EQ(::mkfifo((queue() / "fifo.json").c_str(), 0600), 0);
  const Listing listing = listed(Folder::queue, Sizes::yes);
  std::vector<std::string> names;
  for (const FileEntry& file : listing.files) {
    names.push_back(file.name);
    EXPECT_EQ(file.bytes, 6U);
  }
  EXPECT_THAT(names, ElementsAre("a.json", "b.json", "c.json"));
  EXPECT_THAT(listing.ignored, ElementsAre("queue/README: its name does not end with .json",
                                           "queue/dir.json: a directory", "queue/fifo.json: a FIFO",
                                           "queue/link.json: a symbolic link",
                                           "queue/x.raw: its name does not end with .json"));
  EXPECT_THAT(listing.raw_files, IsEmpty());
  EXPECT_EQ(listing.temporaries, 2U);
}

TEST_F(SpoolFilesTest, RawFilesAreListedAmongTheDead) {
  write_file(dead() / "b.raw", "");
  write_file(dead() / "a.raw", "");
  write_file(dead() / "a.json", "{}");
  const Listing listing = listed(Folder::dead_letter);
  EXPECT_THAT(listing.raw_files, ElementsAre("a.raw", "b.raw"));
  EXPECT_EQ(listing.files.size(), 1U);
  EXPECT_THAT(listing.ignored, IsEmpty());
}

TEST_F(SpoolFilesTest, AFileIsReadWhole) {
  const std::string bytes = std::string(100'000, 'x') + '\0' + "\xFF";
  write_file(queue() / "a.json", bytes);
  const FileContent content = files_.read(Folder::queue, "a.json", bytes.size());
  EXPECT_EQ(content.state, FileContent::State::whole);
  EXPECT_EQ(content.bytes, bytes);
  EXPECT_EQ(content.size, bytes.size());
  const auto age = std::chrono::system_clock::now() - content.changed_at;
  EXPECT_LT(age, std::chrono::minutes(5));
  EXPECT_GT(age, -std::chrono::minutes(5));
}

TEST_F(SpoolFilesTest, WhatCannotBeReadSaysWhy) {
  using State = FileContent::State;
  const auto state = [&](const std::string& name) {
    return files_.read(Folder::queue, name, 10).state;
  };
  const auto problem = [&](const std::string& name) {
    const auto content = files_.read(Folder::queue, name, 10);
    EXPECT_EQ(content.state, State::unreadable) << name;
    return content.problem;
  };
  EXPECT_EQ(state("none.json"), State::vanished);
  write_file(queue() / "a.json", "01234567890");
  EXPECT_EQ(state("a.json"), State::too_large);
  fs::create_symlink(queue() / "a.json", queue() / "link.json");
  EXPECT_EQ(problem("link.json"), "a symbolic link");
  fs::create_directory(queue() / "dir.json");
  EXPECT_EQ(problem("dir.json"), "a directory");
  ASSERT_EQ(::mkfifo((queue() / "fifo.json").c_str(), 0600), 0);
  EXPECT_EQ(problem("fifo.json"), "a FIFO");
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (queue() / "s.json").string();
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(problem("s.json"), "a socket");
  ::close(socket);
}

TEST_F(SpoolFilesTest, AHeadIsReadOfAFileOfAnySize) {
  write_file(queue() / "a.json", "0123456789");
  const auto head = files_.read_head(Folder::queue, "a.json", 4);
  EXPECT_EQ(head.bytes, "0123");
  EXPECT_EQ(head.size, 10U);
  EXPECT_EQ(files_.read_head(Folder::queue, "a.json", 40).bytes, "0123456789");
}

TEST_F(SpoolFilesTest, AHugeFileCostsNothing) {
  const fs::path path = queue() / "huge.json";
  write_file(path, "x");
  ASSERT_EQ(::truncate(path.c_str(), off_t{1} << 30), 0);
  const auto content = files_.read(Folder::queue, "huge.json", 1 << 20);
  EXPECT_EQ(content.state, FileContent::State::too_large);
  EXPECT_EQ(content.size, std::uint64_t{1} << 30);
  EXPECT_LT(content.bytes.capacity(), 1000U);
  EXPECT_EQ(files_.read_head(Folder::queue, "huge.json", 1).bytes, "x");
  // Linked, not copied: it is the same file.
  EXPECT_TRUE(*kept("huge.json", "huge.raw"));
  EXPECT_TRUE(fs::equivalent(path, dead() / "huge.raw"));
}

TEST_F(SpoolFilesTest, RawBytesAreKeptUnderAFreeName) {
  write_file(queue() / "a.json", "bytes");
  fs::permissions(queue() / "a.json", fs::perms::all);
  EXPECT_TRUE(*kept("a.json", "a.raw"));
  EXPECT_EQ(read_file(dead() / "a.raw"), "bytes");
  EXPECT_EQ(mode_of(dead() / "a.raw"), 0600U);
  // Once more, after a crash: they are there.
  EXPECT_TRUE(*kept("a.json", "a.raw"));
  write_file(dead() / "b.raw", "other");
  EXPECT_FALSE(*kept("a.json", "b.raw"));
  write_file(dead() / "c.raw", "bytes2");
  EXPECT_FALSE(*kept("a.json", "c.raw"));
  // A copy, where there are no links.
  write_file(dead() / "d.raw", "bytes");
  EXPECT_TRUE(*kept("a.json", "d.raw"));
  EXPECT_THAT(kept("gone.json", "e.raw").error().detail, HasSubstr("gone.json"));
}

TEST_F(SpoolFilesTest, RemovingTellsWhetherItWasThere) {
  write_file(queue() / "a.json", "");
  EXPECT_TRUE(*files_.remove(Folder::queue, "a.json"));
  EXPECT_FALSE(*files_.remove(Folder::queue, "a.json"));
  EXPECT_TRUE(files_.sync_removals(Folder::queue));
  fs::create_directory(queue() / "d");
  EXPECT_THAT(files_.remove(Folder::queue, "d").error().detail, StartsWith("cannot remove "));
}

TEST_F(SpoolFilesTest, SweepingTakesTemporariesAlone) {
  for (const char* name : {"queue/.a.json.tmp", "queue/b.tmp", "queue/a.json", "queue/.hidden",
                           "dead-letter/.a.json.tmp", ".quota.json.tmp", "notes.tmp"}) {
    write_file(spool() / name, "");
  }
  fs::create_symlink(queue() / "a.json", queue() / ".link.tmp");
  EXPECT_EQ(*files_.sweep(*files_.write_alone()), 4U);
  EXPECT_THAT(names_in(queue()), ElementsAre(".hidden", ".link.tmp", "a.json"));
  EXPECT_THAT(names_in(dead()), IsEmpty());
  EXPECT_THAT(names_in(spool()), ElementsAre("dead-letter", "notes.tmp", "queue"));
}

TEST_F(SpoolFilesTest, WritersShareAndOneCanHaveItAlone) {
  {
    const auto one = *files_.write_shared();
    const auto other = *files_.write_shared();
    EXPECT_FALSE(files_.try_write_alone()->has_value());
  }
  {
    const auto alone = *files_.try_write_alone();
    EXPECT_TRUE(alone.has_value());
    EXPECT_FALSE(files_.try_write_alone()->has_value());
  }
  EXPECT_TRUE(files_.try_write_alone()->has_value());
}

TEST_F(SpoolFilesTest, ManyFilesAreListedFast) {
  constexpr int kCount = 10'000;
  const int queue = files_.folder_fd(Folder::queue);
  ASSERT_TRUE(added({{"first.json", "x"}}).empty());
  for (int i = 0; i < kCount; ++i) {
    const std::string name = std::to_string(i) + ".json";
    ASSERT_EQ(::linkat(queue, "first.json", queue, name.c_str(), 0), 0);
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(listed(Folder::queue, Sizes::yes).files.size(), kCount + 1U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

// A crash at any step leaves whole files under real names, and temporaries, which a sweep takes.
TEST(CrashOf, AddingLeavesWholeFiles) {
  for (const int count : {3, 12}) {
    test::crash_at_every_step(
        [](const fs::path&) {},
        [&](SpoolFiles& files) {
          return files.add(*files.write_shared(), Folder::queue, group(count)).has_value();
        },
        [&](const SpoolFiles& files, ChildEnd end) {
          const auto names = names_in(files.directory() / "queue");
          if (end == ChildEnd::succeeded) {
            EXPECT_EQ(names.size(), static_cast<unsigned>(count));
          }
          for (const auto& name : names) {
            EXPECT_EQ(read_file(files.directory() / "queue" / name),
                      "content " + std::to_string(std::stoi(name) - 1000));
          }
        });
  }
}

TEST(CrashOf, ReplacingLeavesTheOldOrTheNew) {
  test::crash_at_every_step(
      [](const fs::path& spool) { write_file(spool / "queue/a.json", "old"); },
      [](SpoolFiles& files) {
        return files.replace(*files.write_shared(), Folder::queue, {"a.json", "new"}).has_value();
      },
      [](const SpoolFiles& files, ChildEnd end) {
        EXPECT_THAT(names_in(files.directory() / "queue"), ElementsAre("a.json"));
        const std::string content = read_file(files.directory() / "queue/a.json");
        EXPECT_TRUE(content == "new" || (content == "old" && end == ChildEnd::killed)) << content;
      });
}

}  // namespace
}  // namespace reprise::spool
