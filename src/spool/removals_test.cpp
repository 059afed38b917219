#include "spool/removals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/temp_directory.h"

namespace reprise::spool {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

class RemovalsTest : public testing::TestWithParam<std::size_t> {
 protected:
  std::string put(std::size_t number) {
    const std::string name = std::to_string(number) + ".json";
    const auto writing = files.write_shared();
    EXPECT_TRUE(files.add(*writing, Folder::queue, {{name, "{}"}}));
    return name;
  }
  std::size_t left() const { return files.list(Folder::queue, Sizes::no)->files.size(); }

  test::TempDirectory directory;
  SpoolFiles files = *SpoolFiles::create(directory / "spool");
};

TEST_P(RemovalsTest, FinishWaitsForAllOfThem) {
  Removals removals(files, GetParam());
  for (std::size_t i = 0; i < Removals::kMostWaiting + 100; ++i) removals.add(put(i));
  EXPECT_THAT(removals.finish(), IsEmpty());
  EXPECT_EQ(left(), 0U);
}

TEST_P(RemovalsTest, SoDoesTheEnd) {
  {
    Removals removals(files, GetParam());
    for (std::size_t i = 0; i < 50; ++i) removals.add(put(i));
  }
  EXPECT_EQ(left(), 0U);
}

TEST_P(RemovalsTest, OneThatIsGoneIsNoFailure) {
  Removals removals(files, GetParam());
  removals.add("gone.json");
  EXPECT_THAT(removals.finish(), IsEmpty());
}

TEST_P(RemovalsTest, AFailureIsToldOnceAndTheOthersGo) {
  fs::create_directory(fs::path(directory / "spool") / "queue" / "folder.json");
  Removals removals(files, GetParam());
  const std::string before = put(1);
  const std::string after = put(2);
  removals.add(before);
  removals.add("folder.json");
  removals.add(after);
  const auto failures = removals.finish();
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].name, "folder.json");
  EXPECT_THAT(failures[0].problem, HasSubstr("folder.json"));
  EXPECT_THAT(removals.finish(), IsEmpty());
  EXPECT_EQ(left(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Threads, RemovalsTest, testing::Values(0, 1, 4));

}  // namespace
}  // namespace reprise::spool
