#include "storage/rocksdb/database.h"

#include <rocksdb/listener.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "storage/keys.h"
#include "storage/records.h"
#include "storage/rocksdb/log_tail.h"
#include "storage/rocksdb/status.h"
#include "storage/rocksdb/tuning.h"

namespace reprise::storage {
namespace {

using ::rocksdb::ColumnFamilyDescriptor;
using ::rocksdb::kDefaultColumnFamilyName;

// The default column family first, then the keyspaces in order.
std::vector<ColumnFamilyDescriptor> family_descriptors(const RocksDbOptions& options) {
  const auto cache = make_block_cache(options);
  std::vector<ColumnFamilyDescriptor> families;
  families.emplace_back(kDefaultColumnFamilyName, keyspace_options(options, Keyspace::meta, cache));
  for (const Keyspace keyspace : kAllKeyspaces) {
    families.emplace_back(std::string(keyspace_name(keyspace)),
                          keyspace_options(options, keyspace, cache));
  }
  return families;
}

bool is_known_family(const std::string& name) {
  return name == kDefaultColumnFamilyName ||
         std::ranges::find(kAllKeyspaces, name, keyspace_name) != kAllKeyspaces.end();
}

// nullopt: none is stored.
Result<std::optional<std::uint32_t>> read_format(::rocksdb::DB& db,
                                                 ::rocksdb::ColumnFamilyHandle* meta,
                                                 const std::string& directory) {
  std::string stored;
  const auto status = db.Get(::rocksdb::ReadOptions(), meta, std::string(kFormatKey), &stored);
  if (status.IsNotFound()) return std::optional<std::uint32_t>();
  if (!status.ok()) return to_error(status, directory);
  const auto version = decode_format_version(stored);
  if (!version) return version.error();
  return std::optional(*version);
}

Error newer_format(const std::string& directory, std::uint32_t found) {
  return Error{Errc::io, "data directory " + directory + " has format " + std::to_string(found) +
                             ", this reprise reads up to format " + std::to_string(kFormatVersion) +
                             "; run the newer reprise that wrote it, or choose another --data "
                             "directory"};
}

}  // namespace

// Commits must reach the disk in their order, the buffered ones too. Within a journal file recovery
// sees to that. Across two files only this does: RocksDB begins a journal file together with a
// memtable, says so before it uses either, and the old file is synced then.
class Database::JournalSyncer final : public ::rocksdb::EventListener {
 public:
  JournalSyncer(std::shared_ptr<::rocksdb::FileSystem> files, DataDirectory directory)
      : files_(std::move(files)), directory_(std::move(directory)) {}

  void OnMemTableSealed(const ::rocksdb::MemTableInfo&) override {
    const auto synced = sync_last_journal_file(*files_, directory_);
    if (synced) return;
    const std::scoped_lock lock(mutex_);
    failure_ = synced.error();
  }
  std::optional<Error> failure() const {
    const std::scoped_lock lock(mutex_);
    return failure_;
  }

 private:
  const std::shared_ptr<::rocksdb::FileSystem> files_;
  const DataDirectory directory_;
  mutable std::mutex mutex_;  // guards failure_
  std::optional<Error> failure_;
};

Result<std::unique_ptr<Database>> Database::open(const RocksDbOptions& options) {
  std::unique_ptr<Database> database(new Database());
  auto* env = options.env == nullptr ? ::rocksdb::Env::Default() : options.env;
  database->files_ = env->GetFileSystem();
  const bool on_real_disk = options.env == nullptr;
  auto directory = prepare_data_directory(*database->files_, options.directory, on_real_disk);
  if (!directory) return directory.error();
  database->directory_ = *std::move(directory);
  if (on_real_disk) {
    auto lock = DirectoryLock::acquire(options.directory);
    if (!lock) return lock.error();
    database->lock_.emplace(*std::move(lock));
  }
  if (!database->directory_.is_new) {
    REPRISE_TRY(database->mend_tails(options));
    REPRISE_TRY(database->refuse_unknown_families(options));
  }
  REPRISE_TRY(database->open_families(options));
  REPRISE_TRY(database->check_format());
  if (database->directory_.is_new) {
    REPRISE_TRY(sync_new_directory(*database->files_, database->directory_));
  }
  return database;
}

Status Database::mend_tails(const RocksDbOptions& options) {
  const auto cut = mend_log_tails(*files_, directory_);
  if (!cut) return cut.error();
  for (const TornTail& tail : *cut) {
    if (!options.notice) continue;
    options.notice(tail.file + ": cut off an unfinished write after byte " +
                   std::to_string(tail.kept_bytes) + ", left by a crash or a power cut");
  }
  return ok();
}

// A newer format may have keyspaces of its own, which RocksDB would answer with an obscure error.
Status Database::refuse_unknown_families(const RocksDbOptions& options) {
  const auto db_options = database_options(options);
  std::vector<std::string> names;
  auto status = ::rocksdb::DB::ListColumnFamilies(db_options, directory_.database, &names);
  if (!status.ok()) return to_error(status, directory_.path);
  const auto unknown = std::ranges::find_if_not(names, is_known_family);
  if (unknown == names.end()) return ok();

  const auto all = family_descriptors(options);
  const std::vector default_and_meta(all.begin(), all.begin() + 2);
  std::vector<::rocksdb::ColumnFamilyHandle*> handles;
  ::rocksdb::DB* opened = nullptr;
  status = ::rocksdb::DB::OpenForReadOnly(db_options, directory_.database, default_and_meta,
                                          &handles, &opened);
  if (!status.ok()) return to_error(status, directory_.path);
  const std::unique_ptr<::rocksdb::DB> db(opened);
  const auto version = read_format(*db, handles.back(), directory_.path);
  for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
  if (!version) return version.error();
  if (version->value_or(0) > kFormatVersion) return newer_format(directory_.path, **version);
  return Error{Errc::corrupt, "data directory " + directory_.path + " is damaged: keyspace " +
                                  *unknown + " is not of its format"};
}

Status Database::open_families(const RocksDbOptions& options) {
  auto db_options = database_options(options);
  db_options.create_if_missing = directory_.is_new;
  journal_syncer_ = std::make_shared<JournalSyncer>(files_, directory_);
  db_options.listeners.push_back(journal_syncer_);
  std::vector<::rocksdb::ColumnFamilyHandle*> handles;
  ::rocksdb::DB* db = nullptr;
  const auto status = ::rocksdb::DB::Open(db_options, directory_.database,
                                          family_descriptors(options), &handles, &db);
  if (!status.ok()) return to_error(status, directory_.path);
  db_.reset(db);
  default_family_ = handles.front();
  families_.assign(handles.begin() + 1, handles.end());
  return ok();
}

Status Database::check_format() {
  const auto version = read_format(*db_, family(Keyspace::meta), directory_.path);
  if (!version) return version.error();
  if (!*version) return write_format();
  if (**version > kFormatVersion) return newer_format(directory_.path, **version);
  return ok();
}

// For a new database, or one whose making was interrupted. Synced: it stands before all data.
Status Database::write_format() {
  for (auto* family : families_) {
    const std::unique_ptr<::rocksdb::Iterator> at(
        db_->NewIterator(::rocksdb::ReadOptions(), family));
    at->SeekToFirst();
    if (!at->status().ok()) return to_error(at->status(), directory_.path);
    if (!at->Valid()) continue;
    return Error{Errc::corrupt, "data directory " + directory_.path +
                                    " is damaged: it holds data but no format version"};
  }
  ::rocksdb::WriteOptions synced;
  synced.sync = true;
  return to_status(db_->Put(synced, family(Keyspace::meta), std::string(kFormatKey),
                            encode_format_version(kFormatVersion)),
                   directory_.path);
}

std::optional<Error> Database::journal_failure() const { return journal_syncer_->failure(); }

Database::~Database() {
  if (!db_) return;
  for (auto* family : families_) db_->DestroyColumnFamilyHandle(family);
  db_->DestroyColumnFamilyHandle(default_family_);
  (void)db_->Close();
}

}  // namespace reprise::storage
