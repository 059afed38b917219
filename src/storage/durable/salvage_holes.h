// What stands beside an unreadable block. A block of tombstones may reach over thousands of jobs in
// other tables; an iterator that cannot pass it cannot show them either. Read table by table they
// are there, and a lookup tells of each whether it still counts, as long as it need not ask the
// unreadable block itself: its filter mostly says that it need not.
#pragma once

#include <rocksdb/db.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/durable/merged_cursor.h"
#include "storage/durable/salvage_report.h"

namespace reprise::storage {

class HoleReader {
 public:
  // Of one family. The database must outlive this.
  HoleReader(::rocksdb::DB& db, ::rocksdb::ColumnFamilyHandle* family);
  ~HoleReader();
  HoleReader(const HoleReader&) = delete;
  HoleReader& operator=(const HoleReader&) = delete;

  // Keys in [from, until) that can be read and were not erased; an empty `until`: to the end.
  void enter(std::string_view from, std::string_view until);
  bool valid() const { return !key_.empty(); }
  std::string_view key() const { return key_; }
  std::string_view value() const { return value_; }
  void next();
  // What is unreadable may have had a later word on this key.
  bool doubtful() const { return doubtful_; }

 private:
  struct Table;
  struct OpenTable;

  void open_tables();
  OpenTable* first();
  void settle();

  ::rocksdb::DB& db_;
  ::rocksdb::ColumnFamilyHandle* const family_;
  std::vector<Table> tables_;  // by their first keys
  DamageLog unheard_;          // has been told of already

  std::string from_;
  std::string until_;
  std::size_t next_table_ = 0;
  std::vector<std::unique_ptr<OpenTable>> open_;
  std::string key_;
  std::string value_;
  bool doubtful_ = false;
};

}  // namespace reprise::storage
