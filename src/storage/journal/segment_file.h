// SegmentFile: how a segment reaches its disk.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace reprise::storage::journal {

// Threads: write_durably() and read() from any, also side by side, as long as no two writes share a
// block; write() and sync() from one at a time.
class SegmentFile {
 public:
  virtual ~SegmentFile() = default;
  // Writes both parts, one behind the other, in one call. What stands behind them, up to the end of
  // their last block of 4096 bytes or of the file, may become zeros: files are written from front
  // to back.
  virtual Status write(std::uint64_t offset, std::string_view first, std::string_view second) = 0;
  // The same, and it is durable on return; nothing is said about what was written before.
  virtual Status write_durably(std::uint64_t offset, std::string_view first,
                               std::string_view second) = 0;
  // All that was written is durable on return.
  virtual Status sync() = 0;
  // Errc::corrupt when the file ends before. Any thread.
  virtual Status read(std::uint64_t offset, std::uint64_t length, char* into) const = 0;
  Status read(std::uint64_t offset, std::uint64_t length, std::string& into) const {
    into.resize(length);
    return read(offset, length, into.data());
  }
};

// On a real disk. Durable writes go past the page cache, where the file system can do that: about a
// third faster than fdatasync on the disks that we measured.
Result<std::unique_ptr<SegmentFile>> open_on_disk(const std::string& path);

// Makes a file of `bytes` zeros on a real disk; durable on return, but for its name. Past the page
// cache, where the file system can do that: a copy of zeros there would cost as much as the batches
// that are written over them. `bytes` is a multiple of 4096. Errc::disk_full: there is no room for
// it.
Status make_zeroed_file(const std::string& path, std::uint64_t bytes);

// The same without writing them: the space is set aside, where the file system can do that, and
// reads as zeros. Made at once; but each first durable write of a place then has to tell the file
// system, too, that something stands there now.
Status make_reserved_file(const std::string& path, std::uint64_t bytes);

// On a file system of a test's own.
Result<std::unique_ptr<SegmentFile>> open_in(::rocksdb::FileSystem& files, const std::string& path);

// For a file that must not be touched: writes and sync() fail.
Result<std::unique_ptr<SegmentFile>> open_to_read(::rocksdb::FileSystem& files,
                                                  const std::string& path);

// An error of the file system, with the file it is about. Errc::disk_full: there is no room.
Error file_error(const std::string& path, const ::rocksdb::Status& status);

}  // namespace reprise::storage::journal
