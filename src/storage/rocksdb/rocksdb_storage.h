// RocksDbStorage: Storage in one RocksDB database, a column family per keyspace.
// Directory: `<dir>/db` is RocksDB's; `<dir>/LOCK` names the process that owns it. A second process
// is refused with that process's pid.
//
// Closing does not sync: call sync() before, unless every commit was synced.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "storage/storage.h"

namespace rocksdb {
class Env;
}

namespace reprise::storage {

struct RocksDbOptions {
  std::string directory;
  std::uint64_t block_cache_bytes = 32ULL << 20;
  std::uint64_t write_buffer_bytes = 32ULL << 20;  // per keyspace; all together at most twice that
  // Tests put a faulty or in-memory file system here; null: the real one. With one of their own
  // there is no LOCK file.
  ::rocksdb::Env* env = nullptr;
  // Hears what an operator should know about a start that went well nevertheless, such as a torn
  // tail that a power cut left and that was cut off. May be empty.
  std::function<void(std::string_view)> notice;
};

// Creates the directory (mode 0700) when it is not there. Errors name the directory or file and
// what to do: in use by another process, format too new, damaged, not readable.
Result<std::unique_ptr<Storage>> open_rocksdb_storage(const RocksDbOptions& options);

}  // namespace reprise::storage
