#include "daemon/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

namespace reprise::daemon {
namespace {

using testing::HasSubstr;

class ProcessTest : public testing::Test {
 protected:
  ProcessTest()
      : directory_(std::filesystem::temp_directory_path() /
                   ("reprise-process-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(directory_);
  }
  ~ProcessTest() override { std::filesystem::remove_all(directory_); }

  const std::filesystem::path directory_;
};

TEST_F(ProcessTest, AFileIsReplacedAsAWholeAndNothingElseIsLeft) {
  const std::string path = directory_ / "port";
  ASSERT_TRUE(write_file_atomically(path, "127.0.0.1:1\n"));
  ASSERT_TRUE(write_file_atomically(path, "127.0.0.1:2\n"));
  const auto text = read_whole_file(path);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "127.0.0.1:2\n");
  const std::filesystem::directory_iterator entries(directory_);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(ProcessTest, FileErrorsNameTheFileAndTheReason) {
  const std::string missing = directory_ / "no" / "file";
  EXPECT_THAT(write_file_atomically(missing, "x").error().detail,
              testing::AllOf(HasSubstr(missing), HasSubstr("No such file")));
  EXPECT_THAT(read_whole_file(missing).error().detail,
              testing::AllOf(HasSubstr(missing), HasSubstr("No such file")));
  EXPECT_THAT(read_whole_file(directory_).error().detail, HasSubstr("Is a directory"));
}

TEST_F(ProcessTest, OnlyAKnownShortageOfDiskCounts) {
  EXPECT_LT(free_disk_bytes(directory_), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(free_disk_bytes(directory_ / "missing"), std::numeric_limits<std::uint64_t>::max());
}

TEST_F(ProcessTest, ABinaryThatPathDoesNotLeadToIsNamedByItsOwnPath) {
  EXPECT_THAT(command_name(), HasSubstr("daemon_test"));
}

}  // namespace
}  // namespace reprise::daemon
