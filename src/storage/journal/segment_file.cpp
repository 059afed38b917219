#include "storage/journal/segment_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "storage/journal/format.h"

namespace reprise::storage::journal {
namespace {

using ::rocksdb::FileOptions;
using ::rocksdb::IOOptions;
using ::rocksdb::Slice;

// A batch of 1000 jobs of 1 KiB is reused, one of 16 MiB is given back.
constexpr std::uint64_t kBufferKept = 2U << 20;
constexpr std::uint64_t kWriteBackBytes = 1U << 20;
constexpr std::array<char, kBlockBytes> kBlockOfZeros{};

constexpr std::uint64_t block_begin(std::uint64_t offset) {
  return offset / kBlockBytes * kBlockBytes;
}
constexpr std::uint64_t block_end(std::uint64_t offset) { return next_block(offset); }

Error system_error(const std::string& path) {
  const bool no_room = errno == ENOSPC || errno == EDQUOT;
  return Error{no_room ? Errc::disk_full : Errc::io,
               path + ": " + std::generic_category().message(errno)};
}

Error ends_before(const std::string& path, std::uint64_t end) {
  return Error{Errc::corrupt, path + ": ends before byte " + std::to_string(end)};
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }
  bool is_open() const { return number_ >= 0; }

 private:
  const int number_;
};

// Memory that begins at a block's boundary and grows to what is asked for.
class BlockBuffer {
 public:
  char* make_room(std::uint64_t bytes) {
    if (bytes <= bytes_) return memory_.get();
    bytes_ = block_end(bytes);
    memory_.reset(static_cast<char*>(std::aligned_alloc(kBlockBytes, bytes_)));
    if (!memory_) throw std::bad_alloc();
    return memory_.get();
  }
  void shrink() {
    if (bytes_ <= kBufferKept) return;
    memory_.reset();
    bytes_ = 0;
  }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> memory_;
  std::uint64_t bytes_ = 0;
};

// Buffers for as many writes as there are side by side.
class BlockBuffers {
 public:
  BlockBuffer take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return {};
    BlockBuffer buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  void give_back(BlockBuffer buffer) {
    buffer.shrink();
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(buffer));
  }

 private:
  std::mutex mutex_;
  std::vector<BlockBuffer> free_;
};

// The last block of what was written durably, since the next write may have to begin within it: the
// page cache does not have it.
class LastBlock {
 public:
  void set(std::uint64_t begin, const char* bytes) {
    const std::lock_guard lock(mutex_);
    if (!bytes_.empty() && begin < begin_) return;  // by a write that began before, and took longer
    begin_ = begin;
    bytes_.assign(bytes, kBlockBytes);
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    bytes_.clear();
  }
  // False: this is another block.
  bool copy_front(std::uint64_t begin, std::size_t bytes, char* to) const {
    const std::lock_guard lock(mutex_);
    if (bytes_.empty() || begin != begin_) return false;
    std::memcpy(to, bytes_.data(), bytes);
    return true;
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t begin_ = 0;
  std::string bytes_;  // empty: not known
};

class DiskFile final : public SegmentFile {
 public:
  // `direct` may be closed: the file system has no way past the page cache.
  DiskFile(std::string path, int buffered, int direct, std::uint64_t file_bytes)
      : path_(std::move(path)), buffered_(buffered), direct_(direct), file_bytes_(file_bytes) {}

  Status write(std::uint64_t offset, std::string_view first, std::string_view second) override {
    last_block_.forget();
    // Up to the end of its block: else the kernel would have to read what stands there, unless it
    // has it in memory.
    const std::uint64_t end = offset + first.size() + second.size();
    const std::uint64_t zeros = std::min(block_end(end), std::max(end, file_bytes_)) - end;
    std::array<iovec, 3> parts = {iovec{const_cast<char*>(first.data()), first.size()},
                                  iovec{const_cast<char*>(second.data()), second.size()},
                                  iovec{const_cast<char*>(kBlockOfZeros.data()), zeros}};
    std::size_t at = 0;
    while (at < parts.size()) {
      const ssize_t written =
          ::pwritev(buffered_.get(), &parts[at], static_cast<int>(parts.size() - at),
                    static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return system_error(path_);
      offset += static_cast<std::uint64_t>(written);
      auto left = static_cast<std::size_t>(written);
      while (at < parts.size() && left >= parts[at].iov_len) left -= parts[at++].iov_len;
      if (at == parts.size()) break;
      parts[at].iov_base = static_cast<char*>(parts[at].iov_base) + left;
      parts[at].iov_len -= left;
    }
    write_back(end);
    return ok();
  }

  Status write_durably(std::uint64_t offset, std::string_view first,
                       std::string_view second) override {
    if (!direct_.is_open()) {
      const std::lock_guard lock(cached_writing_);
      REPRISE_TRY(write(offset, first, second));
      return sync();
    }
    // Whole blocks: what stands before the bytes in their first block is written again as it is,
    // behind them come zeros.
    const std::uint64_t begin = block_begin(offset);
    const std::uint64_t end = offset + first.size() + second.size();
    BlockBuffer buffer = buffers_.take();
    char* memory = buffer.make_room(block_end(end) - begin);
    REPRISE_TRY(read_into(begin, offset, memory));
    char* at = memory + (offset - begin);
    std::memcpy(at, first.data(), first.size());
    std::memcpy(at + first.size(), second.data(), second.size());
    std::memset(memory + (end - begin), 0, block_end(end) - end);
    REPRISE_TRY(write_blocks(begin, memory, block_end(end) - begin));
    const std::uint64_t last = block_end(end) - kBlockBytes;
    last_block_.set(last, memory + (last - begin));
    buffers_.give_back(std::move(buffer));
    return ok();
  }

  Status sync() override {
    return TEMP_FAILURE_RETRY(::fdatasync(buffered_.get())) == 0 ? ok()
                                                                 : Status(system_error(path_));
  }

  Status read(std::uint64_t offset, std::uint64_t length, char* into) const override {
    while (length > 0) {
      const ssize_t got = ::pread(buffered_.get(), into, length, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return system_error(path_);
      if (got == 0) return ends_before(path_, offset + length);
      offset += static_cast<std::uint64_t>(got);
      into += got;
      length -= static_cast<std::uint64_t>(got);
    }
    return ok();
  }

 private:
  // Lets the kernel begin with what is there by now, so that a sync has little left to do. Whether
  // it goes well is the sync's to say.
  void write_back(std::uint64_t end) {
    end = block_begin(end);
    if (end < written_back_) written_back_ = 0;  // a file is written from its front again
    if (end - written_back_ < kWriteBackBytes) return;
    (void)::sync_file_range(buffered_.get(), static_cast<off_t>(written_back_),
                            static_cast<off_t>(end - written_back_), SYNC_FILE_RANGE_WRITE);
    written_back_ = end;
  }

  // What stands in [begin, end) of one block. Mostly it is what the last write left in memory.
  Status read_into(std::uint64_t begin, std::uint64_t end, char* memory) const {
    if (begin == end) return ok();
    if (last_block_.copy_front(begin, end - begin, memory)) return ok();
    return read(begin, end - begin, memory);
  }

  Status write_blocks(std::uint64_t offset, char* memory, std::uint64_t length) const {
    while (length > 0) {
      const iovec part{.iov_base = memory, .iov_len = length};
      const ssize_t written =
          ::pwritev2(direct_.get(), &part, 1, static_cast<off_t>(offset), RWF_DSYNC);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return system_error(path_);
      if (written == 0 || static_cast<std::uint64_t>(written) % kBlockBytes != 0) {
        return Error{Errc::io, path_ + ": a write was cut short"};
      }
      offset += static_cast<std::uint64_t>(written);
      memory += written;
      length -= static_cast<std::uint64_t>(written);
    }
    return ok();
  }

  const std::string path_;
  const Descriptor buffered_;
  const Descriptor direct_;
  const std::uint64_t file_bytes_;  // when it was opened
  BlockBuffers buffers_;
  LastBlock last_block_;
  std::mutex cached_writing_;       // durable writes, where there is no way past the page cache
  std::uint64_t written_back_ = 0;  // up to where the kernel was told to write
};

class TestFile final : public SegmentFile {
 public:
  TestFile(std::string path, std::unique_ptr<::rocksdb::FSRandomRWFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}

  Status write(std::uint64_t offset, std::string_view first, std::string_view second) override {
    std::string bytes(first);
    bytes.append(second);
    return checked(file_->Write(offset, bytes, IOOptions(), nullptr));
  }
  Status write_durably(std::uint64_t offset, std::string_view first,
                       std::string_view second) override {
    const std::lock_guard lock(writing_durably_);
    REPRISE_TRY(write(offset, first, second));
    return sync();
  }
  Status sync() override { return checked(file_->Sync(IOOptions(), nullptr)); }
  Status read(std::uint64_t offset, std::uint64_t length, char* into) const override {
    Slice got;
    REPRISE_TRY(checked(file_->Read(offset, length, IOOptions(), &got, into, nullptr)));
    if (got.size() != length) return ends_before(path_, offset + length);
    if (got.data() != into) std::memcpy(into, got.data(), got.size());
    return ok();
  }

 private:
  Status checked(const ::rocksdb::IOStatus& status) const {
    if (status.ok()) return ok();
    return file_error(path_, status);
  }

  const std::string path_;
  const std::unique_ptr<::rocksdb::FSRandomRWFile> file_;
  std::mutex writing_durably_;
};

class ReadOnlyFile final : public SegmentFile {
 public:
  ReadOnlyFile(std::string path, std::unique_ptr<::rocksdb::FSRandomAccessFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}

  Status write(std::uint64_t, std::string_view, std::string_view) override { return refusal(); }
  Status write_durably(std::uint64_t, std::string_view, std::string_view) override {
    return refusal();
  }
  Status sync() override { return refusal(); }
  Status read(std::uint64_t offset, std::uint64_t length, char* into) const override {
    Slice got;
    const auto status = file_->Read(offset, length, IOOptions(), &got, into, nullptr);
    if (!status.ok()) return file_error(path_, status);
    if (got.size() != length) return ends_before(path_, offset + length);
    if (got.data() != into) std::memcpy(into, got.data(), got.size());
    return ok();
  }

 private:
  Status refusal() const { return Error{Errc::io, path_ + ": is open for reading only"}; }

  const std::string path_;
  const std::unique_ptr<::rocksdb::FSRandomAccessFile> file_;
};

int create_file(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  constexpr mode_t kMode = 0644;
  const int direct = ::open(path.c_str(), kFlags | O_DIRECT, kMode);
  return direct >= 0 || errno != EINVAL ? direct : ::open(path.c_str(), kFlags, kMode);
}

Status fill_with_zeros(int file, const std::string& path, std::uint64_t bytes) {
  constexpr std::uint64_t kPieceBytes = 1U << 20;
  BlockBuffer buffer;
  const std::uint64_t piece = std::min(kPieceBytes, bytes);
  const char* const zeros = static_cast<char*>(std::memset(buffer.make_room(piece), 0, piece));
  for (std::uint64_t at = 0; at < bytes;) {
    const ssize_t written =
        ::pwrite(file, zeros, std::min(piece, bytes - at), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error(path);
    if (written == 0 || static_cast<std::uint64_t>(written) % kBlockBytes != 0) {
      return Error{Errc::io, path + ": a write was cut short"};
    }
    at += static_cast<std::uint64_t>(written);
  }
  return TEMP_FAILURE_RETRY(::fdatasync(file)) == 0 ? ok() : Status(system_error(path));
}

}  // namespace

Status make_zeroed_file(const std::string& path, std::uint64_t bytes) {
  const Descriptor file(create_file(path));
  if (!file.is_open()) return system_error(path);
  return fill_with_zeros(file.get(), path, bytes);
}

Status make_reserved_file(const std::string& path, std::uint64_t bytes) {
  const Descriptor file(create_file(path));
  if (!file.is_open()) return system_error(path);
  if (TEMP_FAILURE_RETRY(::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes))) != 0) {
    if (errno == EOPNOTSUPP) return fill_with_zeros(file.get(), path, bytes);
    return system_error(path);
  }
  return TEMP_FAILURE_RETRY(::fdatasync(file.get())) == 0 ? ok() : Status(system_error(path));
}

Result<std::unique_ptr<SegmentFile>> open_on_disk(const std::string& path) {
  const int buffered = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (buffered < 0) return system_error(path);
  const int direct = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT);
  struct stat known {};
  const std::uint64_t bytes = ::fstat(buffered, &known) == 0 ? known.st_size : 0;
  return std::unique_ptr<SegmentFile>(std::make_unique<DiskFile>(path, buffered, direct, bytes));
}

Result<std::unique_ptr<SegmentFile>> open_in(::rocksdb::FileSystem& files,
                                             const std::string& path) {
  std::unique_ptr<::rocksdb::FSRandomRWFile> file;
  const auto status = files.NewRandomRWFile(path, FileOptions(), &file, nullptr);
  if (!status.ok()) return file_error(path, status);
  return std::unique_ptr<SegmentFile>(std::make_unique<TestFile>(path, std::move(file)));
}

Result<std::unique_ptr<SegmentFile>> open_to_read(::rocksdb::FileSystem& files,
                                                  const std::string& path) {
  std::unique_ptr<::rocksdb::FSRandomAccessFile> file;
  const auto status = files.NewRandomAccessFile(path, FileOptions(), &file, nullptr);
  if (!status.ok()) return file_error(path, status);
  return std::unique_ptr<SegmentFile>(std::make_unique<ReadOnlyFile>(path, std::move(file)));
}

Error file_error(const std::string& path, const ::rocksdb::Status& status) {
  return Error{status.IsNoSpace() ? Errc::disk_full : Errc::io, path + ": " + status.ToString()};
}

}  // namespace reprise::storage::journal
