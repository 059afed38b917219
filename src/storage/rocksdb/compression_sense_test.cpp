#include "storage/rocksdb/compression_sense.h"

#include <gtest/gtest.h>

namespace reprise::storage {
namespace {

constexpr std::uint64_t kFileBytes = 16ULL << 20;

// Only compared, never looked into.
const ::rocksdb::ColumnFamilyHandle* family(std::uintptr_t number) {
  return reinterpret_cast<const ::rocksdb::ColumnFamilyHandle*>(number);
}

class CompressionSenseTest : public ::testing::Test {
 protected:
  // How many files are left as they are before one is compressed.
  int left_as_they_are(std::uintptr_t number) {
    int files = 0;
    while (!sense.compresses(family(number))) ++files;
    return files;
  }
  CompressionSense sense;
};

TEST_F(CompressionSenseTest, WhatShrinksIsCompressedEachTime) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(sense.compresses(family(1)));
    sense.learn(family(1), kFileBytes, kFileBytes / 3);
  }
}

TEST_F(CompressionSenseTest, WhatDoesNotShrinkIsLeftAsItIsAndTriedAgain) {
  EXPECT_TRUE(sense.compresses(family(1)));
  sense.learn(family(1), kFileBytes, kFileBytes);
  EXPECT_EQ(left_as_they_are(1), 15);
  sense.learn(family(1), kFileBytes, kFileBytes / 2);
  EXPECT_EQ(left_as_they_are(1), 0);
}

TEST_F(CompressionSenseTest, EachFamilyIsJudgedByItsOwnFiles) {
  sense.learn(family(1), kFileBytes, kFileBytes);
  EXPECT_EQ(left_as_they_are(2), 0);
  EXPECT_EQ(left_as_they_are(1), 15);
}

TEST_F(CompressionSenseTest, ASmallFileTellsNothing) {
  sense.learn(family(1), 1000, 2000);
  EXPECT_EQ(left_as_they_are(1), 0);
}

TEST_F(CompressionSenseTest, AnEighthIsWorthIt) {
  sense.learn(family(1), kFileBytes, kFileBytes - kFileBytes / 8);
  EXPECT_EQ(left_as_they_are(1), 0);
  sense.learn(family(1), kFileBytes, kFileBytes - kFileBytes / 8 + 1);
  EXPECT_EQ(left_as_they_are(1), 15);
}

}  // namespace
}  // namespace reprise::storage
