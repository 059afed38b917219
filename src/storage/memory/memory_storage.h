// MemoryStorage: Storage in std::maps, for tests and the simulation. crash() drops what was not
// synced, which is what a power cut does to a disk.
// Threads: as Storage says; one mutex around everything. Snapshots must not outlive the storage.
#pragma once

#include <memory>

#include "storage/storage.h"

namespace reprise::storage {

std::unique_ptr<Storage> make_memory_storage();

// The same with the handle that tests need.
class CrashableStorage : public Storage {
 public:
  // Back to the state of the last synced commit or sync().
  virtual void crash() = 0;
};
std::unique_ptr<CrashableStorage> make_crashable_memory_storage();

}  // namespace reprise::storage
