// StorageBackend: one kind of Storage that a test can close and open again. Suites that must hold
// for every kind run over all_storage_backends().
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "storage/storage.h"

namespace reprise::test {

class StorageBackend {
 public:
  virtual ~StorageBackend() = default;
  virtual storage::Storage& storage() = 0;
  // Closes and opens it. What was synced must be there again.
  virtual void reopen() = 0;
};

struct StorageBackendKind {
  std::string name;
  std::unique_ptr<StorageBackend> (*make)();

  friend std::ostream& operator<<(std::ostream& out, const StorageBackendKind& kind) {
    return out << kind.name;
  }
};

// Memory, and the durable one: as it is, and with checkpoints at every turn.
std::vector<StorageBackendKind> all_storage_backends();

}  // namespace reprise::test
