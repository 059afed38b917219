// TableWriter: brings what a checkpoint holds into the database as whole table files, all at once
// or not at all. Nothing goes through a memtable, and a file goes straight to the lowest level
// where nothing overlaps it: a growing backlog is written once and never again.
#pragma once

#include <rocksdb/sst_file_writer.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/rocksdb/database.h"
#include "storage/rocksdb/write_behind_files.h"

namespace reprise::storage {

class TableWriter {
 public:
  // `directory` is on the same file system as the database and ours alone. One at a time.
  // `pace`: see write_behind_files.h.
  TableWriter(Database& database, std::string directory, const Pace& pace = kFullSpeed);
  ~TableWriter();
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;

  // One family after the other; keys of a family in rising order.
  Status put(::rocksdb::ColumnFamilyHandle* family, std::string_view key, std::string_view value);
  Status erase(::rocksdb::ColumnFamilyHandle* family, std::string_view key);

  // Durable when it returns.
  Status ingest();

 private:
  enum class Kind : std::uint8_t { put, erase };

  Status prepare(::rocksdb::ColumnFamilyHandle* family, std::string_view key, Kind kind);
  Status begin_file(::rocksdb::ColumnFamilyHandle* family);
  ::rocksdb::Status open_file(::rocksdb::ColumnFamilyHandle* family,
                              const ::rocksdb::Options& options, const std::string& path);
  Status finish_file();
  bool ends_file(std::string_view key, Kind kind) const;
  Status checked(const ::rocksdb::Status& status) const;

  Database& database_;
  const std::string directory_;
  std::unique_ptr<::rocksdb::Env> write_behind_;  // null: files go the database's own way
  std::map<::rocksdb::ColumnFamilyHandle*, std::vector<std::string>> files_;
  std::uint64_t files_made_ = 0;

  // The file being written.
  std::unique_ptr<::rocksdb::SstFileWriter> writer_;
  ::rocksdb::ColumnFamilyHandle* family_ = nullptr;
  std::string queue_;  // the front of its last key
  Kind kind_{};
  std::uint64_t entries_ = 0;
  std::uint64_t bytes_ = 0;  // of keys and values
  bool compresses_ = true;
};

}  // namespace reprise::storage
