#include "support/storage_backend.h"

#include <rocksdb/env.h>

#include <utility>

#include "base/check.h"
#include "storage/memory/memory_storage.h"
#include "storage/rocksdb/rocksdb_storage.h"
#include "support/temp_directory.h"

namespace reprise::test {
namespace {

class MemoryBackend final : public StorageBackend {
 public:
  storage::Storage& storage() override { return *storage_; }
  void reopen() override { storage_->crash(); }

 private:
  std::unique_ptr<storage::CrashableStorage> storage_ = storage::make_crashable_memory_storage();
};

class RocksDbBackend final : public StorageBackend {
 public:
  explicit RocksDbBackend(std::unique_ptr<rocksdb::Env> env)
      : env_(std::move(env)), path_(env_ ? "/data" : directory_ / "data") {
    open();
  }
  storage::Storage& storage() override { return *storage_; }
  void reopen() override {
    storage_.reset();
    open();
  }

 private:
  void open() {
    auto opened = storage::open_rocksdb_storage({.directory = path_, .env = env_.get()});
    REPRISE_CHECK(opened.has_value());
    storage_ = *std::move(opened);
  }

  const TempDirectory directory_;
  const std::unique_ptr<rocksdb::Env> env_;
  const std::string path_;
  std::unique_ptr<storage::Storage> storage_;
};

std::unique_ptr<StorageBackend> make_memory() { return std::make_unique<MemoryBackend>(); }

std::unique_ptr<StorageBackend> make_rocksdb() { return std::make_unique<RocksDbBackend>(nullptr); }

std::unique_ptr<StorageBackend> make_rocksdb_in_memory() {
  return std::make_unique<RocksDbBackend>(
      std::unique_ptr<rocksdb::Env>(rocksdb::NewMemEnv(rocksdb::Env::Default())));
}

}  // namespace

std::vector<StorageBackendKind> all_storage_backends() {
  return {{.name = "Memory", .make = make_memory},
          {.name = "RocksDb", .make = make_rocksdb},
          {.name = "RocksDbInMemory", .make = make_rocksdb_in_memory}};
}

}  // namespace reprise::test
