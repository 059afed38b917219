// TableRanges: which keys the tables of a family may hold, by the first and the last key of each.
// A compaction that runs meanwhile changes nothing of it: what it writes it has read. Only whoever
// brings tables in does. Memtables are not looked at: none has anything but erased ranges.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "storage/rocksdb/database.h"

namespace reprise::storage {

class TableRanges {
 public:
  struct Table {
    std::string first;
    std::string last;
    int level = 0;
    std::string path;
  };

  TableRanges(const Database& database, ::rocksdb::ColumnFamilyHandle* family);
  explicit TableRanges(std::vector<Table> tables);

  // Whether some table reaches over this key.
  bool may_hold(std::string_view key) const;
  // Those that reach over no key that another one reaches over: what they say hides nothing
  // elsewhere, and nothing elsewhere hides what they say.
  std::vector<Table> alone() const;

 private:
  std::vector<Table> tables_;          // by their first keys
  std::vector<std::size_t> furthest_;  // for each, which of it and those before it reaches furthest
};

}  // namespace reprise::storage
