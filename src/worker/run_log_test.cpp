#include "worker/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "support/files.h"
#include "support/temp_directory.h"

namespace reprise::worker {
namespace {

using testing::HasSubstr;

class RunLogTest : public testing::Test {
 protected:
  LogPart read(LogQuery query) const { return read_log_file(path_, query); }

  test::TempDirectory directory_;
  const std::string path_ = directory_ / "log";
};

TEST_F(RunLogTest, KeepsWhatIsAppended) {
  RunLog log(path_, 100);
  EXPECT_TRUE(log.append("one\n"));
  EXPECT_TRUE(log.append("two\n"));
  EXPECT_EQ(test::read_file(path_), "one\ntwo\n");
  EXPECT_EQ(log.bytes(), 8U);
  EXPECT_EQ(log.left_out(), 0U);
  log.finish();
  EXPECT_EQ(test::read_file(path_), "one\ntwo\n");
}

TEST_F(RunLogTest, IsForItsOwnerAlone) {
  const RunLog log(path_, 100);
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(RunLogTest, WhatIsBeyondTheLimitIsCountedAndSaidInTheEnd) {
  RunLog log(path_, 10);
  EXPECT_TRUE(log.append("12345678"));
  EXPECT_TRUE(log.append("90abcd"));  // in part
  EXPECT_FALSE(log.append(std::string(2044, 'x')));
  EXPECT_EQ(test::read_file(path_), "1234567890");
  EXPECT_EQ(log.bytes(), 10U);
  EXPECT_EQ(log.left_out(), 2048U);
  log.finish();
  EXPECT_THAT(test::read_file(path_), HasSubstr("1234567890\n==> 2 KiB more of output left out\n"));
  EXPECT_EQ(log.bytes(), test::read_file(path_).size());
  EXPECT_EQ(log.left_out(), 2048U);
}

TEST_F(RunLogTest, NothingIsKeptAfterTheEnd) {
  RunLog log(path_, 100);
  log.append("a");
  log.finish();
  EXPECT_FALSE(log.append("b"));
  log.finish();
  EXPECT_EQ(test::read_file(path_), "a");
}

TEST_F(RunLogTest, AFileThatCannotBeWrittenIsNoTrouble) {
  RunLog log(directory_ / "no/such/place", 100);
  EXPECT_FALSE(log.append("abc"));
  EXPECT_EQ(log.bytes(), 0U);
  EXPECT_EQ(log.left_out(), 3U);
  log.finish();
}

TEST_F(RunLogTest, IsReadFromAnyPlace) {
  test::write_file(path_, "0123456789");
  EXPECT_EQ(read({}).text, "0123456789");
  EXPECT_EQ(read({}).next, 10U);
  EXPECT_EQ(read({.offset = 4}).text, "456789");
  EXPECT_EQ(read({.offset = 4, .limit = 2}).text, "45");
  EXPECT_EQ(read({.offset = 4, .limit = 2}).next, 6U);
  EXPECT_EQ(read({.offset = 10}).text, "");
  EXPECT_EQ(read({.offset = 10}).next, 10U);
  EXPECT_EQ(read({.offset = 100}).text, "");
}

TEST_F(RunLogTest, IsReadFromItsEnd) {
  test::write_file(path_, "0123456789");
  EXPECT_EQ(read({.tail = 3}).text, "789");
  EXPECT_EQ(read({.tail = 3}).next, 10U);
  EXPECT_EQ(read({.offset = 2, .tail = 3}).text, "789");
  EXPECT_EQ(read({.tail = 100}).text, "0123456789");
  EXPECT_EQ(read({.tail = 0}).text, "");
  EXPECT_EQ(read({.tail = 5, .limit = 2}).text, "56");
}

TEST_F(RunLogTest, OneReadIsNeverTooMuch) {
  test::write_file(path_, std::string(1 << 20, 'x'));
  EXPECT_EQ(read({.limit = 1ULL << 40}).text.size(), 256U * 1024);
  EXPECT_EQ(read({.limit = 1ULL << 40}).next, 256U * 1024);
}

TEST_F(RunLogTest, AFileThatIsNotThereIsEmpty) {
  EXPECT_EQ(read({.offset = 5}).text, "");
  EXPECT_EQ(read({.offset = 5}).next, 0U);
}

// --- Of a worker
// -----------------------------------------------------------------------------------

class WorkerLogTest : public testing::Test {
 protected:
  // All of it, read in pieces.
  static std::string all_of(const WorkerLog& log, std::uint64_t piece = 256 * 1024) {
    std::string text;
    std::uint64_t offset = 0;
    while (true) {
      const LogPart part = log.read({.offset = offset, .limit = piece});
      if (part.text.empty()) return text;
      text += part.text;
      offset = part.next;
    }
  }

  test::TempDirectory directory_;
  const std::string path_ = directory_ / "fixer.log";
};

TEST_F(WorkerLogTest, IsReadFromAnyPlaceAndFromItsEnd) {
  WorkerLog log(path_, 100);
  log.append("one\n");
  log.append("two\n");
  EXPECT_EQ(log.read({}).text, "one\ntwo\n");
  EXPECT_EQ(log.read({.offset = 4}).text, "two\n");
  EXPECT_EQ(log.read({.tail = 4}).text, "two\n");
  EXPECT_EQ(log.read({.limit = 3}).text, "one");
  EXPECT_EQ(log.read({.limit = 3}).next, 3U);
  EXPECT_EQ(log.read({.offset = 99}).text, "");
  EXPECT_EQ(log.read({.offset = 99}).next, 8U);
  EXPECT_EQ(log.end(), 8U);
}

TEST_F(WorkerLogTest, PlacesStayWhenTheFilesTakeTurns) {
  WorkerLog log(path_, 10);
  log.append("0123\n");
  log.append("5678\n");
  log.append("abcd\n");  // in the younger file
  EXPECT_EQ(test::read_file(path_ + ".1"), "0123\n5678\n");
  EXPECT_EQ(test::read_file(path_), "abcd\n");
  EXPECT_EQ(log.end(), 15U);
  EXPECT_EQ(log.read({.offset = 5}).text, "5678\n");
  EXPECT_EQ(log.read({.offset = 5}).next, 10U);
  EXPECT_EQ(log.read({.offset = 10}).text, "abcd\n");
  EXPECT_EQ(log.read({.tail = 5}).text, "abcd\n");
  EXPECT_EQ(all_of(log), "0123\n5678\nabcd\n");
  EXPECT_EQ(all_of(log, 4), "0123\n5678\nabcd\n");
}

TEST_F(WorkerLogTest, TheOldestGoesWhenTheYoungerIsFull) {
  WorkerLog log(path_, 10);
  for (int i = 0; i < 5; ++i) log.append("line" + std::to_string(i) + "\n");
  EXPECT_EQ(log.end(), 30U);
  EXPECT_EQ(all_of(log), "line3\nline4\n");
  // Who followed and fell behind goes on with what there is.
  const LogPart part = log.read({.offset = 6});
  EXPECT_EQ(part.text, "line3\n");
  EXPECT_EQ(part.next, 24U);
  EXPECT_EQ(log.read({.offset = part.next}).text, "line4\n");
  EXPECT_EQ(log.read({.tail = 100}).text, "line3\n");
}

TEST_F(WorkerLogTest, ALineThatIsLongerThanAFileIsKeptWhole) {
  WorkerLog log(path_, 10);
  log.append(std::string(30, 'x'));
  log.append("y");
  EXPECT_EQ(all_of(log), std::string(30, 'x') + "y");
}

TEST_F(WorkerLogTest, TheNextServerGoesOnWithIt) {
  {
    WorkerLog log(path_, 10);
    log.append("0123\n");
    log.append("5678\n");
    log.append("abcd\n");
  }
  WorkerLog log(path_, 10);
  EXPECT_EQ(all_of(log), "0123\n5678\nabcd\n");
  log.append("ef\n");
  EXPECT_EQ(all_of(log), "0123\n5678\nabcd\nef\n");
  EXPECT_EQ(log.end(), 18U);
}

TEST_F(WorkerLogTest, AFileThatCannotBeWrittenIsNoTrouble) {
  WorkerLog log(directory_ / "no/such/place", 10);
  log.append("abc\n");
  EXPECT_EQ(log.read({}).text, "");
  EXPECT_EQ(log.end(), 0U);
}

}  // namespace
}  // namespace reprise::worker
