#include "plain_rocksdb.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>
#include <rocksdb/write_batch.h>

#include "load_error.h"
#include "storage/keyspace.h"

namespace reprise::bench {
namespace {

using storage::Keyspace;

constexpr std::uint64_t kKiB = 1ULL << 10;
constexpr std::uint64_t kMiB = 1ULL << 20;
constexpr std::uint64_t kWriteBufferBytes = 32 * kMiB;

void require_ok(const ::rocksdb::Status& status) {
  if (!status.ok()) throw LoadError("plain RocksDB: " + status.ToString());
}

::rocksdb::Slice slice(std::string_view text) { return {text.data(), text.size()}; }

::rocksdb::DBOptions database_options(Writers writers) {
  ::rocksdb::DBOptions db;
  db.create_if_missing = true;
  db.create_missing_column_families = true;
  db.max_total_wal_size = 64 * kMiB;  // what a restart must replay
  db.db_write_buffer_size = 2 * kWriteBufferBytes;
  db.max_background_jobs = 2;
  db.bytes_per_sync = 1 * kMiB;
  db.avoid_unnecessary_blocking_io = true;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  // What suits each best. One writer has nothing to share a memtable or a queue with.
  db.enable_pipelined_write = writers == Writers::two;
  db.allow_concurrent_memtable_write = false;
  db.enable_write_thread_adaptive_yield = false;
  return db;
}

::rocksdb::ColumnFamilyOptions family_options(Keyspace keyspace,
                                              const std::shared_ptr<::rocksdb::Cache>& cache) {
  const bool payloads = keyspace == Keyspace::jobs || keyspace == Keyspace::dead;
  ::rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.block_size = payloads ? 16 * kKiB : 4 * kKiB;
  table.filter_policy.reset(::rocksdb::NewBloomFilterPolicy(10));
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;

  ::rocksdb::ColumnFamilyOptions family;
  family.write_buffer_size = kWriteBufferBytes;
  family.max_write_buffer_number = 3;
  family.max_bytes_for_level_base = 64 * kMiB;
  family.target_file_size_base = 8 * kMiB;
  family.level_compaction_dynamic_level_bytes = true;
  family.compression = ::rocksdb::kLZ4Compression;
  family.optimize_filters_for_hits = payloads;
  family.table_factory.reset(::rocksdb::NewBlockBasedTableFactory(table));
  // Without it claims would wade through the tombstones behind a queue's window.
  family.table_properties_collector_factories.push_back(
      ::rocksdb::NewCompactOnDeletionCollectorFactory(4096, 2048));
  return family;
}

// Puts a batch together for RocksDB.
class Translation final : private storage::Batch::Visitor {
 public:
  using Families = std::vector<::rocksdb::ColumnFamilyHandle*>;

  ::rocksdb::WriteBatch& of(const storage::Batch& batch, const Families& families) {
    families_ = &families;
    writes_.Clear();
    batch.visit(*this);
    return writes_;
  }

 private:
  void put(Keyspace keyspace, std::string_view key, std::string_view value) override {
    require_ok(writes_.Put(family(keyspace), slice(key), slice(value)));
  }
  void erase(Keyspace keyspace, std::string_view key) override {
    require_ok(writes_.Delete(family(keyspace), slice(key)));
  }
  void erase_range(Keyspace keyspace, std::string_view begin, std::string_view end) override {
    require_ok(writes_.DeleteRange(family(keyspace), slice(begin), slice(end)));
  }
  ::rocksdb::ColumnFamilyHandle* family(Keyspace keyspace) const {
    return (*families_)[static_cast<std::size_t>(keyspace)];
  }

  const Families* families_ = nullptr;
  ::rocksdb::WriteBatch writes_;  // keeps its memory from commit to commit
};

class PlainRocksDb final : public OneStepCommitter {
 public:
  PlainRocksDb(const std::string& folder, Writers writers) : writers_(writers) {
    const auto cache = ::rocksdb::NewLRUCache(32 * kMiB);
    std::vector<::rocksdb::ColumnFamilyDescriptor> wanted;
    for (const Keyspace keyspace : storage::kAllKeyspaces) {
      wanted.emplace_back(std::string(storage::keyspace_name(keyspace)),
                          family_options(keyspace, cache));
    }
    // RocksDB insists on a family of this name; last, so that the others stand at their number.
    wanted.emplace_back(::rocksdb::kDefaultColumnFamilyName, ::rocksdb::ColumnFamilyOptions());
    ::rocksdb::DB* db = nullptr;
    require_ok(::rocksdb::DB::Open(database_options(writers), folder, wanted, &families_, &db));
    db_.reset(db);
  }
  ~PlainRocksDb() override {
    for (auto* family : families_) db_->DestroyColumnFamilyHandle(family);
  }
  PlainRocksDb(const PlainRocksDb&) = delete;
  PlainRocksDb& operator=(const PlainRocksDb&) = delete;

  std::size_t at_once() const override { return writers_ == Writers::two ? 2 : 1; }
  void commit(const storage::Batch& batch, storage::Durability durability) override {
    thread_local Translation translation;
    ::rocksdb::WriteOptions options;
    options.sync = durability == storage::Durability::synced;
    require_ok(db_->Write(options, &translation.of(batch, families_)));
  }
  void sync() override { require_ok(db_->SyncWAL()); }

 private:
  const Writers writers_;
  std::unique_ptr<::rocksdb::DB> db_;
  Translation::Families families_;
};

}  // namespace

std::unique_ptr<Committer> open_plain_rocksdb(const std::string& folder, Writers writers) {
  return std::make_unique<PlainRocksDb>(folder, writers);
}

}  // namespace reprise::bench
