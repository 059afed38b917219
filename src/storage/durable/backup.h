// Backup: a data directory made from an open one, to start a server on.
//
// First the base is pinned: which files it consists of, and which batch it has come to. Then they
// are copied, however long that takes, beside commits and checkpoints: table files never change,
// and of the manifest the bytes of that moment are taken. CURRENT, without which no start takes a
// directory for a whole one, is written last. On the same file system table files are shared, not
// copied.
#pragma once

#include <rocksdb/db.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "storage/durable/durable_storage.h"
#include "storage/records.h"
#include "storage/rocksdb/database.h"

namespace reprise::storage {

// The base at one moment. Nothing of it is deleted while this lives; it must not outlive the base.
class PinnedBase {
 public:
  // No checkpoint and no reclaim may be under way: what they do in steps would be seen half done.
  static Result<std::unique_ptr<PinnedBase>> make(const Database& base);
  ~PinnedBase();
  PinnedBase(const PinnedBase&) = delete;
  PinnedBase& operator=(const PinnedBase&) = delete;

  const std::vector<::rocksdb::LiveFileStorageInfo>& files() const { return files_; }
  const CheckpointRecord& checkpoint() const { return checkpoint_; }

 private:
  explicit PinnedBase(const Database& base) : base_(base) {}
  Status read();

  const Database& base_;
  std::vector<::rocksdb::LiveFileStorageInfo> files_;
  CheckpointRecord checkpoint_;
};

// Whether a backup can be written there, as far as a look tells: the directory is missing or empty,
// and not inside `options.directory`.
Status check_backup_directory(const std::string& directory, const DurableOptions& options);

// Returns the copy's bytes. On an error, Errc::shutting_down when `interrupted` is set, what was
// written is removed.
Result<std::uint64_t> write_backup(const PinnedBase& base, const std::string& directory,
                                   const DurableOptions& options,
                                   const std::atomic<bool>& interrupted);

}  // namespace reprise::storage
