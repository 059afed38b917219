// Segment: one file of the journal.
// Threads: as its file says; read() of bytes that were written before.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/journal/segment_file.h"

namespace reprise::storage::journal {

class Segment {
 public:
  // The file must be there.
  static Result<std::shared_ptr<Segment>> open(::rocksdb::FileSystem& files, bool on_real_disk,
                                               std::string path, std::uint64_t number);

  // For a file that must not be touched: writes and sync() fail.
  static Result<std::shared_ptr<Segment>> open_to_read(::rocksdb::FileSystem& files,
                                                       std::string path, std::uint64_t number);

  SegmentFile& file() { return *file_; }
  Status read(std::uint64_t offset, std::uint64_t length, std::string& into) const {
    return file_->read(offset, length, into);
  }
  Status read(std::uint64_t offset, std::uint64_t length, char* into) const {
    return file_->read(offset, length, into);
  }

  std::uint64_t number() const { return number_; }
  std::uint64_t capacity() const { return capacity_; }
  const std::string& path() const { return path_; }

 private:
  Segment(std::string path, std::uint64_t number, std::uint64_t capacity,
          std::unique_ptr<SegmentFile> file)
      : path_(std::move(path)), number_(number), capacity_(capacity), file_(std::move(file)) {}

  const std::string path_;
  const std::uint64_t number_;
  const std::uint64_t capacity_;  // bytes of the file
  const std::unique_ptr<SegmentFile> file_;
};

using SegmentPtr = std::shared_ptr<Segment>;

// "00000000000000000042.seg", and back.
inline constexpr std::string_view kSegmentExtension = ".seg";
std::string segment_file_name(std::uint64_t number);
std::optional<std::uint64_t> parse_segment_file_name(std::string_view name);

}  // namespace reprise::storage::journal
