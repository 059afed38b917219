#include "storage/rocksdb/diary.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/temp_directory.h"

namespace reprise::storage {
namespace {

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(Diary, LinesAreAppendedOnceTheDirectoryIsThere) {
  const test::TempDirectory temp;
  const std::string database = temp.path() + "/db";
  const auto diary = make_diary(database);
  ::rocksdb::Log(diary, "lost, nowhere to write it");
  std::filesystem::create_directory(database);
  ::rocksdb::Log(diary, "number %d", 7);
  EXPECT_NE(contents(database + "/LOG").find(" number 7\n"), std::string::npos);
  EXPECT_EQ(contents(database + "/LOG").find("lost"), std::string::npos);
}

TEST(Diary, StaysSmall) {
  const test::TempDirectory temp;
  const auto diary = make_diary(temp.path());
  const std::string line(1000, 'x');
  for (int i = 0; i < 5000; ++i) ::rocksdb::Log(diary, "%s", line.c_str());
  EXPECT_LE(std::filesystem::file_size(temp.path() + "/LOG"), (1U << 20) + 2000);
  EXPECT_LE(std::filesystem::file_size(temp.path() + "/LOG.old"), (1U << 20) + 2000);
}

}  // namespace
}  // namespace reprise::storage
