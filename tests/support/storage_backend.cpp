#include "support/storage_backend.h"

#include <rocksdb/env.h>

#include <cstdio>
#include <utility>

#include "base/check.h"
#include "storage/durable/durable_storage.h"
#include "storage/memory/memory_storage.h"
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

class DurableBackend final : public StorageBackend {
 public:
  explicit DurableBackend(storage::DurableOptions options, std::unique_ptr<rocksdb::Env> env = {})
      : options_(std::move(options)), env_(std::move(env)) {
    options_.directory = env_ ? "/data" : directory_ / "data";
    options_.env = env_.get();
    open();
  }
  storage::Storage& storage() override { return *storage_; }
  void reopen() override {
    storage_.reset();
    open();
  }

 private:
  void open() {
    auto opened = storage::open_durable_storage(options_);
    if (!opened) std::fprintf(stderr, "%s\n", opened.error().detail.c_str());
    REPRISE_CHECK(opened.has_value());
    storage_ = *std::move(opened);
  }

  const TempDirectory directory_;
  storage::DurableOptions options_;
  const std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<storage::Storage> storage_;
};

std::unique_ptr<StorageBackend> make_memory() { return std::make_unique<MemoryBackend>(); }

std::unique_ptr<StorageBackend> make_durable() {
  return std::make_unique<DurableBackend>(storage::DurableOptions{});
}

// Checkpoints after every few commits, inside them, and segments that are soon full.
std::unique_ptr<StorageBackend> make_restless() {
  return std::make_unique<DurableBackend>(
      storage::DurableOptions{.overlay_bytes = 1024,
                              .journal_bytes = 64U << 10,
                              .segment_bytes_min = 4096,
                              .segment_bytes_max = 16384,
                              .background = false},
      std::unique_ptr<rocksdb::Env>(rocksdb::NewMemEnv(rocksdb::Env::Default())));
}

// The same beside the commits.
std::unique_ptr<StorageBackend> make_restless_in_background() {
  return std::make_unique<DurableBackend>(storage::DurableOptions{.overlay_bytes = 1024,
                                                                  .journal_bytes = 64U << 10,
                                                                  .segment_bytes_min = 4096,
                                                                  .segment_bytes_max = 16384});
}

}  // namespace

std::vector<StorageBackendKind> all_storage_backends() {
  return {{.name = "Memory", .make = make_memory},
          {.name = "Durable", .make = make_durable},
          {.name = "Restless", .make = make_restless},
          {.name = "RestlessInBackground", .make = make_restless_in_background}};
}

}  // namespace reprise::test
