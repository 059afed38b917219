// What a power cut or kill -9 leaves at the end of RocksDB's log files, and what to do about it.
//
// RocksDB's own recovery modes either take damage for the end and drop what follows in silence, or
// refuse what every power cut may leave. So the tail is looked at here before RocksDB opens, which
// then does so in its strictest mode. The rule (docs/format.md, "Recovery"):
//   - A record that was still being written is a torn tail: the file ends inside it, or part of it
//     was never written and reads as zeros. Nobody was told that it is stored, and nothing after it
//     can have been synced either. It is cut off.
//   - Anything else that does not match its checksum is damage to what may have been acknowledged.
//     It is refused, and nothing is changed.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "storage/rocksdb/data_directory.h"

namespace reprise::storage {

struct TornTail {
  std::string file;  // with its path
  std::uint64_t kept_bytes{};
};

// Looks at the manifest and all journal files of the database, cuts a torn tail off,
// and makes durable what is left: a process that was killed may have left bytes that only the
// kernel had. Returns what was cut. Errc::corrupt names the file and place.
Result<std::vector<TornTail>> mend_log_tails(::rocksdb::FileSystem& files,
                                             const DataDirectory& directory);

// Makes the newest journal file that holds anything durable. Safe beside an open database.
Status sync_last_journal_file(::rocksdb::FileSystem& files, const DataDirectory& directory);

}  // namespace reprise::storage
