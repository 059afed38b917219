// Database: an open RocksDB with one column family per keyspace, in a directory that is ours alone
// and of a format that we read. Opening and closing is its whole job; RocksDbStorage uses it.
// Threads: as ::rocksdb::DB, any.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "storage/keyspace.h"
#include "storage/rocksdb/data_directory.h"
#include "storage/rocksdb/directory_lock.h"
#include "storage/rocksdb/rocksdb_storage.h"

namespace reprise::storage {

class Database {
 public:
  static Result<std::unique_ptr<Database>> open(const RocksDbOptions& options);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  ::rocksdb::DB* operator->() const { return db_.get(); }
  ::rocksdb::DB* get() const { return db_.get(); }
  ::rocksdb::ColumnFamilyHandle* family(Keyspace keyspace) const {
    return families_[static_cast<std::size_t>(keyspace)];
  }
  // One per keyspace.
  const std::vector<::rocksdb::ColumnFamilyHandle*>& families() const { return families_; }
  const DataDirectory& directory() const { return directory_; }
  std::uint64_t disk_bytes() const { return database_bytes(*files_, directory_); }

  // Whether a journal file could not be synced before the next one was begun. Then nothing is known
  // about what the disk has.
  std::optional<Error> journal_failure() const;

 private:
  class JournalSyncer;

  Database() = default;
  Status mend_tails(const RocksDbOptions& options);
  Status refuse_unknown_families(const RocksDbOptions& options);
  Status open_families(const RocksDbOptions& options);
  Status check_format();
  Status write_format();

  // Constant after open().
  std::optional<DirectoryLock> lock_;  // first in, last out
  std::shared_ptr<::rocksdb::FileSystem> files_;
  DataDirectory directory_;
  std::shared_ptr<JournalSyncer> journal_syncer_;
  std::unique_ptr<::rocksdb::DB> db_;
  ::rocksdb::ColumnFamilyHandle* default_family_ = nullptr;  // RocksDB insists on it; unused
  std::vector<::rocksdb::ColumnFamilyHandle*> families_;     // owned; in the order of Keyspace
};

}  // namespace reprise::storage
