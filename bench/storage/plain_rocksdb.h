// The rival: the same batches in a RocksDB that keeps its own journal, a column family per
// keyspace. It is what a queue on RocksDB would be without a journal of its own, tuned for one:
// a writer, a window that slides over the keys, a bounded restart.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "committer.h"

namespace reprise::bench {

// One commit at a time, or two: then RocksDB writes its journal for one while it applies the other.
enum class Writers : std::uint8_t { one, two };
std::unique_ptr<Committer> open_plain_rocksdb(const std::string& folder, Writers writers);

}  // namespace reprise::bench
