// Recovery: reads the journal at start, and tells what a power cut leaves behind from damage.
//
// A write that was cut short, or never reached the disk, is left by itself: nobody was promised it.
// What was promised is known: every frame names the last batch that was synced when it was written,
// a mark beside the segments the last one of all, and the base the last batch that it holds. If a
// batch up to there cannot be read, that is damage, and the start is refused with the file and the
// place.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/journal/format.h"
#include "storage/journal/journal.h"

namespace reprise::storage::journal {

struct ReplayedBatch {
  std::uint64_t number{};
  SegmentPtr segment;
  std::uint64_t body_offset{};
  std::string_view body;  // valid during the call only
  std::uint32_t mutations{};
};

struct RecoveryOptions {
  std::shared_ptr<::rocksdb::FileSystem> files;
  bool on_real_disk = true;  // `files` is the real one
  std::string directory;
  DirectoryId id{};
  std::uint64_t covered_batch = 0;  // the base holds everything up to this one
  // Receives the batches after it, in order.
  std::function<Status(const ReplayedBatch&)> replay;
  // Hears of an unfinished write that was left out. May be empty.
  std::function<void(std::string_view)> notice;
};

Result<Contents> recover(const RecoveryOptions& options);

// The id of the directory that the journal is of, and whether it holds a batch or ever held one;
// nullopt: no segment was ever begun. For a directory that has no base.
struct Identity {
  DirectoryId id{};
  bool holds_batches = false;
};
Result<std::optional<Identity>> identify(::rocksdb::FileSystem& files, bool on_real_disk,
                                         const std::string& directory);

}  // namespace reprise::storage::journal
