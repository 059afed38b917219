#include "storage/durable/segment_pieces.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "storage/durable/overlay_view.h"
#include "support/temp_directory.h"

namespace reprise::storage {
namespace {

constexpr std::uint64_t kSegmentBytes = 1U << 20;

class SegmentPiecesTest : public ::testing::Test {
 protected:
  SegmentPiecesTest() {
    for (std::uint64_t i = 0; i < kSegmentBytes; ++i) {
      content_ += static_cast<char>(i * 2654435761U >> 15U);
    }
    std::ofstream(path_) << content_;
    auto opened = journal::Segment::open(*::rocksdb::FileSystem::Default(), true, path_, 7);
    EXPECT_TRUE(opened) << opened.error().detail;
    segment_ = *std::move(opened);
  }
  // The page cache keeps what is not written to the disk yet.
  void forget_cached() const {
    const int file = ::open(path_.c_str(), O_RDONLY);
    ASSERT_EQ(::fsync(file), 0);
    ASSERT_EQ(::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED), 0);
    ::close(file);
  }

  const test::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/7.seg";
  std::string content_;
  journal::SegmentPtr segment_;
};

TEST_F(SegmentPiecesTest, AreWhatTheSegmentHolds) {
  ASSERT_NO_FATAL_FAILURE(forget_cached());
  SegmentPieces pieces;
  std::size_t read = 0;
  for (const std::uint64_t length : {SegmentPieces::kBytesMin, std::uint64_t{100'001}}) {
    for (const std::uint64_t offset :
         {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{65'536}, kSegmentBytes - length}) {
      const auto piece = pieces.read(*segment_, offset, length);
      if (!piece) continue;  // a file system that has no way past its page cache
      ++read;
      EXPECT_EQ(*piece, content_.substr(offset, length));
    }
  }
  if (read == 0) GTEST_SKIP() << "nothing here can be read past the page cache";
}

TEST_F(SegmentPiecesTest, AreLeftToThePageCacheWhenItHasThem) {
  { const std::string all((std::istreambuf_iterator<char>(std::ifstream(path_).rdbuf())), {}); }
  SegmentPieces pieces;
  EXPECT_FALSE(pieces.read(*segment_, 0, SegmentPieces::kBytesMin));
}

TEST_F(SegmentPiecesTest, AreLeftToOthersWhenSmallOrHugeOrBeyondTheEnd) {
  ASSERT_NO_FATAL_FAILURE(forget_cached());
  SegmentPieces pieces;
  EXPECT_FALSE(pieces.read(*segment_, 0, SegmentPieces::kBytesMin - 1));
  EXPECT_FALSE(pieces.read(*segment_, 0, SegmentPieces::kBytesMax + 1));
  EXPECT_FALSE(pieces.read(*segment_, kSegmentBytes - 1, SegmentPieces::kBytesMin));
}

TEST_F(SegmentPiecesTest, OfAFileThatCannotBeOpenedAreLeftToOthers) {
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  SegmentPieces pieces;
  EXPECT_FALSE(pieces.read(*segment_, 0, SegmentPieces::kBytesMin));
}

// As a checkpoint reads: values side by side, then one far away, then one before.
TEST_F(SegmentPiecesTest, GiveAValueReaderTheSameValues) {
  ASSERT_NO_FATAL_FAILURE(forget_cached());
  SegmentPieces pieces;
  ValueReader values(&pieces);
  const auto expect_value = [&](std::uint64_t offset, std::uint32_t length) {
    const auto value = values.read({.segment = segment_.get(), .offset = offset, .length = length});
    ASSERT_TRUE(value) << value.error().detail;
    ASSERT_EQ(*value, content_.substr(offset, length));
  };
  for (std::uint64_t offset = 100; offset + 1000 < kSegmentBytes / 2; offset += 1020) {
    ASSERT_NO_FATAL_FAILURE(expect_value(offset, 1000));
  }
  for (std::uint64_t offset = 500; offset + 1000 < kSegmentBytes; offset += 16'000) {
    ASSERT_NO_FATAL_FAILURE(expect_value(offset, 1000));  // as of one queue of many
  }
  ASSERT_NO_FATAL_FAILURE(expect_value(kSegmentBytes - 3000, 3000));
  ASSERT_NO_FATAL_FAILURE(expect_value(3, 200'000));
  ASSERT_NO_FATAL_FAILURE(expect_value(kSegmentBytes - 1, 1));
}

}  // namespace
}  // namespace reprise::storage
