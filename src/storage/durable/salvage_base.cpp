#include "storage/durable/salvage_base.h"

#include <rocksdb/env.h>
#include <rocksdb/sst_file_reader.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <utility>

#include "storage/durable/salvage_tables.h"
#include "storage/keys.h"
#include "storage/rocksdb/diary.h"
#include "storage/rocksdb/sequence_check.h"
#include "storage/rocksdb/status.h"
#include "storage/rocksdb/tuning.h"

namespace reprise::storage {
namespace {

namespace fs = std::filesystem;
using ::rocksdb::ColumnFamilyDescriptor;
using ::rocksdb::ColumnFamilyHandle;

constexpr std::string_view kManifestPrefix = "MANIFEST-";

// Nothing is written, and a file that is missing is an error of what is read, not of all.
::rocksdb::DBOptions reading_options() {
  ::rocksdb::DBOptions options;
  options.info_log = make_no_diary();
  options.paranoid_checks = false;
  options.max_open_files = 256;
  return options;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code why;
  for (const auto& entry : fs::directory_iterator(directory, why)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

// Newest first.
std::vector<std::string> manifests_in(const std::string& directory) {
  std::vector<std::string> manifests;
  for (std::string& name : names_in(directory)) {
    if (name.starts_with(kManifestPrefix)) manifests.push_back(std::move(name));
  }
  const auto number = [](const std::string& name) {
    std::uint64_t value = 0;
    std::from_chars(name.data() + kManifestPrefix.size(), name.data() + name.size(), value);
    return value;
  };
  std::ranges::sort(manifests, std::ranges::greater(), number);
  return manifests;
}

}  // namespace

Result<std::unique_ptr<SalvagedBase>> SalvagedBase::open(const std::string& directory,
                                                         const std::string& scratch,
                                                         DamageLog& damage) {
  std::unique_ptr<SalvagedBase> base(new SalvagedBase(damage));
  std::error_code why;
  if (!fs::is_directory(directory, why)) {
    damage.lost(directory + " is missing");
    return base;
  }
  if (!base->open_as_it_is(directory)) {
    damage.noted(directory + " cannot be opened: " + base->problem_);
    if (!base->open_with_other_manifest(directory, scratch)) {
      REPRISE_TRY(base->rebuild(directory, scratch));
    }
  }
  base->try_tables();
  REPRISE_TRY(base->check_format(directory));
  base->read_checkpoint();
  return base;
}

SalvagedBase::~SalvagedBase() { close(); }

void SalvagedBase::close() {
  if (read_only_) {
    for (const auto& [name, handle] : families_) read_only_->DestroyColumnFamilyHandle(handle);
  }
  families_.clear();
  read_only_.reset();
  rebuilt_.reset();
  db_ = nullptr;
}

bool SalvagedBase::open_as_it_is(const std::string& directory) {
  const auto options = reading_options();
  std::vector<std::string> names;
  auto status = ::rocksdb::DB::ListColumnFamilies(options, directory, &names);
  std::vector<ColumnFamilyDescriptor> descriptors;
  const DatabaseOptions tuning{.directory = directory};
  const auto cache = make_block_cache(tuning);
  for (const std::string& name : names) {
    descriptors.emplace_back(name, keyspace_options(tuning, Keyspace::meta, cache));
  }
  std::vector<ColumnFamilyHandle*> handles;
  ::rocksdb::DB* db = nullptr;
  if (status.ok()) {
    status = ::rocksdb::DB::OpenForReadOnly(options, directory, descriptors, &handles, &db);
  }
  if (!status.ok()) {
    problem_ = describe(status);
    return false;
  }
  read_only_.reset(db);
  db_ = db;
  for (ColumnFamilyHandle* handle : handles) families_.emplace(handle->GetName(), handle);
  has_index_ = true;
  return true;
}

// When it is CURRENT that is damaged: a directory of our own with links to the same files, and a
// CURRENT for each manifest in turn, the newest first. One without the index was never finished;
// one whose tables are gone is of an earlier time.
bool SalvagedBase::open_with_other_manifest(const std::string& directory,
                                            const std::string& scratch) {
  const std::string links = scratch + "/links";
  std::error_code why;
  fs::create_directories(links, why);
  for (const std::string& name : names_in(directory)) {
    if (name != "CURRENT" && name != "LOCK") {
      fs::create_symlink(fs::absolute(directory) / name, links + "/" + name, why);
    }
  }
  const auto manifests = manifests_in(directory);
  for (const std::string& manifest : manifests) {
    std::ofstream(links + "/CURRENT", std::ios::trunc) << manifest << "\n";
    if (open_as_it_is(links)) {
      if (families_.contains(kIndexFamilyName) &&
          (manifest == manifests.front() || has_all_tables())) {
        damage_.noted(directory + " is read by its " + manifest);
        return true;
      }
      problem_ = "it is not the latest";
      close();
    }
    damage_.noted(directory + "/" + manifest + " cannot be used: " + problem_);
  }
  return false;
}

bool SalvagedBase::has_all_tables() const {
  std::vector<::rocksdb::LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  return std::ranges::all_of(files, [](const auto& file) {
    std::error_code why;
    return fs::exists(file.db_path + file.name, why);
  });
}

// Names those that cannot be opened at all. What is damaged in the others, the cursors find; but
// they must not look for erased ranges then: RocksDB 7.8 loses the error of a table's first block
// on the way from one table to the next when it does, and the block is skipped without a word.
void SalvagedBase::try_tables() {
  std::vector<::rocksdb::LiveFileMetaData> files;
  db_->GetLiveFilesMetaData(&files);
  for (const auto& file : files) {
    const std::string path = file.db_path + file.name;
    ::rocksdb::SstFileReader reader(db_->GetOptions(family(file.column_family_name)));
    const auto opened = reader.Open(path);
    if (!opened.ok()) damage_.lost(path + " cannot be opened: " + opened.ToString());
    const auto verified = opened.ok() ? reader.VerifyChecksum() : opened;
    std::string problem;
    if (!verified.ok()) {
      problem = path + ": " + verified.ToString();
    } else if (const auto checked = check_sequence(*reader.GetTableProperties(), path); !checked) {
      problem = checked.error().detail;
    } else {
      continue;
    }
    knows_erased_ranges_ = false;
    damaged_tables_.emplace(file.name, std::move(problem));
  }
}

void SalvagedBase::tell_other_damage() const {
  for (const auto& [name, what] : damaged_tables_) {
    if (!damage_.mentions(name)) damage_.lost(what);
  }
}

Status SalvagedBase::rebuild(const std::string& directory, const std::string& scratch) {
  damage_.noted(directory + " is put together again from its table files");
  auto rebuilt = rebuild_from_tables(directory, scratch + "/rebuilt", damage_);
  if (!rebuilt) return rebuilt.error();
  rebuilt_ = *std::move(rebuilt);
  db_ = rebuilt_->get();
  has_index_ = false;
  for (ColumnFamilyHandle* handle : rebuilt_->families()) {
    families_.emplace(handle->GetName(), handle);
  }
  return ok();
}

Status SalvagedBase::check_format(const std::string& directory) {
  auto* meta = family(std::string(keyspace_name(Keyspace::meta)));
  if (meta == nullptr) return ok();
  std::string bytes;
  const auto status = db_->Get(::rocksdb::ReadOptions(), meta, std::string(kFormatKey), &bytes);
  const auto version = decode_format_version(bytes);
  if (!status.ok() || !version || reads_format(*version)) return ok();
  return Error{Errc::io, directory + " " + describe_other_format(*version) +
                             "; use the reprise that wrote it"};
}

void SalvagedBase::read_checkpoint() {
  auto* meta = family(std::string(keyspace_name(Keyspace::meta)));
  std::string bytes;
  if (meta != nullptr) {
    const auto status =
        db_->Get(::rocksdb::ReadOptions(), meta, std::string(kCheckpointKey), &bytes);
    if (const auto record = decode_checkpoint(bytes); status.ok() && record) {
      checkpoint_ = *record;
      return;
    }
  }
  damage_.noted("how far the base had come is not known: all of the journal is applied to it");
}

ColumnFamilyHandle* SalvagedBase::family(const std::string& name) const {
  const auto found = families_.find(name);
  return found == families_.end() ? nullptr : found->second;
}

std::unique_ptr<SkippingCursor> SalvagedBase::cursor(Keyspace keyspace) const {
  return cursor(std::string(keyspace_name(keyspace)));
}

std::unique_ptr<SkippingCursor> SalvagedBase::index() const { return cursor(kIndexFamilyName); }

std::unique_ptr<SkippingCursor> SalvagedBase::cursor(const std::string& name) const {
  auto* handle = family(name);
  if (handle == nullptr) {
    return make_skipping_cursor(std::unique_ptr<::rocksdb::Iterator>(::rocksdb::NewEmptyIterator()),
                                name, damage_);
  }
  ::rocksdb::ReadOptions options;
  options.fill_cache = false;
  // It would take the erased ranges of one table for those of the next, and free them twice.
  options.ignore_range_deletions = !knows_erased_ranges_;
  return make_skipping_cursor(
      std::unique_ptr<::rocksdb::Iterator>(db_->NewIterator(options, handle)), name, damage_,
      std::make_unique<HoleReader>(*db_, handle));
}

}  // namespace reprise::storage
