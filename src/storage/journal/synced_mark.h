// SyncedMark: a small file beside the segments that names the last batch known to be synced. It is
// not synced itself, so a power cut may take it back; nothing depends on it but this: without it,
// damage of the very last batch would look like a write that was cut short.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "storage/journal/format.h"
#include "storage/journal/segment_file.h"

namespace reprise::storage::journal {

class SyncedMark {
 public:
  static Result<std::unique_ptr<SyncedMark>> open(::rocksdb::FileSystem& files,
                                                  const std::string& directory,
                                                  const DirectoryId& id, bool on_real_disk);
  Status set(std::uint64_t batch);

  // 0 when there is none, or none that can be trusted.
  static std::uint64_t read(::rocksdb::FileSystem& files, const std::string& directory,
                            const DirectoryId& id);

 private:
  SyncedMark(const DirectoryId& id, std::unique_ptr<SegmentFile> file)
      : id_(id), file_(std::move(file)) {}

  const DirectoryId id_;
  const std::unique_ptr<SegmentFile> file_;
};

}  // namespace reprise::storage::journal
