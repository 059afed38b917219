#include "storage/rocksdb/table_ranges.h"

#include <rocksdb/metadata.h>

#include <algorithm>
#include <utility>

namespace reprise::storage {
namespace {

std::vector<TableRanges::Table> tables_of(const Database& database,
                                          ::rocksdb::ColumnFamilyHandle* family) {
  ::rocksdb::ColumnFamilyMetaData known;
  database->GetColumnFamilyMetaData(family, &known);
  std::vector<TableRanges::Table> tables;
  tables.reserve(known.file_count);
  for (auto& level : known.levels) {
    for (const auto& file : level.files) {
      tables.push_back({.first = file.smallestkey,
                        .last = file.largestkey,
                        .level = level.level,
                        .path = file.db_path + file.name});
    }
  }
  return tables;
}

}  // namespace

TableRanges::TableRanges(const Database& database, ::rocksdb::ColumnFamilyHandle* family)
    : TableRanges(tables_of(database, family)) {}

TableRanges::TableRanges(std::vector<Table> tables) : tables_(std::move(tables)) {
  std::ranges::sort(tables_, {}, &Table::first);
  furthest_.reserve(tables_.size());
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    const bool reaches_further = i == 0 || tables_[furthest_.back()].last < tables_[i].last;
    furthest_.push_back(reaches_further ? i : furthest_.back());
  }
}

bool TableRanges::may_hold(std::string_view key) const {
  const auto behind = std::ranges::upper_bound(tables_, key, {}, &Table::first);
  if (behind == tables_.begin()) return false;
  const auto before = static_cast<std::size_t>(behind - tables_.begin()) - 1;
  return key <= tables_[furthest_[before]].last;
}

std::vector<TableRanges::Table> TableRanges::alone() const {
  std::vector<Table> alone;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    const Table& table = tables_[i];
    if (i > 0 && tables_[furthest_[i - 1]].last >= table.first) continue;
    if (i + 1 < tables_.size() && tables_[i + 1].first <= table.last) continue;
    alone.push_back(table);
  }
  return alone;
}

}  // namespace reprise::storage
