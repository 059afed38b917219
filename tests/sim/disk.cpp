#include "sim/disk.h"

#include <rocksdb/env.h>

#include <array>

#include "sim/violation.h"
#include "storage/durable/durable_storage.h"
#include "storage/memory/memory_storage.h"
#include "support/faulty_file_system.h"

namespace reprise::sim {
namespace {

class MemoryDisk final : public Disk {
 public:
  storage::Storage& storage() override { return *storage_; }
  void kill() override { require(storage_->sync().has_value(), "memory cannot fail"); }
  void cut_power(std::uint64_t) override { storage_->crash(); }
  bool fail_next_sync() override { return false; }

 private:
  const std::unique_ptr<storage::CrashableStorage> storage_ =
      storage::make_crashable_memory_storage();
};

// The durable storage on a file system in memory that loses what was not synced. Small enough for
// segments to be used again and for a checkpoint every few batches.
class DurableDisk final : public Disk {
 public:
  DurableDisk() { open(); }
  storage::Storage& storage() override { return *storage_; }
  void kill() override {
    files_->fail_sync(0);  // a sync that was to fail and never came
    storage_.reset();
    open();
  }
  void cut_power(std::uint64_t seed) override {
    constexpr std::array kLosses = {test::Loss::all, test::Loss::tail, test::Loss::pages};
    files_->crash(kLosses[seed % kLosses.size()], seed);
    storage_.reset();
    files_->restart();
    open();
  }
  bool fail_next_sync() override {
    files_->fail_sync(1, ".seg");
    return true;
  }

 private:
  void open() {
    auto opened = storage::open_durable_storage({.directory = "/data",
                                                 .block_cache_bytes = 1U << 20,
                                                 .overlay_bytes = 8U << 10,
                                                 .journal_bytes = 32U << 10,
                                                 .segment_bytes_min = 2U << 10,
                                                 .segment_bytes_max = 8U << 10,
                                                 .env = env_.get(),
                                                 .background = false});
    require(opened.has_value(), opened ? "" : "storage does not open: " + opened.error().detail);
    storage_ = *std::move(opened);
  }

  const std::unique_ptr<rocksdb::Env> base_{rocksdb::NewMemEnv(rocksdb::Env::Default())};
  const std::shared_ptr<test::FaultyFileSystem> files_ =
      std::make_shared<test::FaultyFileSystem>(base_->GetFileSystem());
  const std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(files_);
  std::unique_ptr<storage::Storage> storage_;
};

}  // namespace

std::unique_ptr<Disk> make_disk(DiskKind kind) {
  if (kind == DiskKind::memory) return std::make_unique<MemoryDisk>();
  return std::make_unique<DurableDisk>();
}

}  // namespace reprise::sim
