// Where RocksDB's Status becomes our Error; nothing above this folder sees the former.
#pragma once

#include <rocksdb/status.h>

#include <string_view>

#include "base/result.h"

namespace reprise::storage {

// `status` is not ok. Errc::corrupt for damaged data, naming the file where RocksDB does;
// Errc::io for all else. Both name the data directory.
Error to_error(const ::rocksdb::Status& status, std::string_view directory);

// The same for a Status that may be ok.
Status to_status(const ::rocksdb::Status& status, std::string_view directory);

}  // namespace reprise::storage
