#include "storage/rocksdb/database.h"

#include <rocksdb/sst_file_reader.h>

#include <algorithm>
#include <utility>

#include "storage/keys.h"
#include "storage/rocksdb/sequence_check.h"
#include "storage/rocksdb/status.h"
#include "storage/rocksdb/tuning.h"

namespace reprise::storage {
namespace {

using ::rocksdb::ColumnFamilyDescriptor;
using ::rocksdb::kDefaultColumnFamilyName;

// The default column family first, then the keyspaces in order, the index last: where that is, all
// are.
std::vector<ColumnFamilyDescriptor> family_descriptors(const DatabaseOptions& options) {
  const auto cache = make_block_cache(options);
  std::vector<ColumnFamilyDescriptor> families;
  families.emplace_back(kDefaultColumnFamilyName, keyspace_options(options, Keyspace::meta, cache));
  for (const Keyspace keyspace : kAllKeyspaces) {
    families.emplace_back(std::string(keyspace_name(keyspace)),
                          keyspace_options(options, keyspace, cache));
  }
  families.emplace_back(kIndexFamilyName, index_options(options, cache));
  return families;
}

bool is_known_family(const std::string& name) {
  return name == kDefaultColumnFamilyName || name == kIndexFamilyName ||
         std::ranges::find(kAllKeyspaces, name, keyspace_name) != kAllKeyspaces.end();
}

// The first in which something is wrong already when it is opened. Nothing: there is none.
std::optional<Error> find_unopenable_table(const DatabaseOptions& options) {
  const ::rocksdb::Options reading(
      database_options(options),
      keyspace_options(options, Keyspace::meta, make_block_cache(options)));
  std::vector<std::string> names;
  if (!reading.env->GetChildren(options.directory, &names).ok()) return std::nullopt;
  std::ranges::sort(names);
  for (const std::string& name : names) {
    if (!name.ends_with(".sst")) continue;
    const std::string path = options.directory + "/" + name;
    ::rocksdb::SstFileReader reader(reading);
    const auto status = reader.Open(path);
    if (status.IsCorruption()) return to_error(status, path);
    if (!status.ok()) continue;
    if (const Status right = check_sequence(*reader.GetTableProperties(), path); !right) {
      return right.error();
    }
  }
  return std::nullopt;
}

// A file that should be there and is not is damage too.
Error reading_error(const ::rocksdb::Status& status, const std::string& directory) {
  if (!status.IsPathNotFound()) return to_error(status, directory);
  const std::string said = describe(status);
  // The manifest is found by what CURRENT says, which may be the one that is wrong.
  const bool by_current = said.find("/MANIFEST-") != std::string::npos;
  return {Errc::corrupt,
          directory + (by_current ? "/CURRENT, or what it names," : "") + " is damaged: " + said};
}

Error opening_error(const ::rocksdb::Status& status, const DatabaseOptions& options) {
  // RocksDB names its manifest when it cannot open a table of it.
  if (status.IsCorruption()) {
    if (auto table = find_unopenable_table(options)) return *std::move(table);
  }
  return reading_error(status, options.directory);
}

// nullopt: there is none.
Result<std::optional<std::string>> read_meta(::rocksdb::DB& db, ::rocksdb::ColumnFamilyHandle* meta,
                                             std::string_view key, const std::string& directory) {
  std::string value;
  const auto status =
      db.Get(::rocksdb::ReadOptions(), meta, ::rocksdb::Slice(key.data(), key.size()), &value);
  if (status.IsNotFound()) return std::optional<std::string>();
  if (!status.ok()) return to_error(status, directory);
  return std::optional(std::move(value));
}

Status check_version(const std::string& directory, std::uint32_t found) {
  if (reads_format(found)) return ok();
  const std::string has = "data directory " + directory + " " + describe_other_format(found);
  if (found > kFormatVersion) {
    return Error{Errc::io, has +
                               "; run the newer reprise that wrote it, or choose another --data "
                               "directory"};
  }
  return Error{Errc::io, has +
                             "; empty its queues with the older reprise that wrote it, or choose "
                             "another --data directory"};
}

// nullopt: there is none, because the making of the database was interrupted.
Result<std::optional<CheckpointRecord>> read_checkpoint(::rocksdb::DB& db,
                                                        ::rocksdb::ColumnFamilyHandle* meta,
                                                        const std::string& directory) {
  const auto format = read_meta(db, meta, kFormatKey, directory);
  if (!format) return format.error();
  if (*format) {
    const auto version = decode_format_version(**format);
    if (!version) return version.error();
    REPRISE_TRY(check_version(directory, *version));
  }
  const auto bytes = read_meta(db, meta, kCheckpointKey, directory);
  if (!bytes) return bytes.error();
  if (!*format || !*bytes) return std::optional<CheckpointRecord>();
  const auto record = decode_checkpoint(**bytes);
  if (!record) return record.error();
  return std::optional(*record);
}

}  // namespace

Result<std::optional<CheckpointRecord>> Database::inspect(const DatabaseOptions& options) {
  const auto db_options = database_options(options);
  std::vector<std::string> names;
  auto status = ::rocksdb::DB::ListColumnFamilies(db_options, options.directory, &names);
  if (!status.ok()) return opening_error(status, options);
  std::optional<CheckpointRecord> checkpoint;
  if (std::ranges::find(names, keyspace_name(Keyspace::meta)) != names.end()) {
    const auto all = family_descriptors(options);
    const std::vector default_and_meta(all.begin(), all.begin() + 2);
    std::vector<::rocksdb::ColumnFamilyHandle*> handles;
    ::rocksdb::DB* opened = nullptr;
    status = ::rocksdb::DB::OpenForReadOnly(db_options, options.directory, default_and_meta,
                                            &handles, &opened);
    if (!status.ok()) return opening_error(status, options);
    const std::unique_ptr<::rocksdb::DB> db(opened);
    const auto found = read_checkpoint(*db, handles.back(), options.directory);
    for (auto* handle : handles) db->DestroyColumnFamilyHandle(handle);
    if (!found) return found.error();
    checkpoint = *found;
  }
  // Another format may have other keyspaces, which RocksDB would answer with an obscure error.
  const auto unknown = std::ranges::find_if_not(names, is_known_family);
  if (unknown == names.end()) return checkpoint;
  return Error{Errc::corrupt, "data directory " + options.directory + " is damaged: keyspace " +
                                  *unknown + " is not of its format"};
}

Result<std::unique_ptr<Database>> Database::open(const DatabaseOptions& options) {
  std::unique_ptr<Database> database(new Database(options));
  auto* env = options.env == nullptr ? ::rocksdb::Env::Default() : options.env;
  database->is_new_ = !env->FileExists(options.directory + "/CURRENT").ok();
  REPRISE_TRY(database->open_families());
  const auto checkpoint =
      read_checkpoint(*database->db_, database->family(Keyspace::meta), options.directory);
  if (!checkpoint) return checkpoint.error();
  if (!*checkpoint) REPRISE_TRY(database->require_empty());
  database->checkpoint_ = *checkpoint;
  return database;
}

Status Database::open_families() {
  auto db_options = database_options(options_);
  db_options.create_if_missing = is_new_;
  if (options_.env == nullptr) {
    deletion_ = std::make_unique<TableDeletion>(options_.directory);
    db_options.env = deletion_->env();
  }
  std::vector<::rocksdb::ColumnFamilyHandle*> handles;
  ::rocksdb::DB* db = nullptr;
  const auto status = ::rocksdb::DB::Open(db_options, options_.directory,
                                          family_descriptors(options_), &handles, &db);
  if (!status.ok()) return opening_error(status, options_);
  db_.reset(db);
  default_family_ = handles.front();
  families_.assign(handles.begin() + 1, handles.end());
  return ok();
}

Status Database::require_empty() const {
  for (auto* family : families_) {
    const std::unique_ptr<::rocksdb::Iterator> at(
        db_->NewIterator(::rocksdb::ReadOptions(), family));
    at->SeekToFirst();
    if (!at->status().ok()) return to_error(at->status(), options_.directory);
    if (!at->Valid()) continue;
    return Error{Errc::corrupt, "data directory " + options_.directory +
                                    " is damaged: it holds data but no format version"};
  }
  return ok();
}

Result<std::optional<std::string>> Database::read(const ::rocksdb::ReadOptions& options,
                                                  ::rocksdb::ColumnFamilyHandle* family,
                                                  std::string_view key) const {
  std::string value;
  const auto status = db_->Get(options, family, {key.data(), key.size()}, &value);
  if (status.IsNotFound()) return std::optional<std::string>();
  if (!status.ok()) return reading_error(status, options_.directory);
  return std::optional(std::move(value));
}

Status Database::verify_tables(std::uint64_t bytes_max) const {
  // A compaction may be at work already, and would delete what it has replaced.
  REPRISE_TRY(to_status(db_->DisableFileDeletions(), options_.directory));
  std::vector<::rocksdb::LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  std::uint64_t total = 0;
  for (const auto& file : files) total += file.size;
  const Status verified = total > bytes_max ? ok() : verify(files);
  REPRISE_TRY(to_status(db_->EnableFileDeletions(false), options_.directory));
  return verified;
}

Status Database::verify(const std::vector<::rocksdb::LiveFileMetaData>& files) const {
  for (const auto& file : files) {
    const auto found = std::ranges::find(families_, file.column_family_name,
                                         &::rocksdb::ColumnFamilyHandle::GetName);
    if (found == families_.end()) continue;
    const std::string path = file.db_path + file.name;
    ::rocksdb::SstFileReader reader(db_->GetOptions(*found));
    auto status = reader.Open(path);
    if (status.ok()) status = reader.VerifyChecksum();
    if (!status.ok()) return to_error(status, path);
    REPRISE_TRY(check_sequence(*reader.GetTableProperties(), path));
  }
  return ok();
}

std::uint64_t Database::disk_bytes() const {
  std::vector<::rocksdb::Env::FileAttributes> attributes;
  if (!db_->GetEnv()->GetChildrenFileAttributes(options_.directory, &attributes).ok()) return 0;
  std::uint64_t total = 0;
  for (const auto& file : attributes) total += file.size_bytes;
  return total;
}

void Database::finish_deletions(const std::atomic<bool>& interrupted) const {
  if (deletion_) deletion_->finish(interrupted);
}

Database::~Database() {
  if (!db_) return;
  for (auto* family : families_) db_->DestroyColumnFamilyHandle(family);
  db_->DestroyColumnFamilyHandle(default_family_);
  (void)db_->Close();
}

}  // namespace reprise::storage
