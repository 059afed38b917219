#include "storage/durable/salvage_tables.h"

#include <rocksdb/metadata.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/utilities/debug.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "storage/durable/salvage_cursor.h"
#include "storage/keys.h"
#include "storage/records.h"
#include "storage/rocksdb/sequence_check.h"
#include "storage/rocksdb/status.h"
#include "storage/rocksdb/tuning.h"

namespace reprise::storage {
namespace {

namespace fs = std::filesystem;
using ::rocksdb::ColumnFamilyHandle;

constexpr std::size_t kBatchBytes = 4U << 20;
constexpr std::size_t kVersionsAtATime = 256;
constexpr char kVersionsFamilyName[] = "versions";
// RocksDB's marks of erasures, as GetAllKeyVersions() shows them.
constexpr int kTypeDeletion = 0;
constexpr int kTypeSingleDeletion = 7;

std::uint64_t progress_of(const QueueTotals& totals) {
  return totals.pushed + totals.duplicates + totals.claimed + totals.completed + totals.failed +
         totals.released + totals.lease_expired + totals.expired + totals.died + totals.dropped +
         totals.moved_in + totals.moved_out + totals.retried + totals.purged + totals.dead_expired +
         totals.dead_evicted;
}

// Whether `candidate` says more than `known` does. What cannot be read says nothing.
template <class Decode, class Later>
bool says_more(Decode decode, Later later, std::string_view candidate, std::string_view known) {
  const auto theirs = decode(candidate);
  const auto ours = decode(known);
  return theirs && (!ours || later(*theirs, *ours));
}

bool is_later_meta(std::string_view key, std::string_view candidate, std::string_view known) {
  if (key == kCheckpointKey) {
    return says_more(
        decode_checkpoint,
        [](const auto& a, const auto& b) { return a.covered_batch > b.covered_batch; }, candidate,
        known);
  }
  if (key == kServerKey) {
    return says_more(
        decode_server,
        [](const auto& a, const auto& b) {
          return std::pair(a.clock, a.next_seq) > std::pair(b.clock, b.next_seq);
        },
        candidate, known);
  }
  if (key.starts_with(kConfigPrefix)) {
    return says_more(
        decode_config, [](const auto& a, const auto& b) { return a.updated_at > b.updated_at; },
        candidate, known);
  }
  if (key.starts_with(kNotePrefix)) {  // it has no order of its own: the one that is met last
    return says_more(
        decode_note, [](const auto&, const auto&) { return true; }, candidate, known);
  }
  if (key.starts_with(kThrottlePrefix)) {
    return says_more(
        decode_throttle,
        [](const ThrottleRecord& a, const ThrottleRecord& b) {
          return std::pair(a.throttle.updated_at, a.level.at) >
                 std::pair(b.throttle.updated_at, b.level.at);
        },
        candidate, known);
  }
  if (key.starts_with(kOperationPrefix)) {
    return says_more(
        decode_operation,
        [](const Operation& a, const Operation& b) {
          return std::pair(a.state, a.done) > std::pair(b.state, b.done);
        },
        candidate, known);
  }
  if (key.starts_with(kAuditPrefix)) {
    return says_more(
        decode_audit, [](const auto& a, const auto& b) { return a.done > b.done; }, candidate,
        known);
  }
  if (key.starts_with(kWebhookPrefix)) {
    return says_more(
        decode_ended, [](const auto&, const auto&) { return false; }, candidate, known);
  }
  return says_more(
      decode_totals, [](const auto& a, const auto& b) { return progress_of(a) > progress_of(b); },
      candidate, known);
}

bool is_later(Keyspace keyspace, std::string_view key, std::string_view candidate,
              std::string_view known) {
  switch (keyspace) {
    case Keyspace::meta:
      return is_later_meta(key, candidate, known);
    case Keyspace::queues:  // of one queue's versions the one that is met last
      return says_more(
          decode_queue, [](const auto& a, const auto& b) { return a.number >= b.number; },
          candidate, known);
    case Keyspace::states:
      return says_more(
          decode_state,
          [](const JobState& a, const JobState& b) {
            return std::tuple(a.generation, a.attempts, a.failures, a.lease_deadline, a.due) >
                   std::tuple(b.generation, b.attempts, b.failures, b.lease_deadline, b.due);
          },
          candidate, known);
    case Keyspace::keys:
      return says_more(
          decode_key_entry, [](const auto& a, const auto& b) { return a.seq > b.seq; }, candidate,
          known);
    case Keyspace::jobs:
      return says_more(
          decode_job, [](const auto&, const auto&) { return false; }, candidate, known);
    case Keyspace::dead:
    case Keyspace::completed:
      return says_more(
          decode_ended,
          [](const EndedJob& a, const EndedJob& b) {
            return a.state->ended_at > b.state->ended_at;
          },
          candidate, known);
    case Keyspace::endings:
      return says_more(
          decode_ending, [](const auto&, const auto&) { return false; }, candidate, known);
  }
  return false;
}

std::optional<Keyspace> keyspace_of(const std::string& family) {
  const auto found = std::ranges::find(kAllKeyspaces, family, keyspace_name);
  if (found == kAllKeyspaces.end()) return std::nullopt;
  return *found;
}

class TableSalvage {
 public:
  TableSalvage(const std::string& directory, Database& into, DamageLog& damage)
      : directory_(directory), into_(into), damage_(damage) {}

  Status run() {
    std::vector<std::string> names;
    std::error_code why;
    for (const auto& entry : fs::directory_iterator(directory_, why)) {
      if (entry.path().extension() == ".sst") names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);  // as they were made
    for (const std::string& name : names) REPRISE_TRY(take_values(name));
    for (const Table& table : with_erasures_) REPRISE_TRY(take_erasures(table));
    return drop_deleted_queues();
  }

 private:
  struct Table {
    std::string name;
    Keyspace keyspace{};
  };

  std::string path_of(const std::string& name) const { return directory_ + "/" + name; }

  Status take_values(const std::string& name) {
    ::rocksdb::Options options;
    options.table_factory = into_->GetOptions(into_.family(Keyspace::meta)).table_factory;
    ::rocksdb::SstFileReader reader(options);
    std::error_code unknown;
    if (std::filesystem::is_empty(path_of(name), unknown) && !unknown) {
      damage_.noted(path_of(name) +
                    " is empty: it was being made when the server ended; if it was " +
                    "not, the jobs that are missing are counted");
      return ok();
    }
    if (const auto opened = reader.Open(path_of(name)); !opened.ok()) {
      damage_.lost(path_of(name) + " cannot be opened: " + opened.ToString());
      return ok();
    }
    const auto properties = reader.GetTableProperties();
    const auto keyspace = keyspace_of(properties->column_family_name);
    if (!keyspace) return ok();  // the index, which cannot be told to be the latest
    // Values are as they were: which is the latest is told by themselves.
    const Status sequence = check_sequence(*properties, path_of(name));
    if (!sequence) damage_.noted(sequence.error().detail);
    // Ranges are erased of deleted queues only, and those are told by their totals.
    if (properties->num_deletions > properties->num_range_deletions) {
      // Importing a table takes it to be whole.
      if (const auto whole = reader.VerifyChecksum(); whole.ok() && sequence) {
        with_erasures_.push_back({name, *keyspace});
      } else {
        damage_.lost(path_of(name) + ": what it says was erased is lost" +
                     (whole.ok() ? std::string() : ": " + whole.ToString()));
      }
    }
    const auto at = make_skipping_cursor(
        std::unique_ptr<::rocksdb::Iterator>(reader.NewIterator(::rocksdb::ReadOptions())),
        properties->column_family_name, damage_);
    for (; at->valid(); at->next()) {
      REPRISE_TRY(take({name, *keyspace}, at->key(), at->value()));
    }
    return write();
  }

  Status take(const Table& table, std::string_view key, std::string_view value) {
    const Keyspace keyspace = table.keyspace;
    if (is_note(keyspace, key)) note_tables_.insert_or_assign(std::string(key), table.name);
    auto* family = into_.family(keyspace);
    // What waits to be written is not seen by a read, but keys repeat in other tables only.
    const auto known = into_.read({}, family, key);
    if (!known) return known.error();
    if (*known && !is_later(keyspace, key, value, **known)) return ok();
    batch_.Put(family, {key.data(), key.size()}, {value.data(), value.size()});
    return batch_.GetDataSize() < kBatchBytes ? ok() : write();
  }

  Status write() {
    const auto status = into_->Write(write_without_log(), &batch_);
    batch_.Clear();
    return to_status(status, into_.options().directory);
  }

  // Iterators do not show erasures. A table in a family of its own has versions, and they do.
  Status take_erasures(const Table& table) {
    ::rocksdb::LiveFileMetaData file;
    file.name = "/" + table.name;
    file.db_path = directory_;
    file.level = 0;
    ::rocksdb::ExportImportFilesMetaData files;
    files.db_comparator_name = ::rocksdb::BytewiseComparator()->Name();
    files.files.push_back(std::move(file));
    ColumnFamilyHandle* versions = nullptr;
    const auto imported = into_->CreateColumnFamilyWithImport(
        into_->GetOptions(into_.family(table.keyspace)), kVersionsFamilyName,
        ::rocksdb::ImportColumnFamilyOptions(), files, &versions);
    if (!imported.ok()) {
      damage_.lost(path_of(table.name) +
                   ": what it says was erased cannot be read: " + imported.ToString());
      return ok();
    }
    Status taken = take_erasures(table, versions);
    const auto dropped = into_->DropColumnFamily(versions);
    into_->DestroyColumnFamilyHandle(versions);
    REPRISE_TRY(taken);
    return to_status(dropped, into_.options().directory);
  }

  Status take_erasures(const Table& table, ColumnFamilyHandle* versions) {
    std::string from;
    while (true) {
      std::vector<::rocksdb::KeyVersion> found;
      const auto status =
          ::rocksdb::GetAllKeyVersions(into_.get(), versions, from, {}, kVersionsAtATime, &found);
      REPRISE_TRY(to_status(status, into_.options().directory));
      for (const auto& version : found) {
        if (version.type == kTypeDeletion || version.type == kTypeSingleDeletion) {
          erase(table, version.user_key);
        }
      }
      REPRISE_TRY(write());
      if (found.size() < kVersionsAtATime) return ok();
      from = found.back().user_key + '\0';
    }
  }

  // Keys are forgotten when they are over, and may come again; queues have numbers.
  void erase(const Table& table, const std::string& key) {
    const Keyspace keyspace = table.keyspace;
    // Endings are made anew from what ended.
    if (keyspace == Keyspace::jobs || keyspace == Keyspace::states || keyspace == Keyspace::dead ||
        keyspace == Keyspace::completed) {
      batch_.Delete(into_.family(keyspace), key);
    } else if (const auto queue = parse_totals_key(key); keyspace == Keyspace::meta && queue) {
      deleted_queues_.push_back(*queue);
    } else if (is_note(keyspace, key)) {
      // It may have been written again later. Tables are named in the order they were made in.
      const auto written = note_tables_.find(key);
      if (written != note_tables_.end() && written->second < table.name) {
        batch_.Delete(into_.family(keyspace), key);
      }
    }
  }
  static bool is_note(Keyspace keyspace, std::string_view key) {
    return keyspace == Keyspace::meta && key.starts_with(kNotePrefix);
  }

  // A queue's number is never used again.
  Status drop_deleted_queues() {
    for (const QueueNumber queue : deleted_queues_) {
      batch_.Delete(into_.family(Keyspace::meta), totals_key(queue));
      for (const Keyspace keyspace : kQueueKeyspaces) {
        batch_.DeleteRange(into_.family(keyspace), queue_begin(queue), queue_end(queue));
      }
    }
    auto* queues = into_.family(Keyspace::queues);
    const std::unique_ptr<::rocksdb::Iterator> at(
        into_->NewIterator(::rocksdb::ReadOptions(), queues));
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      const auto record = decode_queue(at->value().ToStringView());
      if (record && std::ranges::find(deleted_queues_, record->number) != deleted_queues_.end()) {
        batch_.Delete(queues, at->key());
      }
    }
    return write();
  }

  const std::string& directory_;
  Database& into_;
  DamageLog& damage_;
  ::rocksdb::WriteBatch batch_;
  std::vector<Table> with_erasures_;
  std::vector<QueueNumber> deleted_queues_;
  std::map<std::string, std::string> note_tables_;  // by the key of a note: the last that has it
};

}  // namespace

Result<std::unique_ptr<Database>> rebuild_from_tables(const std::string& directory,
                                                      const std::string& into, DamageLog& damage) {
  auto database = Database::open({.directory = into});
  if (!database) return database.error();
  REPRISE_TRY(TableSalvage(directory, **database, damage).run());
  return database;
}

}  // namespace reprise::storage
