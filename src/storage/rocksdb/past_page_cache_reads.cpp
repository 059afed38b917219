#include "storage/rocksdb/past_page_cache_reads.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

namespace reprise::storage {
namespace {

using ::rocksdb::FileOptions;
using ::rocksdb::IODebugContext;
using ::rocksdb::IOOptions;
using ::rocksdb::IOStatus;
using ::rocksdb::Slice;

constexpr std::size_t kDiskBlockBytes = 4096;  // what reads past the page cache are made of
constexpr std::string_view kTableFileExtension = ".sst";

class PastPageCacheTable final : public ::rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  PastPageCacheTable(std::unique_ptr<::rocksdb::FSRandomAccessFile> buffered, int direct)
      : FSRandomAccessFileOwnerWrapper(std::move(buffered)), direct_(direct) {}
  ~PastPageCacheTable() override { ::close(direct_); }
  PastPageCacheTable(const PastPageCacheTable&) = delete;
  PastPageCacheTable& operator=(const PastPageCacheTable&) = delete;

  IOStatus Read(std::uint64_t offset, std::size_t bytes, const IOOptions& options, Slice* result,
                char* into, IODebugContext* context) const override {
    if (is_meant(offset, bytes, into)) {
      const std::size_t got = read_direct(offset, bytes, into);
      if (got > 0) {
        *result = Slice(into, got);
        return IOStatus::OK();
      }
    }
    return FSRandomAccessFileOwnerWrapper::Read(offset, bytes, options, result, into, context);
  }
  // RocksDB reads ahead into a buffer of its own then, and only what its block cache lacks. The
  // kernel would be told of every block, cached or not.
  IOStatus Prefetch(std::uint64_t, std::size_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::NotSupported("reads ahead");
  }
  // What RocksDB aligns the reads to that it makes larger than it has to.
  std::size_t GetRequiredBufferAlignment() const override { return kDiskBlockBytes; }

 private:
  static bool is_meant(std::uint64_t offset, std::size_t bytes, const char* into) {
    return bytes >= kPastPageCacheBytesMin && offset % kDiskBlockBytes == 0 &&
           bytes % kDiskBlockBytes == 0 &&
           reinterpret_cast<std::uintptr_t>(into) % kDiskBlockBytes == 0;
  }

  // Less than was asked for only at the end of the file. 0: the other way may know why.
  std::size_t read_direct(std::uint64_t offset, std::size_t bytes, char* into) const {
    std::size_t at = 0;
    while (at < bytes) {
      const ssize_t got = ::pread(direct_, into + at, bytes - at, static_cast<off_t>(offset + at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return 0;
      at += static_cast<std::size_t>(got);
      if (got == 0 || at % kDiskBlockBytes != 0) break;  // the end
    }
    return at;
  }

  const int direct_;
};

class PastPageCacheFiles final : public ::rocksdb::FileSystemWrapper {
 public:
  PastPageCacheFiles() : FileSystemWrapper(::rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "PastPageCacheReads"; }

  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& options,
                               std::unique_ptr<::rocksdb::FSRandomAccessFile>* made,
                               IODebugContext* context) override {
    auto status = FileSystemWrapper::NewRandomAccessFile(path, options, made, context);
    if (!status.ok() || !path.ends_with(kTableFileExtension)) return status;
    const int direct = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (direct >= 0) *made = std::make_unique<PastPageCacheTable>(std::move(*made), direct);
    return status;
  }
};

}  // namespace

std::shared_ptr<::rocksdb::FileSystem> read_past_page_cache() {
  return std::make_shared<PastPageCacheFiles>();
}

}  // namespace reprise::storage
