#include "cli/input_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;

class InputFile : public ::testing::Test {
 protected:
  ~InputFile() override { std::filesystem::remove(path_); }

  const std::string& with_content(std::string_view content) {
    std::ofstream(path_, std::ios::binary) << content;
    return path_;
  }
  // "": it was read.
  static std::string problem_with(const std::string& path) {
    try {
      read_script_file("--on-failure-file", path);
      return {};
    } catch (const CLI::ValidationError& error) {
      return error.what();
    }
  }

  const std::string path_ = ::testing::TempDir() + "input_file_test." + std::to_string(getpid());
};

TEST_F(InputFile, GivesTheTextAsItIs) {
  const std::string text = "-- é\r\nfunction on_failure()\tend";
  EXPECT_EQ(read_script_file("--f", with_content(text)), text);
}

TEST_F(InputFile, NamesTheFlagAndTheFileThatCannotBeRead) {
  EXPECT_EQ(problem_with("/nonexistent/a.lua"),
            "--on-failure-file: cannot read /nonexistent/a.lua: No such file or directory");
  EXPECT_THAT(problem_with("/"), HasSubstr("cannot read /: Is a directory"));
}

TEST_F(InputFile, TakesOnlyText) {
  EXPECT_THAT(problem_with(with_content("caf\xe9")), HasSubstr("is not UTF-8 text"));
  EXPECT_THAT(problem_with(with_content({"a\0b", 3})), HasSubstr("is not UTF-8 text"));
  EXPECT_THAT(problem_with(with_content("")), HasSubstr("is empty"));
  EXPECT_EQ(read_text_file("--sample", with_content("")), "");
}

TEST_F(InputFile, AFileWithoutEndIsGivenUp) {
  EXPECT_THAT(problem_with("/dev/zero"), HasSubstr("beyond 24 MiB"));
}

TEST_F(InputFile, StandardInputIsReadOnce) {
  EXPECT_NO_THROW(check_one_standard_input({}));
  EXPECT_NO_THROW(check_one_standard_input({"a", "-", "a"}));
  EXPECT_THROW(check_one_standard_input({"-", "a", "-"}), CLI::ValidationError);
}

}  // namespace
}  // namespace reprise::cli
