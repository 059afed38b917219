#include "storage/rocksdb/tuning.h"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>

#include <algorithm>
#include <utility>

#include "storage/rocksdb/diary.h"
#include "storage/rocksdb/status.h"

namespace reprise::storage {
namespace {

constexpr std::uint64_t kKiB = 1ULL << 10;
constexpr std::uint64_t kMiB = 1ULL << 20;

// Small files make a compaction that follows tombstones touch less.
constexpr std::uint64_t kBaseLevelBytes = 64 * kMiB;
constexpr std::uint64_t kTableFileBytes = 8 * kMiB;
// Of a memtable: only erased ranges and RocksDB's own go through one.
constexpr std::uint64_t kWriteBufferBytes = 1 * kMiB;
constexpr int kOpenFilesMax = 256;  // the rest of the process needs descriptors for sockets
// Past the page cache (past_page_cache_reads.h). Commits on the same disk wait behind larger ones.
constexpr std::size_t kCompactionReadBytes = 256 * kKiB;
constexpr double kBloomBitsPerKey = 10;

void limit_info_log(::rocksdb::DBOptions& db, const DatabaseOptions& options) {
  const bool on_real_disk = options.env == nullptr;
  db.info_log = on_real_disk ? make_diary(options.directory) : make_no_diary();
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
}

// A full disk is no failure: checkpoints wait for room.
class FailureListener final : public ::rocksdb::EventListener {
 public:
  FailureListener(std::string directory, std::function<void(const Error&)> on_failure)
      : directory_(std::move(directory)), on_failure_(std::move(on_failure)) {}

  void OnBackgroundError(::rocksdb::BackgroundErrorReason, ::rocksdb::Status* status) override {
    if (status->IsIOError() && !status->IsNoSpace()) on_failure_(to_error(*status, directory_));
  }

 private:
  const std::string directory_;
  const std::function<void(const Error&)> on_failure_;
};

void never_hide_trouble(::rocksdb::DBOptions& db, const DatabaseOptions& options) {
  db.paranoid_checks = true;
  if (options.on_failure) {
    db.listeners.push_back(
        std::make_shared<FailureListener>(options.directory, options.on_failure));
  }
  db.max_bgerror_resume_count = 0;  // a checkpoint that meets an error decides what to do
}

::rocksdb::CompressionType best_compression() {
  const auto supported = ::rocksdb::GetSupportedCompressions();
  const bool has_lz4 = std::ranges::find(supported, ::rocksdb::kLZ4Compression) != supported.end();
  return has_lz4 ? ::rocksdb::kLZ4Compression : ::rocksdb::kNoCompression;
}

// Payloads are here: large blocks compress better and make the restart's scan cheaper.
bool holds_payloads(Keyspace keyspace) {
  return keyspace == Keyspace::jobs || keyspace == Keyspace::dead ||
         keyspace == Keyspace::completed;
}

bool is_small(Keyspace keyspace) {
  return keyspace == Keyspace::meta || keyspace == Keyspace::queues;
}

std::shared_ptr<::rocksdb::TableFactory> table_factory(Keyspace keyspace,
                                                       std::shared_ptr<::rocksdb::Cache> cache) {
  ::rocksdb::BlockBasedTableOptions table;
  table.block_cache = std::move(cache);
  // Debian builds RocksDB for processors without a CRC instruction; this one needs none.
  table.checksum = ::rocksdb::kXXH3;
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

::rocksdb::DBOptions database_options(const DatabaseOptions& options) {
  ::rocksdb::DBOptions db;
  db.env = options.env == nullptr ? ::rocksdb::Env::Default() : options.env;
  db.create_missing_column_families = true;
  never_hide_trouble(db, options);
  limit_info_log(db, options);
  db.avoid_flush_during_shutdown = true;  // what is not in the base yet is in the journal
  db.max_open_files = kOpenFilesMax;
  db.max_background_jobs = 2;
  db.bytes_per_sync = 1 * kMiB;  // table files reach the disk steadily, not all at their end
  db.compaction_readahead_size = kCompactionReadBytes;
  db.max_manifest_file_size = 4 * kMiB;
  db.avoid_unnecessary_blocking_io = true;
  return db;
}

::rocksdb::ColumnFamilyOptions keyspace_options(const DatabaseOptions& options, Keyspace keyspace,
                                                std::shared_ptr<::rocksdb::Cache> cache) {
  ::rocksdb::ColumnFamilyOptions family;
  family.write_buffer_size = kWriteBufferBytes;
  family.disable_auto_compactions = !options.compacts;
  family.max_bytes_for_level_base = kBaseLevelBytes;
  family.target_file_size_base = kTableFileBytes;
  family.compression = best_compression();
  family.table_factory = table_factory(keyspace, std::move(cache));
  // Reads of these are of what is known to be there: the last level needs no filter.
  family.optimize_filters_for_hits = holds_payloads(keyspace);
  drop_tombstones_early(family);
  return family;
}

::rocksdb::ColumnFamilyOptions index_options(const DatabaseOptions& options,
                                             std::shared_ptr<::rocksdb::Cache> cache) {
  return keyspace_options(options, Keyspace::meta, std::move(cache));
}

::rocksdb::WriteOptions write_without_log() {
  ::rocksdb::WriteOptions options;
  options.disableWAL = true;
  return options;
}

std::shared_ptr<::rocksdb::Cache> make_block_cache(const DatabaseOptions& options) {
  constexpr int kShardBits = 2;
  return ::rocksdb::NewLRUCache(options.block_cache_bytes, kShardBits);
}

}  // namespace reprise::storage
