// Gives an erased range back to the file system at once, where RocksDB alone would take its time.
#pragma once

#include <atomic>
#include <string_view>

#include "storage/keyspace.h"
#include "storage/rocksdb/database.h"

namespace reprise::storage {

// See Storage::reclaim. One call at a time. Setting `interrupted` ends it early.
Status reclaim_range(Database& database, Keyspace keyspace, std::string_view begin,
                     std::string_view end, std::atomic<bool>& interrupted);

}  // namespace reprise::storage
