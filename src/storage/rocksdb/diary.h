// Diary: RocksDB's info log, `<directory>/db/LOG`, written by us.
// RocksDB's own logger ends the process when the disk is full: its second line after a failed one
// trips an assertion, and with it the clean stop that a failed commit asks for. Ours is best
// effort: a line that cannot be written is dropped.
// Bounded: at 1 MiB the file becomes LOG.old, in place of the one before.
#pragma once

#include <rocksdb/env.h>

#include <memory>
#include <string>

namespace reprise::storage {

// `database` is RocksDB's directory; it need not be there yet.
std::shared_ptr<::rocksdb::Logger> make_diary(std::string database);

// For databases that are not on a real disk.
std::shared_ptr<::rocksdb::Logger> make_no_diary();

}  // namespace reprise::storage
