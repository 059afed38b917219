// Committer: what takes batches and makes them durable. The measured storage and what it is
// compared with stand behind it, so that all of them are driven by the same loop.
// Errors are thrown as LoadError. Threads: as storage::Storage says.
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
  // How many durable commits may be under way: what suits it best.
  virtual std::size_t at_once() const { return 1; }
  virtual std::unique_ptr<storage::Storage::Commit> begin(const storage::Batch& batch,
                                                          storage::Durability durability) = 0;
  // Makes every earlier buffered commit durable.
  virtual void sync() = 0;
};

// What knows no steps: all of a commit is its write().
class OneStepCommitter : public Committer {
 public:
  std::unique_ptr<storage::Storage::Commit> begin(const storage::Batch& batch,
                                                  storage::Durability durability) override;
  virtual void commit(const storage::Batch& batch, storage::Durability durability) = 0;
};

// The whole of one commit.
void commit(Committer& committer, const storage::Batch& batch);

// reprise: the measured storage. plain, plain_two: RocksDB with its own journal, and one writer or
// two. append, overwrite, direct: a journal file and nothing else (journal_floor.h).
std::vector<std::string> committer_names();
// In an empty folder of its own. `name` is one of the above; `commits`: what most of them will be.
std::unique_ptr<Committer> make_committer(std::string_view name, const std::string& folder,
                                          storage::Durability commits);

}  // namespace reprise::bench
