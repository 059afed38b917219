#include "storage/rocksdb/table_deletion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/temp_directory.h"

namespace reprise::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLarge = 3U << 20;

class TableDeletionTest : public ::testing::Test {
 protected:
  std::string make(const std::string& name, std::size_t size) const {
    std::string path = directory_.path() + "/" + name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << std::string(size, 'x');
    return path;
  }
  void start() { deletion_ = std::make_unique<TableDeletion>(directory_.path()); }
  void erase(const std::string& path) const {
    const auto status = deletion_->env()->DeleteFile(path);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  void finish() const { deletion_->finish(not_interrupted_); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_.path())) {
      names.push_back(entry.path().filename());
    }
    std::ranges::sort(names);
    return names;
  }

  const test::TempDirectory directory_;
  const std::atomic<bool> not_interrupted_{false};
  std::unique_ptr<TableDeletion> deletion_;
};

TEST_F(TableDeletionTest, ATableLosesItsNameAtOnceAndIsGoneSoon) {
  start();
  const std::string path = make("1.sst", kLarge);
  erase(path);
  EXPECT_FALSE(fs::exists(path));
  while (!files().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(TableDeletionTest, OthersAreDeletedAtOnce) {
  start();
  const std::string small = make("1.sst", 100);
  const std::string other = make("MANIFEST-1", kLarge);
  const std::string elsewhere = make("below/2.sst", kLarge);
  for (const std::string& path : {small, other, elsewhere}) {
    erase(path);
    EXPECT_FALSE(fs::exists(path)) << path;
    EXPECT_FALSE(fs::exists(path + GradualDeletion::kSuffix)) << path;
  }
}

TEST_F(TableDeletionTest, WhatIsNotThereIsAnErrorAsEver) {
  start();
  EXPECT_TRUE(deletion_->env()->DeleteFile(directory_.path() + "/1.sst").IsPathNotFound());
}

TEST_F(TableDeletionTest, AFileWithASecondNameKeepsItsContent) {
  start();
  const std::string path = make("1.sst", kLarge);
  const std::string backup = directory_.path() + "/backup";
  fs::create_hard_link(path, backup);
  erase(path);
  finish();
  EXPECT_EQ(files(), std::vector<std::string>{"backup"});
  EXPECT_EQ(fs::file_size(backup), kLarge);
}

TEST_F(TableDeletionTest, FinishingWaitsForNothing) {
  start();
  for (int i = 0; i < 20; ++i) erase(make(std::to_string(i) + ".sst", kLarge));
  finish();
  EXPECT_TRUE(files().empty());
}

TEST_F(TableDeletionTest, FinishingCanBeInterrupted) {
  start();
  for (int i = 0; i < 20; ++i) erase(make(std::to_string(i) + ".sst", kLarge));
  deletion_->finish(std::atomic<bool>(true));
}

TEST_F(TableDeletionTest, WhatAStopLeavesIsDeletedAfterTheNextStart) {
  const std::string suffix = GradualDeletion::kSuffix;
  make("1.sst" + suffix, kLarge);
  make("2.sst" + suffix, 0);
  make("3.sst", kLarge);
  make("4" + suffix, kLarge);  // somebody else's
  start();
  finish();
  EXPECT_EQ(files(), (std::vector<std::string>{"3.sst", "4" + suffix}));
}

TEST_F(TableDeletionTest, AStopDoesNotWait) {
  start();
  for (int i = 0; i < 50; ++i) erase(make(std::to_string(i) + ".sst", kLarge));
  deletion_.reset();
  for (const std::string& name : files()) EXPECT_TRUE(name.ends_with(".sst.gone")) << name;
}

}  // namespace
}  // namespace reprise::storage
