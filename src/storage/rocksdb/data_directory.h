// The data directory: `db` is RocksDB's, `journal` holds the journal's segments, `checkpoint` table
// files on their way into the database, `LOCK` names the process that owns it all.
#pragma once

#include <rocksdb/file_system.h>

#include <string>

#include "base/result.h"

namespace reprise::storage {

inline constexpr char kDatabaseDirectoryName[] = "db";
inline constexpr char kJournalDirectoryName[] = "journal";
inline constexpr char kCheckpointDirectoryName[] = "checkpoint";

struct DataDirectory {
  std::string path;
  std::string database;    // path + "/db"
  std::string journal;     // path + "/journal"
  std::string checkpoint;  // path + "/checkpoint"
  bool is_new = false;     // no database in it yet
};

// Makes the directory when it is not there (its parents too, itself with mode 0700 on a real file
// system), and looks at what is in it. Refused, with nothing changed: a directory of somebody
// else's files, and a database that has lost the file that RocksDB starts from.
Result<DataDirectory> prepare_data_directory(::rocksdb::FileSystem& files, const std::string& path,
                                             bool on_real_disk);

// Makes the names of a new directory's files durable, up to its parent: without this a power cut
// could take the whole directory away with everything in it that was synced.
Status sync_new_directory(::rocksdb::FileSystem& files, const DataDirectory& directory);

// Makes the names in a directory durable.
Status sync_directory(::rocksdb::FileSystem& files, const std::string& path);

// Makes a directory inside it, if it is not there.
Status make_directory(::rocksdb::FileSystem& files, const std::string& path);
Status delete_files_in(::rocksdb::FileSystem& files, const std::string& path);

}  // namespace reprise::storage
