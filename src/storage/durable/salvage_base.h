// SalvagedBase: what can be read of a base, whatever its condition. Nothing is written to its
// directory.
#pragma once

#include <rocksdb/db.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "storage/durable/salvage_cursor.h"
#include "storage/durable/salvage_report.h"
#include "storage/keyspace.h"
#include "storage/records.h"
#include "storage/rocksdb/database.h"

namespace reprise::storage {

class SalvagedBase {
 public:
  // `scratch` is a directory of ours, for what has to be made anew; it may be large.
  // Errc::io: a format that this build does not read; that is not damage.
  static Result<std::unique_ptr<SalvagedBase>> open(const std::string& directory,
                                                    const std::string& scratch, DamageLog& damage);
  ~SalvagedBase();
  SalvagedBase(const SalvagedBase&) = delete;
  SalvagedBase& operator=(const SalvagedBase&) = delete;

  // Cursors that step over what cannot be read, and never fail.
  std::unique_ptr<SkippingCursor> cursor(Keyspace keyspace) const;
  std::unique_ptr<SkippingCursor> index() const;
  // Whether the index is that of the jobs: what is missing of them shows.
  bool has_index() const { return has_index_; }
  // False: erased ranges, of deleted queues, may be shown. RocksDB 7.8 crashes when it looks for
  // them in tables that cannot be opened, and passes over damaged blocks without a word.
  bool knows_erased_ranges() const { return knows_erased_ranges_; }
  // After everything was read: names the damaged tables that no cursor has complained about.
  void tell_other_damage() const;
  // nullopt: it cannot be read.
  const std::optional<CheckpointRecord>& checkpoint() const { return checkpoint_; }

 private:
  explicit SalvagedBase(DamageLog& damage) : damage_(damage) {}

  bool open_as_it_is(const std::string& directory);
  bool open_with_other_manifest(const std::string& directory, const std::string& scratch);
  bool has_all_tables() const;
  void try_tables();
  Status rebuild(const std::string& directory, const std::string& scratch);
  Status check_format(const std::string& directory);
  void read_checkpoint();
  void close();
  ::rocksdb::ColumnFamilyHandle* family(const std::string& name) const;
  std::unique_ptr<SkippingCursor> cursor(const std::string& name) const;

  DamageLog& damage_;
  // Either of them.
  std::unique_ptr<::rocksdb::DB> read_only_;
  std::unique_ptr<Database> rebuilt_;
  ::rocksdb::DB* db_ = nullptr;                                     // null: there is nothing
  std::map<std::string, ::rocksdb::ColumnFamilyHandle*> families_;  // owned by read_only_, or not
  bool has_index_ = false;
  bool knows_erased_ranges_ = true;
  std::map<std::string, std::string> damaged_tables_;  // by name: what is wrong with them
  std::string problem_;                                // why the last attempt to open failed
  std::optional<CheckpointRecord> checkpoint_;
};

}  // namespace reprise::storage
