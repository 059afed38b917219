// The sequence number in the properties of a table that was ingested: RocksDB leaves its bytes out
// of all checksums, because it may be written later. Here it never is, so it must be 0, and one
// that is not has been damaged. RocksDB cannot open such a table beside its manifest, which tells
// another number; read alone it looks whole.
#pragma once

#include <string>

#include "base/result.h"

namespace rocksdb {
struct TableProperties;
}

namespace reprise::storage {

// Errc::corrupt, with the path. Tables that RocksDB itself has written have none, and are well.
Status check_sequence(const ::rocksdb::TableProperties& properties, const std::string& path);

}  // namespace reprise::storage
