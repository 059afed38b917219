// Committer: what takes batches and makes them durable. The measured storage and what it is
// compared with stand behind it, so that all of them are driven by the same loop.
// Errors are thrown as LoadError. Threads: one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/batch.h"
#include "storage/storage.h"

namespace reprise::bench {

class Committer {
 public:
  virtual ~Committer() = default;
  virtual void commit(const storage::Batch& batch, storage::Durability durability) = 0;
  // Makes every earlier buffered commit durable.
  virtual void sync() = 0;
};

// reprise: the measured storage. plain: RocksDB with its own journal. append, overwrite, direct: a
// journal file and nothing else (journal_floor.h).
std::vector<std::string> committer_names();
// In an empty folder of its own. `name` is one of the above.
std::unique_ptr<Committer> make_committer(std::string_view name, const std::string& folder);

}  // namespace reprise::bench
