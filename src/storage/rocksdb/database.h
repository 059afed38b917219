// Database: the base, an open RocksDB with one column family per keyspace and one for the job
// index. It holds what outlives a checkpoint. Its write-ahead log is off: a checkpoint brings whole
// table files, and the journal has everything that came after. Threads: as ::rocksdb::DB, any.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "storage/keyspace.h"
#include "storage/records.h"
#include "storage/rocksdb/compression_sense.h"
#include "storage/rocksdb/table_deletion.h"

namespace reprise::storage {

struct DatabaseOptions {
  std::string directory;  // RocksDB's own
  std::uint64_t block_cache_bytes = 16ULL << 20;
  ::rocksdb::Env* env = nullptr;  // null: the real one
  bool compacts = true;           // false for runs that are to repeat exactly
  // Hears of a write or sync that failed, before RocksDB tidies up after it. May be empty.
  std::function<void(const Error&)> on_failure;
};

class Database {
 public:
  // The checkpoint of a database that is there, read without changing anything; nullopt: its making
  // was interrupted. To be asked before open(), because RocksDB deletes table files that its
  // manifest does not name, and a damaged manifest names too few: first see whether the journal
  // fits. Errors name the directory and what to do; of another format, for example.
  static Result<std::optional<CheckpointRecord>> inspect(const DatabaseOptions& options);
  // Errors name the directory. A directory that is new, or whose making was interrupted, comes
  // without a checkpoint(); any other has one.
  static Result<std::unique_ptr<Database>> open(const DatabaseOptions& options);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  ::rocksdb::DB* operator->() const { return db_.get(); }
  ::rocksdb::DB* get() const { return db_.get(); }
  ::rocksdb::ColumnFamilyHandle* family(Keyspace keyspace) const {
    return families_[static_cast<std::size_t>(keyspace)];
  }
  ::rocksdb::ColumnFamilyHandle* index() const { return families_.back(); }
  const std::vector<::rocksdb::ColumnFamilyHandle*>& families() const { return families_; }
  const DatabaseOptions& options() const { return options_; }
  // What it was found to hold when it was opened.
  const std::optional<CheckpointRecord>& checkpoint() const { return checkpoint_; }
  std::uint64_t disk_bytes() const;
  // Files that RocksDB has deleted are gone then, unless it is interrupted before.
  void finish_deletions(const std::atomic<bool>& interrupted) const;
  // For whoever writes table files, one at a time.
  CompressionSense& compression_sense() { return compression_sense_; }

  Result<std::optional<std::string>> read(const ::rocksdb::ReadOptions& options,
                                          ::rocksdb::ColumnFamilyHandle* family,
                                          std::string_view key) const;

  // Reads every block of every table file and compares its checksum, as long as the files are not
  // more than `bytes_max` together: damage is then named at the start. Beyond, it is found when a
  // block is read.
  Status verify_tables(std::uint64_t bytes_max) const;

 private:
  explicit Database(const DatabaseOptions& options) : options_(options) {}
  Status open_families();
  Status require_empty() const;
  Status verify(const std::vector<::rocksdb::LiveFileMetaData>& files) const;

  const DatabaseOptions options_;
  // Constant after open().
  bool is_new_ = false;
  std::unique_ptr<TableDeletion> deletion_;  // null: not on the real disk
  std::unique_ptr<::rocksdb::DB> db_;
  ::rocksdb::ColumnFamilyHandle* default_family_ = nullptr;  // RocksDB insists on it; unused
  std::vector<::rocksdb::ColumnFamilyHandle*> families_;     // owned; by Keyspace, then the index
  std::optional<CheckpointRecord> checkpoint_;

  CompressionSense compression_sense_;
};

inline constexpr char kIndexFamilyName[] = "index";

}  // namespace reprise::storage
