#include "storage/journal/segment_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <string>

#include "support/temp_directory.h"

namespace reprise::storage::journal {
namespace {

constexpr std::size_t kBlock = 4096;

class SegmentFileTest : public ::testing::Test {
 protected:
  // A file of that many bytes that was used before.
  void open(std::size_t bytes) {
    std::ofstream(path_, std::ios::binary) << std::string(bytes, 'o');
    auto opened = open_on_disk(path_);
    ASSERT_TRUE(opened) << opened.error().detail;
    file_ = *std::move(opened);
  }
  std::string content() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const test::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/file";
  std::unique_ptr<SegmentFile> file_;
};

TEST_F(SegmentFileTest, BehindWhatIsWrittenAreZerosUpToTheBlocksEnd) {
  open(3 * kBlock);
  ASSERT_TRUE(file_->write(0, "head", "body"));
  EXPECT_EQ(content(), "headbody" + std::string(kBlock - 8, '\0') + std::string(2 * kBlock, 'o'));
  ASSERT_TRUE(file_->write(8, std::string(kBlock, 'x'), "y"));
  EXPECT_EQ(content(), "headbody" + std::string(kBlock, 'x') + "y" + std::string(kBlock - 9, '\0') +
                           std::string(kBlock, 'o'));
}

TEST_F(SegmentFileTest, ABlockThatIsFullIsFollowedByNothing) {
  open(2 * kBlock);
  ASSERT_TRUE(file_->write(0, std::string(kBlock - 1, 'x'), "y"));
  EXPECT_EQ(content(), std::string(kBlock - 1, 'x') + "y" + std::string(kBlock, 'o'));
}

TEST_F(SegmentFileTest, AShortFileStaysAsLongAsItIs) {
  open(20);
  ASSERT_TRUE(file_->write(0, "mark", {}));
  EXPECT_EQ(content(), "mark" + std::string(16, '\0'));
  ASSERT_TRUE(file_->write(0, std::string(24, 'x'), {}));
  EXPECT_EQ(content(), std::string(24, 'x'));
}

TEST_F(SegmentFileTest, DurableAndOtherWritesMayTakeTurns) {
  open(64 * kBlock);
  std::string written;
  const auto write = [&](bool durably, char filling, std::size_t bytes) {
    const std::string part(bytes, filling);
    const auto offset = written.size();
    written += "<" + part;
    ASSERT_TRUE(durably ? file_->write_durably(offset, "<", part)
                        : file_->write(offset, "<", part));
    ASSERT_TRUE(file_->sync());
    std::string got;
    ASSERT_TRUE(file_->read(0, written.size(), got));
    EXPECT_EQ(got, written);
  };
  for (std::size_t i = 0; i < 20; ++i) {
    write(i % 3 == 0, static_cast<char>('a' + i), 1 + i * 733 % 9000);
  }
}

TEST_F(SegmentFileTest, AReservedFileIsOfZerosAndHasItsSpace) {
  ASSERT_TRUE(make_reserved_file(path_, 16 * kBlock));
  EXPECT_EQ(content(), std::string(16 * kBlock, '\0'));
  struct stat known {};
  ASSERT_EQ(::stat(path_.c_str(), &known), 0);
  EXPECT_GE(known.st_blocks * 512, static_cast<blkcnt_t>(16 * kBlock));
  auto opened = open_on_disk(path_);
  ASSERT_TRUE(opened);
  ASSERT_TRUE((*opened)->write(0, "head", "body"));
  ASSERT_TRUE((*opened)->write_durably(5 * kBlock, "head", "body"));
  std::string expected(16 * kBlock, '\0');
  expected.replace(0, 8, "headbody");
  expected.replace(5 * kBlock, 8, "headbody");
  EXPECT_EQ(content(), expected);
}

// More than the kernel is told to write at a time, and again from the front.
TEST_F(SegmentFileTest, ALargeFileIsWhatWasWritten) {
  open(3U << 20);
  for (const char filling : {'a', 'b'}) {
    std::string written;
    while (written.size() + 10'000 <= 3U << 20) {
      ASSERT_TRUE(file_->write(written.size(), std::string(9'999, filling), "|"));
      written += std::string(9'999, filling) + "|";
    }
    ASSERT_TRUE(file_->sync());
    EXPECT_EQ(content().substr(0, written.size()), written);
  }
}

}  // namespace
}  // namespace reprise::storage::journal
