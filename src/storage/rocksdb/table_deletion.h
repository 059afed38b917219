// TableDeletion: RocksDB's file system, in which table files are deleted gradually
// (storage/gradual_deletion.h) and large reads of them go past the page cache
// (past_page_cache_reads.h). Everything else is the real file system's.
// Threads: any; RocksDB deletes on several.
#pragma once

#include <rocksdb/env.h>

#include <memory>
#include <string>

#include "storage/gradual_deletion.h"

namespace reprise::storage {

class TableDeletion {
 public:
  explicit TableDeletion(const std::string& directory);

  ::rocksdb::Env* env() const { return env_.get(); }
  void finish(const std::atomic<bool>& interrupted) { deletion_->finish(interrupted); }

 private:
  const std::shared_ptr<GradualDeletion> deletion_;
  const std::unique_ptr<::rocksdb::Env> env_;
};

}  // namespace reprise::storage
