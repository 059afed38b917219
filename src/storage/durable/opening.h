// Opening a data directory: makes it when it is new, takes its lock, opens the base, and reads the
// journal behind it into an overlay.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "storage/durable/durable_storage.h"
#include "storage/durable/overlay.h"
#include "storage/journal/journal.h"
#include "storage/rocksdb/data_directory.h"
#include "storage/rocksdb/database.h"
#include "storage/rocksdb/directory_lock.h"

namespace reprise::storage {

struct OpenDirectory {
  DataDirectory paths;
  journal::DirectoryId id{};
};

struct OpenParts {
  OpenDirectory directory;
  std::optional<DirectoryLock> lock;  // none on a file system of a test's own
  std::unique_ptr<Database> base;
  std::unique_ptr<journal::Journal> journal;
  std::shared_ptr<Overlay> overlay;  // what the journal has and the base has not
};

Result<OpenParts> open_parts(const DurableOptions& options);

}  // namespace reprise::storage
