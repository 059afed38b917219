#include "storage/rocksdb/write_behind_files.h"

#include <gtest/gtest.h>
#include <rocksdb/file_system.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "support/temp_directory.h"

namespace reprise::storage {
namespace {

using ::rocksdb::IOOptions;
using ::rocksdb::IOStatus;

constexpr std::size_t kBlock = 4096;
constexpr std::size_t kPiece = 256U << 10;

// No two stretches of it are alike.
std::string some_bytes(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; bytes.size() < count; ++i) bytes += std::to_string(i) + ",";
  bytes.resize(count);
  return bytes;
}

class WriteBehindFilesTest : public ::testing::Test {
 protected:
  std::unique_ptr<::rocksdb::FSWritableFile> open() {
    std::unique_ptr<::rocksdb::FSWritableFile> file;
    const auto opened = env_->GetFileSystem()->NewWritableFile(path_, {}, &file, nullptr);
    EXPECT_TRUE(opened.ok()) << opened.ToString();
    return file;
  }
  std::string content() const {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const test::TempDirectory directory_;
  const std::string path_ = directory_.path() + "/table";
  Pace pace_{true};
  const std::unique_ptr<::rocksdb::Env> env_ = make_write_behind_files(pace_);
};

TEST_F(WriteBehindFilesTest, AFileHasWhatWasAppended) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kBlock - 1, kBlock, kBlock + 1,
                                 kPiece - 1, kPiece, kPiece + 1, 9 * kPiece + 77}) {
    for (const std::size_t step : {std::size_t{5000}, 2 * kPiece + 3}) {
      SCOPED_TRACE(std::to_string(size) + " by " + std::to_string(step));
      const std::string bytes = some_bytes(size);
      const auto file = open();
      for (std::size_t at = 0; at < size; at += step) {
        ASSERT_TRUE(file->Append(bytes.substr(at, step), IOOptions(), nullptr).ok());
      }
      EXPECT_EQ(file->GetFileSize(IOOptions(), nullptr), size);
      ASSERT_TRUE(file->Sync(IOOptions(), nullptr).ok());
      EXPECT_EQ(content(), bytes) << "after a sync";
      ASSERT_TRUE(file->Close(IOOptions(), nullptr).ok());
      EXPECT_EQ(content(), bytes);
    }
  }
}

TEST_F(WriteBehindFilesTest, ItIsTheSameWithoutHurry) {
  pace_.set_awaited(false);
  const std::string bytes = some_bytes(9 * kPiece + 77);
  const auto file = open();
  ASSERT_TRUE(file->Append(bytes, IOOptions(), nullptr).ok());
  ASSERT_TRUE(file->Close(IOOptions(), nullptr).ok());
  EXPECT_EQ(content(), bytes);
}

TEST_F(WriteBehindFilesTest, ItGoesOnBehindASync) {
  const std::string bytes = some_bytes(2 * kPiece);
  const auto file = open();
  for (const auto& [begin, end] : {std::pair<std::size_t, std::size_t>{0, 10},
                                   {10, kBlock + 5},
                                   {kBlock + 5, kPiece + 1},
                                   {kPiece + 1, 2 * kPiece}}) {
    ASSERT_TRUE(file->Append(bytes.substr(begin, end - begin), IOOptions(), nullptr).ok());
    ASSERT_TRUE(file->Sync(IOOptions(), nullptr).ok());
    EXPECT_EQ(content(), bytes.substr(0, end));
  }
}

TEST_F(WriteBehindFilesTest, AFileThatIsDroppedLeavesNoThread) {
  const auto file = open();
  ASSERT_TRUE(file->Append(some_bytes(5 * kPiece), IOOptions(), nullptr).ok());
}

// What a process may write at most, for a while: a write beyond fails.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(std::size_t bytes) : ignored_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, ignored_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*const ignored_)(int);
  rlimit before_{};
};

TEST_F(WriteBehindFilesTest, AWriteThatFailsIsToldAtTheSyncAtTheLatest) {
  const FileSizeLimit limit(2 * kPiece);
  const auto file = open();
  bool told = false;
  for (int i = 0; i < 16 && !told; ++i) {
    told = !file->Append(some_bytes(kPiece), IOOptions(), nullptr).ok();
  }
  EXPECT_TRUE(told) << "nobody should write on for long after a failure";
  const IOStatus synced = file->Sync(IOOptions(), nullptr);
  EXPECT_TRUE(synced.IsIOError()) << synced.ToString();
  EXPECT_NE(synced.ToString().find(path_), std::string::npos);
  EXPECT_FALSE(file->Close(IOOptions(), nullptr).ok());
}

TEST_F(WriteBehindFilesTest, TheLastBlocksMayFailToo) {
  const FileSizeLimit limit(kBlock);
  const auto file = open();
  ASSERT_TRUE(file->Append(some_bytes(3 * kBlock), IOOptions(), nullptr).ok());
  EXPECT_FALSE(file->Sync(IOOptions(), nullptr).ok());
}

// A device of characters is one of the few places left that know no way past a page cache.
TEST_F(WriteBehindFilesTest, WithoutAWayPastThePageCacheNoFileIsMade) {
  std::unique_ptr<::rocksdb::FSWritableFile> file;
  const auto opened = env_->GetFileSystem()->NewWritableFile("/dev/null", {}, &file, nullptr);
  EXPECT_TRUE(opened.IsInvalidArgument()) << opened.ToString();
}

}  // namespace
}  // namespace reprise::storage
