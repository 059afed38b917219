#include "storage/rocksdb/tuning.h"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>

#include <algorithm>

#include "storage/rocksdb/data_directory.h"
#include "storage/rocksdb/diary.h"

namespace reprise::storage {
namespace {

constexpr std::uint64_t kKiB = 1ULL << 10;
constexpr std::uint64_t kMiB = 1ULL << 20;

// What a start after kill -9 must replay, at most (about: RocksDB checks it at its next write).
constexpr std::uint64_t kWalBytesMax = 64 * kMiB;
// New files reach from the oldest job to the newest (tombstones at one end, pushes at the other),
// so each compaction out of level 0 rewrites all of the level below: keep that one small. Small
// files make the compactions further down touch less. Measured with a backlog of a million jobs:
// a quarter of the bytes that are rewritten with 256 MiB and 32 MiB.
constexpr std::uint64_t kBaseLevelBytes = 64 * kMiB;
constexpr std::uint64_t kTableFileBytes = 8 * kMiB;
constexpr int kOpenFilesMax = 256;  // the rest of the process needs descriptors for sockets
constexpr double kBloomBitsPerKey = 10;

void limit_info_log(::rocksdb::DBOptions& db, const RocksDbOptions& options) {
  const bool on_real_disk = options.env == nullptr;
  db.info_log =
      on_real_disk ? make_diary(options.directory + "/" + kDatabaseDirectoryName) : make_no_diary();
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
}

void never_hide_trouble(::rocksdb::DBOptions& db) {
  // The torn tail that a power cut may leave has been cut off before RocksDB looks (log_tail.h).
  // What is left was acknowledged: any damage in it stops the start.
  db.wal_recovery_mode = ::rocksdb::WALRecoveryMode::kAbsoluteConsistency;
  db.paranoid_checks = true;
  db.max_bgerror_resume_count = 0;  // an I/O error is final until a restart
}

::rocksdb::CompressionType best_compression() {
  const auto supported = ::rocksdb::GetSupportedCompressions();
  const bool has_lz4 = std::ranges::find(supported, ::rocksdb::kLZ4Compression) != supported.end();
  return has_lz4 ? ::rocksdb::kLZ4Compression : ::rocksdb::kNoCompression;
}

// Payloads are here: large blocks compress better and make the restart's scan cheaper.
bool holds_payloads(Keyspace keyspace) {
  return keyspace == Keyspace::jobs || keyspace == Keyspace::dead;
}

bool is_small(Keyspace keyspace) {
  return keyspace == Keyspace::meta || keyspace == Keyspace::queues;
}

std::shared_ptr<::rocksdb::TableFactory> table_factory(Keyspace keyspace,
                                                       std::shared_ptr<::rocksdb::Cache> cache) {
  ::rocksdb::BlockBasedTableOptions table;
  table.block_cache = std::move(cache);
  table.block_size = holds_payloads(keyspace) ? 16 * kKiB : 4 * kKiB;
  if (!is_small(keyspace)) {
    table.filter_policy.reset(::rocksdb::NewBloomFilterPolicy(kBloomBitsPerKey));
  }
  // Indexes and filters count against the cache too, else they would grow with the backlog.
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  // The restart reads everything in order; on a slow disk 256 KiB at a time would not do.
  table.max_auto_readahead_size = 1 * kMiB;
  return std::shared_ptr<::rocksdb::TableFactory>(::rocksdb::NewBlockBasedTableFactory(table));
}

// A queue is a sliding window over its keys: what is behind it is tombstones, and every scan from
// the queue's front would walk through them. A file with many of them close together is compacted
// at once, which with dynamic levels drops them in one step.
void drop_tombstones_early(::rocksdb::ColumnFamilyOptions& family) {
  constexpr std::size_t kWindow = 4096;
  constexpr std::size_t kTombstonesInWindow = kWindow / 2;
  constexpr double kNoRatio = 0;
  family.table_properties_collector_factories.push_back(
      ::rocksdb::NewCompactOnDeletionCollectorFactory(kWindow, kTombstonesInWindow, kNoRatio));
  family.level_compaction_dynamic_level_bytes = true;
}

}  // namespace

::rocksdb::DBOptions database_options(const RocksDbOptions& options) {
  ::rocksdb::DBOptions db;
  db.env = options.env == nullptr ? ::rocksdb::Env::Default() : options.env;
  db.create_missing_column_families = true;
  never_hide_trouble(db);
  limit_info_log(db, options);
  db.max_total_wal_size = kWalBytesMax;
  db.db_write_buffer_size = 2 * options.write_buffer_bytes;
  // A start after a crash goes on with the old journal files instead of writing them out first.
  db.avoid_flush_during_recovery = true;
  db.max_open_files = kOpenFilesMax;
  db.max_background_jobs = 2;
  db.bytes_per_sync = 1 * kMiB;  // table files reach the disk steadily, not all at their end
  db.max_manifest_file_size = 4 * kMiB;
  db.avoid_unnecessary_blocking_io = true;
  // There is one writer: nothing to share a memtable or a queue with.
  db.allow_concurrent_memtable_write = false;
  db.enable_write_thread_adaptive_yield = false;
  return db;
}

::rocksdb::ColumnFamilyOptions keyspace_options(const RocksDbOptions& options, Keyspace keyspace,
                                                std::shared_ptr<::rocksdb::Cache> cache) {
  ::rocksdb::ColumnFamilyOptions family;
  family.write_buffer_size = options.write_buffer_bytes;
  family.max_write_buffer_number = 3;
  family.max_bytes_for_level_base = kBaseLevelBytes;
  family.target_file_size_base = kTableFileBytes;
  family.compression = best_compression();
  family.table_factory = table_factory(keyspace, std::move(cache));
  // Reads of these are of what is known to be there: the last level needs no filter.
  family.optimize_filters_for_hits = holds_payloads(keyspace);
  drop_tombstones_early(family);
  return family;
}

std::shared_ptr<::rocksdb::Cache> make_block_cache(const RocksDbOptions& options) {
  constexpr int kShardBits = 2;
  return ::rocksdb::NewLRUCache(options.block_cache_bytes, kShardBits);
}

}  // namespace reprise::storage
