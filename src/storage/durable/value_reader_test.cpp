#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "storage/durable/overlay_view.h"
#include "support/temp_directory.h"

namespace reprise::storage {
namespace {

constexpr std::uint64_t kSegmentBytes = 1U << 20;

class ValueReaderTest : public ::testing::Test {
 protected:
  ValueReaderTest() {
    for (const std::uint64_t number : {7, 8}) {
      std::string content;
      for (std::uint64_t i = 0; i < kSegmentBytes; ++i) {
        content += static_cast<char>((i + number) * 2654435761U >> 15U);
      }
      const std::string path = directory_.path() + "/" + std::to_string(number) + ".seg";
      std::ofstream(path) << content;
      auto opened = journal::Segment::open(*::rocksdb::FileSystem::Default(), true, path, number);
      EXPECT_TRUE(opened) << opened.error().detail;
      segments_.push_back(*std::move(opened));
      contents_.push_back(std::move(content));
    }
  }

  void expect_value(std::size_t segment, std::uint64_t offset, std::uint32_t length) {
    const auto value =
        values_.read({.segment = segments_[segment].get(), .offset = offset, .length = length});
    ASSERT_TRUE(value) << value.error().detail;
    ASSERT_EQ(*value, contents_[segment].substr(offset, length));
  }

  const test::TempDirectory directory_;
  std::vector<journal::SegmentPtr> segments_;
  std::vector<std::string> contents_;
  ValueReader values_;
};

// As a checkpoint reads: values side by side, then those of one queue among many, then here and
// there.
TEST_F(ValueReaderTest, ReadsWhatStandsThere) {
  for (std::uint64_t offset = 100; offset + 1000 < kSegmentBytes / 2; offset += 1020) {
    ASSERT_NO_FATAL_FAILURE(expect_value(0, offset, 1000));
  }
  for (std::uint64_t offset = 500; offset + 1000 < kSegmentBytes; offset += 16'000) {
    ASSERT_NO_FATAL_FAILURE(expect_value(0, offset, 1000));
  }
  ASSERT_NO_FATAL_FAILURE(expect_value(0, kSegmentBytes - 3000, 3000));
  ASSERT_NO_FATAL_FAILURE(expect_value(0, 3, 700'000));
  ASSERT_NO_FATAL_FAILURE(expect_value(0, kSegmentBytes - 1, 1));
  ASSERT_NO_FATAL_FAILURE(expect_value(0, 5, 0));
}

TEST_F(ValueReaderTest, GoesOnInTheNextSegment) {
  for (const std::size_t segment : {0, 1, 0}) {
    for (std::uint64_t offset = 112; offset + 1000 < kSegmentBytes; offset += 1020) {
      ASSERT_NO_FATAL_FAILURE(expect_value(segment, offset, 1000));
    }
  }
  ASSERT_NO_FATAL_FAILURE(expect_value(1, 700'000, 10));
  ASSERT_NO_FATAL_FAILURE(expect_value(0, 700'000, 10));
}

TEST_F(ValueReaderTest, SaysWhenASegmentEndsBefore) {
  ASSERT_NO_FATAL_FAILURE(expect_value(0, 100, 1000));
  const auto file = segments_[0]->path();
  std::ofstream(file, std::ios::trunc) << "short";
  const auto value =
      values_.read({.segment = segments_[0].get(), .offset = 500'000, .length = 1000});
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, Errc::corrupt);
  EXPECT_NE(value.error().detail.find("ends before"), std::string::npos) << value.error().detail;
}

}  // namespace
}  // namespace reprise::storage
