// RocksDB's statuses as our errors.
#pragma once

#include <rocksdb/status.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace reprise::storage {

// What it says. RocksDB looks for a table under an older suffix last, and names that one when
// neither is there; here it has the name that it should have.
std::string describe(const ::rocksdb::Status& status);

// Errc::corrupt for damage, Errc::disk_full for want of space, Errc::io for the rest. `path` is the
// directory or file that it is about.
Error to_error(const ::rocksdb::Status& status, std::string_view path);
Status to_status(const ::rocksdb::Status& status, std::string_view path);

}  // namespace reprise::storage
