#include "spool/drain_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include "support/child_processes.h"
#include "support/crashing.h"
#include "support/files.h"
#include "support/temp_directory.h"

namespace reprise::spool {
namespace {

using testing::HasSubstr;

const Timestamp kNow{std::chrono::milliseconds(1'700'000'000'250)};

class DrainLockTest : public testing::Test {
 protected:
  DrainLockTest() : files_(std::move(*SpoolFiles::create(directory_.path()))) {}

  std::optional<LockHolder> holder() { return *DrainLock::holder(files_); }

  test::TempDirectory directory_;
  SpoolFiles files_;
};

TEST_F(DrainLockTest, NobodyHoldsANewOne) { EXPECT_FALSE(holder()); }

TEST_F(DrainLockTest, SaysWhoHoldsItSinceWhen) {
  const auto lock = DrainLock::acquire(files_, kNow);
  ASSERT_TRUE(lock) << lock.error().detail;
  ASSERT_TRUE(holder());
  EXPECT_EQ(holder()->pid, ::getpid());
  EXPECT_EQ(holder()->since, format_timestamp(kNow));
  const auto second = DrainLock::acquire(files_, kNow);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::spool_locked);
  EXPECT_THAT(second.error().detail, HasSubstr("process " + std::to_string(::getpid())));
  EXPECT_THAT(second.error().detail, HasSubstr(format_timestamp(kNow)));
  struct stat info {};
  ASSERT_EQ(::stat((directory_ / "lock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(DrainLockTest, IsFreeWhenItsOwnerLetsGo) {
  { ASSERT_TRUE(DrainLock::acquire(files_, kNow)); }
  EXPECT_FALSE(holder());
  EXPECT_TRUE(DrainLock::acquire(files_, kNow));
}

TEST_F(DrainLockTest, OfAKilledProcessIsFree) {
  const pid_t child = test::start_child([&] {
    const auto lock = DrainLock::acquire(files_, kNow);
    while (lock) ::pause();
    return false;
  });
  ASSERT_TRUE(test::wait_until([&] { return holder() && holder()->pid == child; }));
  EXPECT_EQ(DrainLock::acquire(files_, kNow).error().code, Errc::spool_locked);
  ::kill(child, SIGKILL);
  EXPECT_EQ(test::wait_for_child(child), test::ChildEnd::killed);
  EXPECT_FALSE(holder());
  EXPECT_TRUE(DrainLock::acquire(files_, kNow));
}

TEST_F(DrainLockTest, WhatADeadHolderHasLeftIsNobody) {
  const pid_t dead = test::start_child([] { return true; });
  test::wait_for_child(dead);
  const auto lock = DrainLock::acquire(files_, kNow);
  // As it looks before the new holder has written its name.
  for (const std::string& text :
       {R"({"pid":)" + std::to_string(dead) + R"(,"since":"2020"})", std::string("{"),
        std::string(), std::string(R"({"pid":-1})"), std::string(R"({"pid":"x"})")}) {
    test::write_file(directory_ / "lock", text);
    ASSERT_TRUE(holder()) << text;
    EXPECT_EQ(holder()->pid, 0) << text;
    EXPECT_EQ(holder()->since, "") << text;
    EXPECT_THAT(DrainLock::acquire(files_, kNow).error().detail, HasSubstr("another process"));
  }
}

TEST_F(DrainLockTest, AFileThatWasDeletedLocksNobodyOut) {
  const auto before = DrainLock::acquire(files_, kNow);
  std::filesystem::remove(directory_ / "lock");
  EXPECT_FALSE(holder());
  const auto after = DrainLock::acquire(files_, kNow);
  EXPECT_TRUE(after);
  EXPECT_TRUE(holder());
}

TEST_F(DrainLockTest, WhoOnlyLooksTurnsNobodyAway) {
  { ASSERT_TRUE(DrainLock::acquire(files_, kNow)); }
  // What holder() does, more often than not.
  std::atomic<bool> stop = false;
  std::thread looker([&] {
    const UniqueFd fd(::open((directory_ / "lock").c_str(), O_RDONLY | O_CLOEXEC));
    while (!stop) {
      ::flock(fd.get(), LOCK_SH | LOCK_NB);
      ::flock(fd.get(), LOCK_UN);
    }
  });
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(DrainLock::acquire(files_, kNow));
  stop = true;
  looker.join();
}

TEST_F(DrainLockTest, WhatIsNoFileIsToldByName) {
  std::filesystem::create_symlink("elsewhere", directory_ / "lock");
  EXPECT_THAT(DrainLock::acquire(files_, kNow).error().detail, HasSubstr("/lock"));
  EXPECT_THAT(DrainLock::holder(files_).error().detail, HasSubstr("/lock: a symbolic link"));
}

}  // namespace
}  // namespace reprise::spool
