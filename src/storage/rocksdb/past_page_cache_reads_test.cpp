#include "storage/rocksdb/past_page_cache_reads.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "support/temp_directory.h"

namespace reprise::storage {
namespace {

using ::rocksdb::FSRandomAccessFile;
using ::rocksdb::IOOptions;
using ::rocksdb::Slice;

constexpr std::size_t kReadBlock = 4096;
constexpr std::size_t kReadFileBytes = (300U << 10) + 123;  // the last block is not whole

class PastPageCacheReads : public ::testing::Test {
 protected:
  PastPageCacheReads() {
    for (std::size_t i = 0; i < kReadFileBytes; ++i) {
      content_ += static_cast<char>(i * 2654435761U >> 13U);
    }
  }
  std::unique_ptr<FSRandomAccessFile> open(const std::string& name) const {
    const std::string path = directory_.path() + "/" + name;
    std::ofstream(path) << content_;
    std::unique_ptr<FSRandomAccessFile> file;
    const auto status = read_past_page_cache()->NewRandomAccessFile(path, {}, &file, nullptr);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return file;
  }
  void expect_right(const FSRandomAccessFile& file, std::uint64_t offset, std::size_t bytes,
                    std::size_t shift_in_memory = 0) const {
    SCOPED_TRACE(testing::Message() << bytes << " bytes at " << offset);
    const std::unique_ptr<char, decltype(&std::free)> memory(
        static_cast<char*>(std::aligned_alloc(kReadBlock, 1U << 20)), &std::free);
    Slice got;
    const auto status =
        file.Read(offset, bytes, IOOptions(), &got, memory.get() + shift_in_memory, nullptr);
    ASSERT_TRUE(status.ok()) << status.ToString();
    const std::string expected = offset < kReadFileBytes ? content_.substr(offset, bytes) : "";
    EXPECT_EQ(got.ToString(), expected);
  }

  const test::TempDirectory directory_;
  std::string content_;
};

TEST_F(PastPageCacheReads, OfAnySizeAndPlaceGiveWhatIsThere) {
  for (const char* name : {"1.sst", "CURRENT"}) {
    SCOPED_TRACE(name);
    const auto file = open(name);
    ASSERT_NE(file, nullptr);
    for (const std::size_t bytes :
         {std::size_t{1}, kReadBlock, kPastPageCacheBytesMin - 1, kPastPageCacheBytesMin,
          kPastPageCacheBytesMin + 1, std::size_t{256U << 10}, std::size_t{512U << 10}}) {
      for (const std::uint64_t offset : {0U, 1U, 4096U, 65536U, 262144U, 300U << 10, 1U << 20}) {
        expect_right(*file, offset, bytes);
        expect_right(*file, offset, bytes, 8);
      }
    }
  }
}

// What RocksDB makes larger than it has to, it should align so that it is meant.
TEST_F(PastPageCacheReads, WantReadsOfWholeBlocks) {
  EXPECT_EQ(open("1.sst")->GetRequiredBufferAlignment() % kReadBlock, 0U);
}

// The kernel must not be told to read what is in a block cache already.
TEST_F(PastPageCacheReads, LeaveReadingAheadToWhoeverKnowsWhatItLacks) {
  EXPECT_TRUE(open("1.sst")->Prefetch(0, kReadFileBytes, IOOptions(), nullptr).IsNotSupported());
}

TEST_F(PastPageCacheReads, OfAFileThatIsNotThereFailAsUsual) {
  std::unique_ptr<FSRandomAccessFile> file;
  EXPECT_TRUE(read_past_page_cache()
                  ->NewRandomAccessFile(directory_.path() + "/none.sst", {}, &file, nullptr)
                  .IsPathNotFound());
}

}  // namespace
}  // namespace reprise::storage
