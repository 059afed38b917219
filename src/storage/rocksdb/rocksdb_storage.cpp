#include "storage/rocksdb/rocksdb_storage.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "storage/rocksdb/database.h"
#include "storage/rocksdb/reclaim.h"
#include "storage/rocksdb/status.h"

namespace reprise::storage {
namespace {

using ::rocksdb::Slice;

Slice slice(std::string_view text) { return {text.data(), text.size()}; }
std::string_view view(const Slice& slice) { return {slice.data(), slice.size()}; }

using ErasedKeys = std::array<std::size_t, kAllKeyspaces.size()>;

// A Batch as RocksDB wants it.
class WriteBatchBuilder final : public Batch::Visitor {
 public:
  WriteBatchBuilder(const Database& database, ::rocksdb::WriteBatch& out)
      : database_(database), out_(out) {}
  void put(Keyspace keyspace, std::string_view key, std::string_view value) override {
    keep(out_.Put(database_.family(keyspace), slice(key), slice(value)));
  }
  void erase(Keyspace keyspace, std::string_view key) override {
    keep(out_.Delete(database_.family(keyspace), slice(key)));
    ++erased_[static_cast<std::size_t>(keyspace)];
  }
  void erase_range(Keyspace keyspace, std::string_view begin, std::string_view end) override {
    keep(out_.DeleteRange(database_.family(keyspace), slice(begin), slice(end)));
  }
  const ::rocksdb::Status& status() const { return status_; }
  const ErasedKeys& erased() const { return erased_; }

 private:
  void keep(const ::rocksdb::Status& status) {
    if (status_.ok()) status_ = status;
  }

  const Database& database_;
  ::rocksdb::WriteBatch& out_;
  ::rocksdb::Status status_;
  ErasedKeys erased_{};
};

Result<std::optional<std::string>> read(const Database& database,
                                        const ::rocksdb::ReadOptions& options, Keyspace keyspace,
                                        std::string_view key) {
  std::string value;
  const auto status = database->Get(options, database.family(keyspace), slice(key), &value);
  if (status.IsNotFound()) return std::optional<std::string>();
  if (!status.ok()) return to_error(status, database.directory().path);
  return std::optional(std::move(value));
}

class RocksDbCursor final : public Storage::Cursor {
 public:
  RocksDbCursor(const Database& database, const ::rocksdb::Snapshot* snapshot, Keyspace keyspace,
                std::string_view begin, std::string_view end)
      : database_(database), end_(end), end_slice_(end_) {
    ::rocksdb::ReadOptions options;
    options.snapshot = snapshot;
    options.fill_cache = false;  // a walk through everything must not push out what is in use
    if (!end_.empty()) options.iterate_upper_bound = &end_slice_;
    iterator_.reset(database_->NewIterator(options, database_.family(keyspace)));
    iterator_->Seek(slice(begin));
  }
  bool valid() const override { return iterator_->Valid(); }
  std::string_view key() const override { return view(iterator_->key()); }
  std::string_view value() const override { return view(iterator_->value()); }
  void next() override { iterator_->Next(); }
  Status status() const override {
    return to_status(iterator_->status(), database_.directory().path);
  }

 private:
  const Database& database_;
  const std::string end_;
  const Slice end_slice_;
  std::unique_ptr<::rocksdb::Iterator> iterator_;  // refers to end_slice_
};

class RocksDbSnapshot final : public Storage::Snapshot {
 public:
  explicit RocksDbSnapshot(const Database& database)
      : database_(database), snapshot_(database->GetSnapshot()) {}
  ~RocksDbSnapshot() override { database_->ReleaseSnapshot(snapshot_); }
  RocksDbSnapshot(const RocksDbSnapshot&) = delete;
  RocksDbSnapshot& operator=(const RocksDbSnapshot&) = delete;

  std::unique_ptr<Storage::Cursor> cursor(Keyspace keyspace, std::string_view begin,
                                          std::string_view end) const override {
    return std::make_unique<RocksDbCursor>(database_, snapshot_, keyspace, begin, end);
  }
  Result<std::optional<std::string>> get(Keyspace keyspace, std::string_view key) const override {
    ::rocksdb::ReadOptions options;
    options.snapshot = snapshot_;
    return read(database_, options, keyspace, key);
  }

 private:
  const Database& database_;
  const ::rocksdb::Snapshot* const snapshot_;
};

class RocksDbStorage final : public Storage {
 public:
  explicit RocksDbStorage(std::unique_ptr<Database> database) : database_(std::move(database)) {}

  Status commit(const Batch& batch, Durability durability) override {
    if (failed_) return *failed_;
    write_batch_.Clear();
    WriteBatchBuilder builder(*database_, write_batch_);
    batch.visit(builder);
    ::rocksdb::WriteOptions options;
    options.sync = durability == Durability::synced;
    auto status = builder.status();
    if (status.ok()) status = (*database_)->Write(options, &write_batch_);
    if (status.ok()) status = write_out_tombstones(builder.erased());
    if (write_batch_.GetDataSize() > kWriteBatchBytesKept) write_batch_ = ::rocksdb::WriteBatch();
    return keep_failure(status);
  }

  Status sync() override {
    if (failed_) return *failed_;
    return keep_failure(sync_journal());
  }

  Result<std::optional<std::string>> get(Keyspace keyspace, std::string_view key) const override {
    return read(*database_, ::rocksdb::ReadOptions(), keyspace, key);
  }

  Status scan(Keyspace keyspace, std::string_view begin, std::string_view end,
              const Visit& visit) const override {
    RocksDbCursor at(*database_, nullptr, keyspace, begin, end);
    while (at.valid() && visit(at.key(), at.value())) at.next();
    return at.status();
  }

  std::unique_ptr<Snapshot> snapshot() const override {
    return std::make_unique<RocksDbSnapshot>(*database_);
  }

  Status reclaim(Keyspace keyspace, std::string_view begin, std::string_view end) override {
    const std::scoped_lock lock(reclaim_mutex_);
    if (reclaim_interrupted_) return ok();
    return reclaim_range(*database_, keyspace, begin, end, reclaim_interrupted_);
  }
  void interrupt_reclaim() override { reclaim_interrupted_ = true; }

  std::string_view kind() const override { return "rocksdb"; }
  std::uint64_t disk_bytes() const override { return database_->disk_bytes(); }

 private:
  // A commit of 1000 jobs of 1 KiB is reused, one of 16 MiB is given back.
  static constexpr std::size_t kWriteBatchBytesKept = 2U << 20;
  static constexpr std::size_t kTombstonesInMemoryMax = 64U << 10;

  // An empty synced write rather than RocksDB's SyncWAL, which not every file system supports.
  ::rocksdb::Status sync_journal() {
    ::rocksdb::WriteOptions synced;
    synced.sync = true;
    ::rocksdb::WriteBatch nothing;
    return (*database_)->Write(synced, &nothing);
  }

  // Memory holds far more tombstones than jobs, so a queue that is drained would pile up a million
  // of them before RocksDB writes them out, and every scan would walk through them all. Written
  // out, they are compacted away at once (tuning.cpp). Does not wait.
  ::rocksdb::Status write_out_tombstones(const ErasedKeys& erased) {
    ::rocksdb::FlushOptions options;
    options.wait = false;
    options.allow_write_stall = true;
    for (const Keyspace keyspace : kAllKeyspaces) {
      std::size_t& count = tombstones_[static_cast<std::size_t>(keyspace)];
      count += erased[static_cast<std::size_t>(keyspace)];
      if (count < kTombstonesInMemoryMax) continue;
      count = 0;
      const auto status = (*database_)->Flush(options, database_->family(keyspace));
      if (!status.ok()) return status;
    }
    return {};
  }

  // The first failure of a write is the answer to all later ones: RocksDB must not get a chance to
  // try again, because a second fsync may succeed without the data being there.
  Status keep_failure(const ::rocksdb::Status& status) {
    failed_ = database_->journal_failure();
    if (!failed_ && !status.ok()) failed_ = to_error(status, database_->directory().path);
    if (failed_) return *failed_;
    return ok();
  }

  const std::unique_ptr<Database> database_;
  // Of the committing thread.
  ::rocksdb::WriteBatch write_batch_;
  ErasedKeys tombstones_{};  // since the last time they were written out
  std::optional<Error> failed_;

  std::mutex reclaim_mutex_;  // one reclaim at a time
  std::atomic<bool> reclaim_interrupted_{false};
};

}  // namespace

Result<std::unique_ptr<Storage>> open_rocksdb_storage(const RocksDbOptions& options) {
  auto database = Database::open(options);
  if (!database) return database.error();
  return std::unique_ptr<Storage>(std::make_unique<RocksDbStorage>(*std::move(database)));
}

}  // namespace reprise::storage
