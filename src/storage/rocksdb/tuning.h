// How RocksDB is set up, with the reason for each choice that is not its default.
// Meant for 2 cores, jobs of about 1 KiB, and little memory: what RocksDB keeps is bounded by
// block_cache_bytes, whatever the backlog.
#pragma once

#include <rocksdb/options.h>

#include <memory>

#include "storage/keyspace.h"
#include "storage/rocksdb/database.h"

namespace reprise::storage {

::rocksdb::DBOptions database_options(const DatabaseOptions& options);

// `cache` is shared by all.
::rocksdb::ColumnFamilyOptions keyspace_options(const DatabaseOptions& options, Keyspace keyspace,
                                                std::shared_ptr<::rocksdb::Cache> cache);
::rocksdb::ColumnFamilyOptions index_options(const DatabaseOptions& options,
                                             std::shared_ptr<::rocksdb::Cache> cache);

// For the few writes that do not come as table files.
::rocksdb::WriteOptions write_without_log();

std::shared_ptr<::rocksdb::Cache> make_block_cache(const DatabaseOptions& options);

}  // namespace reprise::storage
