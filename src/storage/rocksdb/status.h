// RocksDB's statuses as our errors.
#pragma once

#include <rocksdb/status.h>

#include <string_view>

#include "base/result.h"

namespace reprise::storage {

// Errc::corrupt for damage, Errc::disk_full for want of space, Errc::io for the rest. `path` is the
// directory or file that it is about.
Error to_error(const ::rocksdb::Status& status, std::string_view path);
Status to_status(const ::rocksdb::Status& status, std::string_view path);

}  // namespace reprise::storage
