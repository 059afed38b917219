// How RocksDB is set up, with the reason for each choice that is not its default.
// Meant for 2 cores, jobs of about 1 KiB in commits of 1 to 1000, and little memory: what RocksDB
// keeps is bounded by block_cache_bytes + 2 * write_buffer_bytes, whatever the backlog.
#pragma once

#include <rocksdb/options.h>

#include <memory>

#include "storage/keyspace.h"
#include "storage/rocksdb/rocksdb_storage.h"

namespace reprise::storage {

::rocksdb::DBOptions database_options(const RocksDbOptions& options);

// `cache` is shared by all keyspaces.
::rocksdb::ColumnFamilyOptions keyspace_options(const RocksDbOptions& options, Keyspace keyspace,
                                                std::shared_ptr<::rocksdb::Cache> cache);

std::shared_ptr<::rocksdb::Cache> make_block_cache(const RocksDbOptions& options);

}  // namespace reprise::storage
