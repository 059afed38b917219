#include "storage/rocksdb/reclaim.h"

#include <rocksdb/convenience.h>

#include <memory>

#include "storage/rocksdb/status.h"
#include "storage/rocksdb/tuning.h"

namespace reprise::storage {
namespace {

using ::rocksdb::Slice;

struct Range {
  Slice begin;
  Slice end;  // empty: the keyspace's end

  const Slice* end_or_null() const { return end.empty() ? nullptr : &end; }
};

// Whole files may be thrown away only when nobody can see anything in them. DeleteFilesInRange does
// not ask: it would take live keys with it, and pull files from under an older snapshot.
bool nobody_sees(Database& database, ::rocksdb::ColumnFamilyHandle* family, const Range& range) {
  std::uint64_t snapshots = 0;
  if (!database->GetIntProperty(::rocksdb::DB::Properties::kNumSnapshots, &snapshots)) return false;
  if (snapshots != 0) return false;
  ::rocksdb::ReadOptions options;
  options.iterate_upper_bound = &range.end;
  const std::unique_ptr<::rocksdb::Iterator> first(database->NewIterator(options, family));
  first->Seek(range.begin);
  return first->status().ok() && !first->Valid();
}

// Spares the compaction that follows from rewriting what is all gone.
::rocksdb::Status drop_whole_files(Database& database, ::rocksdb::ColumnFamilyHandle* family,
                                   const Range& range) {
  if (range.end.empty() || !nobody_sees(database, family, range)) return {};
  // Among the files may be the one with the tombstones that hide keys in a file that stays, because
  // it reaches beyond the range. A new tombstone, in memory where no file deletion takes it, keeps
  // them hidden.
  const auto status = database->DeleteRange(write_without_log(), family, range.begin, range.end);
  if (!status.ok()) return status;
  return ::rocksdb::DeleteFilesInRange(database.get(), family, &range.begin, &range.end, false);
}

::rocksdb::Status compact(Database& database, ::rocksdb::ColumnFamilyHandle* family,
                          const Range& range, std::atomic<bool>& interrupted) {
  ::rocksdb::CompactRangeOptions options;
  options.canceled = &interrupted;
  options.exclusive_manual_compaction = false;
  // The lowest level too: that is where the data is.
  options.bottommost_level_compaction = ::rocksdb::BottommostLevelCompaction::kForceOptimized;
  return database->CompactRange(options, family, &range.begin, range.end_or_null());
}

// RocksDB deletes what it no longer needs when it gets to it; turning deletions off and on is its
// way of asking for it now.
::rocksdb::Status delete_obsolete_files(Database& database) {
  const auto status = database->DisableFileDeletions();
  return status.ok() ? database->EnableFileDeletions(false) : status;
}

}  // namespace

Status reclaim_range(Database& database, Keyspace keyspace, std::string_view begin,
                     std::string_view end, std::atomic<bool>& interrupted) {
  if (!end.empty() && begin >= end) return ok();
  const Range range{.begin = {begin.data(), begin.size()}, .end = {end.data(), end.size()}};
  auto* family = database.family(keyspace);
  auto status = drop_whole_files(database, family, range);
  if (status.ok()) status = database->Flush(::rocksdb::FlushOptions(), family);
  if (status.ok()) status = compact(database, family, range, interrupted);
  if (status.ok()) status = delete_obsolete_files(database);
  if (status.ok()) database.finish_deletions(interrupted);
  if (status.IsManualCompactionPaused()) return ok();  // interrupted
  return to_status(status, database.options().directory);
}

}  // namespace reprise::storage
