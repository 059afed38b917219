#include "storage/durable/backup.h"

#include <rocksdb/env.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "storage/journal/journal.h"
#include "storage/keys.h"
#include "storage/rocksdb/data_directory.h"
#include "storage/rocksdb/status.h"

namespace reprise::storage {
namespace {

using ::rocksdb::FileOptions;
using ::rocksdb::IOOptions;
using ::rocksdb::LiveFileStorageInfo;
using ::rocksdb::Slice;

constexpr std::size_t kCopyBytes = 1U << 20;

std::shared_ptr<::rocksdb::FileSystem> file_system_of(const DurableOptions& options) {
  auto* env = options.env == nullptr ? ::rocksdb::Env::Default() : options.env;
  return env->GetFileSystem();
}

// An error of the copy's directory is not one of the storage.
Error as_backup_error(Error error) {
  if (error.code == Errc::io) error.code = Errc::backup_failed;
  return error;
}

// lost+found: the directory may be the root of a file system of its own.
Status check_empty(::rocksdb::FileSystem& files, const std::string& directory) {
  std::vector<std::string> names;
  const auto listed = files.GetChildren(directory, IOOptions(), &names, nullptr);
  if (listed.IsNotFound()) return ok();
  if (!listed.ok()) return as_backup_error(to_error(listed, directory));
  std::erase_if(names, [](const std::string& name) {
    return name == "." || name == ".." || name == "lost+found";
  });
  if (names.empty()) return ok();
  return Error{Errc::directory_not_empty, "directory " + directory + " is not empty (it holds " +
                                              *std::ranges::min_element(names) +
                                              "); name one that is not there yet"};
}

bool is_inside(const std::filesystem::path& path, const std::filesystem::path& directory) {
  const auto [rest, _] =
      std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
  return rest == directory.end();
}

class BackupWriter {
 public:
  BackupWriter(const PinnedBase& base, const std::string& directory, const DurableOptions& options,
               const std::atomic<bool>& interrupted)
      : base_(base),
        directory_(directory),
        options_(options),
        interrupted_(interrupted),
        files_(file_system_of(options)) {}

  Result<std::uint64_t> run() {
    const bool was_there = files_->FileExists(directory_, IOOptions(), nullptr).ok();
    Status written = write();
    if (written) return bytes_;
    remove(was_there);
    if (interrupted_) return Error{Errc::shutting_down, "the server is stopping"};
    return as_backup_error(written.error());
  }

 private:
  Status write() {
    auto paths = prepare_data_directory(*files_, directory_, options_.env == nullptr);
    if (!paths) return paths.error();
    paths_ = *std::move(paths);
    REPRISE_TRY(make_journal());
    REPRISE_TRY(make_directory(*files_, paths_.database));
    for (const LiveFileStorageInfo& file : base_.files()) {
      if (file.replacement_contents.empty()) REPRISE_TRY(copy(file));
    }
    REPRISE_TRY(sync_directory(*files_, paths_.database));
    for (const LiveFileStorageInfo& file : base_.files()) {
      if (!file.replacement_contents.empty()) REPRISE_TRY(write_replacement(file));
    }
    REPRISE_TRY(sync_directory(*files_, paths_.database));
    return sync_new_directory(*files_, paths_);
  }

  // A journal that goes on where the base ends.
  Status make_journal() {
    REPRISE_TRY(make_directory(*files_, paths_.journal));
    const auto journal = journal::Journal::start({.files = files_,
                                                  .on_real_disk = options_.env == nullptr,
                                                  .directory = paths_.journal,
                                                  .segment_bytes_min = options_.segment_bytes_min,
                                                  .segment_bytes_max = options_.segment_bytes_max,
                                                  .background = false},
                                                 base_.checkpoint().directory,
                                                 {.last_batch = base_.checkpoint().covered_batch});
    if (!journal) return journal.error();
    bytes_ += (*journal)->disk_bytes();
    return ok();
  }

  std::string target_of(const LiveFileStorageInfo& file) const {
    return paths_.database + "/" + file.relative_filename;
  }

  Status copy(const LiveFileStorageInfo& file) {
    if (interrupted_) return Error{Errc::shutting_down, "interrupted"};
    const std::string from = file.directory + "/" + file.relative_filename;
    const std::string to = target_of(file);
    bytes_ += file.size;
    const bool never_changes = file.file_type == ::rocksdb::kTableFile && !file.trim_to_size;
    if (never_changes && files_->LinkFile(from, to, IOOptions(), nullptr).ok()) return ok();
    return copy_bytes(from, to, file.size);
  }

  Status copy_bytes(const std::string& from, const std::string& to, std::uint64_t size) {
    std::unique_ptr<::rocksdb::FSSequentialFile> source;
    std::unique_ptr<::rocksdb::FSWritableFile> target;
    auto status = files_->NewSequentialFile(from, FileOptions(), &source, nullptr);
    if (!status.ok()) return to_error(status, from);
    status = files_->NewWritableFile(to, FileOptions(), &target, nullptr);
    if (!status.ok()) return to_error(status, to);
    std::string buffer(std::min<std::uint64_t>(size, kCopyBytes), '\0');
    for (std::uint64_t left = size; left > 0;) {
      if (interrupted_) return Error{Errc::shutting_down, "interrupted"};
      Slice got;
      status = source->Read(std::min<std::uint64_t>(left, buffer.size()), IOOptions(), &got,
                            buffer.data(), nullptr);
      if (!status.ok()) return to_error(status, from);
      if (got.empty()) return Error{Errc::corrupt, from + " is shorter than it should be"};
      status = target->Append(got, IOOptions(), nullptr);
      if (!status.ok()) return to_error(status, to);
      left -= got.size();
    }
    return finish(*target, to);
  }

  Status write_replacement(const LiveFileStorageInfo& file) {
    const std::string to = target_of(file);
    bytes_ += file.replacement_contents.size();
    std::unique_ptr<::rocksdb::FSWritableFile> target;
    auto status = files_->NewWritableFile(to, FileOptions(), &target, nullptr);
    if (status.ok()) status = target->Append(file.replacement_contents, IOOptions(), nullptr);
    if (!status.ok()) return to_error(status, to);
    return finish(*target, to);
  }

  static Status finish(::rocksdb::FSWritableFile& file, const std::string& path) {
    auto status = file.Sync(IOOptions(), nullptr);
    if (status.ok()) status = file.Close(IOOptions(), nullptr);
    return to_status(status, path);
  }

  // Best effort: what cannot be removed lacks CURRENT and is never taken for a whole copy.
  void remove(bool keep_directory) {
    for (const std::string& path : {paths_.database, paths_.journal}) {
      if (path.empty() || !files_->FileExists(path, IOOptions(), nullptr).ok()) continue;
      (void)delete_files_in(*files_, path).has_value();
      files_->DeleteDir(path, IOOptions(), nullptr).PermitUncheckedError();
    }
    if (!keep_directory) files_->DeleteDir(directory_, IOOptions(), nullptr).PermitUncheckedError();
  }

  const PinnedBase& base_;
  const std::string& directory_;
  const DurableOptions& options_;
  const std::atomic<bool>& interrupted_;
  const std::shared_ptr<::rocksdb::FileSystem> files_;
  DataDirectory paths_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<PinnedBase>> PinnedBase::make(const Database& base) {
  REPRISE_TRY(to_status(base->DisableFileDeletions(), base.options().directory));
  std::unique_ptr<PinnedBase> pinned(new PinnedBase(base));
  REPRISE_TRY(pinned->read());
  return pinned;
}

PinnedBase::~PinnedBase() {
  constexpr bool kForce = false;  // others may have asked for the same
  base_->EnableFileDeletions(kForce).PermitUncheckedError();
}

Status PinnedBase::read() {
  const auto status =
      base_->GetLiveFilesStorageInfo(::rocksdb::LiveFilesStorageInfoOptions(), &files_);
  REPRISE_TRY(to_status(status, base_.options().directory));
  const auto bytes = base_.read({}, base_.family(Keyspace::meta), kCheckpointKey);
  if (!bytes) return bytes.error();
  const auto checkpoint = decode_checkpoint(bytes->value_or(std::string()));
  if (!checkpoint) return checkpoint.error();
  checkpoint_ = *checkpoint;
  return ok();
}

Status check_backup_directory(const std::string& directory, const DurableOptions& options) {
  if (options.env == nullptr) {
    std::error_code why;
    const auto target = std::filesystem::weakly_canonical(directory, why);
    if (why) return Error{Errc::backup_failed, directory + ": " + why.message()};
    if (std::filesystem::exists(target, why) && !std::filesystem::is_directory(target, why)) {
      return Error{Errc::directory_not_empty, directory + " is a file, not a directory"};
    }
    if (is_inside(target, std::filesystem::weakly_canonical(options.directory, why))) {
      return Error{Errc::invalid_field, "directory: " + directory +
                                            " is inside the data directory " + options.directory +
                                            "; name one outside of it"};
    }
  }
  return check_empty(*file_system_of(options), directory);
}

Result<std::uint64_t> write_backup(const PinnedBase& base, const std::string& directory,
                                   const DurableOptions& options,
                                   const std::atomic<bool>& interrupted) {
  return BackupWriter(base, directory, options, interrupted).run();
}

}  // namespace reprise::storage
