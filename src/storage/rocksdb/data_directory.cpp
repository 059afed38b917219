#include "storage/rocksdb/data_directory.h"

#include <rocksdb/env.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "storage/rocksdb/directory_lock.h"
#include "storage/rocksdb/status.h"

namespace reprise::storage {
namespace {

using ::rocksdb::FileSystem;
using ::rocksdb::IOOptions;

std::string parent_of(const std::string& path) {
  auto parent = std::filesystem::path(path).lexically_normal();
  if (!parent.has_filename()) parent = parent.parent_path();  // "x/" is "x"
  parent = parent.parent_path();
  return parent.empty() ? "." : parent.string();
}

Error cannot_create(const std::string& path, const std::error_code& why) {
  return Error{Errc::io, "cannot create data directory " + path + ": " + why.message()};
}

// With its parents. Each name is durable before the next directory is made in it.
Status create_on_disk(FileSystem& files, const std::string& path, mode_t mode) {
  std::error_code why;
  if (std::filesystem::is_directory(path, why)) return ok();
  const std::string parent = parent_of(path);
  REPRISE_TRY(create_on_disk(files, parent, 0777));
  if (::mkdir(path.c_str(), mode) == 0) return sync_directory(files, parent);
  if (errno == EEXIST && std::filesystem::is_directory(path, why)) return ok();  // just now
  return cannot_create(path, std::error_code(errno, std::generic_category()));
}

Result<std::vector<std::string>> list(FileSystem& files, const std::string& path) {
  std::vector<std::string> names;
  const auto listed = files.GetChildren(path, IOOptions(), &names, nullptr);
  if (listed.IsNotFound()) return names;
  if (!listed.ok()) return to_error(listed, path);
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
  return names;
}

bool holds(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// workers: what the server's workers keep beside the data.
// lost+found: the directory may be the root of a file system of its own.
bool may_be_ours(const std::string& name) {
  return name == kLockFileName || name == kDatabaseDirectoryName || name == kJournalDirectoryName ||
         name == kCheckpointDirectoryName || name == "workers" || name == "lost+found";
}

bool holds_data(const std::string& name) {
  return name.ends_with(".sst") || name.ends_with(".log");
}

}  // namespace

Result<DataDirectory> prepare_data_directory(FileSystem& files, const std::string& path,
                                             bool on_real_disk) {
  if (on_real_disk) {
    REPRISE_TRY(create_on_disk(files, path, 0700));
  } else {
    REPRISE_TRY(to_status(files.CreateDirIfMissing(path, IOOptions(), nullptr), path));
  }
  DataDirectory result{.path = path,
                       .database = path + "/" + kDatabaseDirectoryName,
                       .journal = path + "/" + kJournalDirectoryName,
                       .checkpoint = path + "/" + kCheckpointDirectoryName};
  const auto in_database = list(files, result.database);
  if (!in_database) return in_database.error();
  if (holds(*in_database, "CURRENT")) return result;

  // RocksDB would start afresh here and delete the files that it does not know.
  const auto data = std::ranges::find_if(*in_database, holds_data);
  if (data != in_database->end()) {
    return Error{Errc::corrupt,
                 "data directory " + path + " is damaged: " + result.database +
                     "/CURRENT is missing beside " + *data +
                     "; restore a backup, or copy what can be read with `reprise salvage`"};
  }
  const auto beside = list(files, path);
  if (!beside) return beside.error();
  const auto foreign = std::ranges::find_if_not(*beside, may_be_ours);
  if (foreign != beside->end()) {
    return Error{Errc::io, "directory " + path +
                               " is not empty and not a data directory of reprise (it holds " +
                               *foreign + "); choose an empty one"};
  }
  result.is_new = true;
  return result;
}

Status sync_new_directory(FileSystem& files, const DataDirectory& directory) {
  // The parent may be somebody else's and closed to us. If the directory is our making it was
  // synced then; this is for a first start that was interrupted.
  (void)sync_directory(files, parent_of(directory.path));
  return sync_directory(files, directory.path);
}

Status sync_directory(FileSystem& files, const std::string& path) {
  std::unique_ptr<::rocksdb::FSDirectory> directory;
  auto status = files.NewDirectory(path, IOOptions(), &directory, nullptr);
  if (status.ok()) status = directory->Fsync(IOOptions(), nullptr);
  return to_status(status, path);
}

Status make_directory(FileSystem& files, const std::string& path) {
  return to_status(files.CreateDirIfMissing(path, IOOptions(), nullptr), path);
}

Status delete_files_in(FileSystem& files, const std::string& path) {
  const auto names = list(files, path);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    const std::string file = path + "/" + name;
    REPRISE_TRY(to_status(files.DeleteFile(file, IOOptions(), nullptr), file));
  }
  return ok();
}

}  // namespace reprise::storage
