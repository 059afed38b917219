#include "support/faulty_file_system.h"

#include <rocksdb/system_clock.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/check.h"

namespace reprise::test {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// One spelling for each file, whatever slashes came.
std::string normal(const std::string& path) {
  std::string result = std::filesystem::path(path).lexically_normal().string();
  if (result.size() > 1 && result.ends_with('/')) result.pop_back();
  return result;
}

std::string parent_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

bool is_below(const std::string& path, const std::string& directory) {
  return path.size() > directory.size() && path[directory.size()] == '/' &&
         path.starts_with(directory);
}

void check(const IOStatus& status) { REPRISE_CHECK(status.ok()); }

std::string read_all(const rocksdb::FSRandomAccessFile& file) {
  std::string content;
  std::string buffer(1U << 20, '\0');
  Slice got;
  do {
    check(file.Read(content.size(), buffer.size(), IOOptions(), &got, buffer.data(), nullptr));
    content.append(got.data(), got.size());
  } while (got.size() == buffer.size());
  return content;
}

}  // namespace

class FaultyFileSystem::WritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WritableFile(FaultyFileSystem& owner, std::shared_ptr<File> file,
               std::unique_ptr<rocksdb::FSWritableFile> target)
      : FSWritableFileOwnerWrapper(std::move(target)), owner_(owner), file_(std::move(file)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    const std::scoped_lock lock(owner_.mutex_);
    if (auto status = owner_.begin_write(*file_); !status.ok()) return status;
    if (auto status = target()->Append(data, options, debug); !status.ok()) return status;
    file_->unsynced.grew(file_->size, file_->size + data.size(), UnsyncedWrites::Cut::anywhere);
    file_->size += data.size();
    return owner_.end(IOStatus::OK());
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus PositionedAppend(const Slice&, std::uint64_t, const IOOptions&,
                            IODebugContext*) override {
    return IOStatus::NotSupported("FaultyFileSystem does no direct writes");
  }
  IOStatus PositionedAppend(const Slice& data, std::uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo&, IODebugContext* debug) override {
    return PositionedAppend(data, offset, options, debug);
  }
  IOStatus Truncate(std::uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    const std::scoped_lock lock(owner_.mutex_);
    if (auto status = owner_.begin(*file_, WhenCut::leave_out); !status.ok()) return status;
    if (auto status = target()->Truncate(size, options, debug); !status.ok()) return status;
    // In memory files do not grow by it.
    if (const std::uint64_t now = target()->GetFileSize(options, debug); now < size) {
      if (auto status = target()->Append(std::string(size - now, '\0'), options, debug);
          !status.ok()) {
        return status;
      }
    }
    owner_.note_truncation(*file_, size);
    return IOStatus::OK();
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    const std::scoped_lock lock(owner_.mutex_);
    return owner_.sync_file(*file_);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }
  IOStatus RangeSync(std::uint64_t, std::uint64_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();  // promises nothing
  }

 private:
  FaultyFileSystem& owner_;
  const std::shared_ptr<File> file_;
};

class FaultyFileSystem::RandomRWFile final : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  RandomRWFile(FaultyFileSystem& owner, std::shared_ptr<File> file,
               std::unique_ptr<rocksdb::FSRandomRWFile> target)
      : FSRandomRWFileOwnerWrapper(std::move(target)), owner_(owner), file_(std::move(file)) {}

  IOStatus Write(std::uint64_t offset, const Slice& data, const IOOptions& options,
                 IODebugContext* debug) override {
    const std::scoped_lock lock(owner_.mutex_);
    if (auto status = owner_.begin_write(*file_); !status.ok()) return status;
    if (data.empty()) return owner_.end(IOStatus::OK());
    const std::uint64_t end = offset + data.size();
    std::string before;
    if (offset < file_->size) {
      before.resize(std::min(end, file_->size) - offset);
      Slice got;
      check(target()->Read(offset, before.size(), options, &got, before.data(), debug));
      REPRISE_CHECK(got.size() == before.size());
      if (got.data() != before.data()) before = got.ToString();
    }
    if (auto status = target()->Write(offset, data, options, debug); !status.ok()) return status;
    file_->unsynced.overwrote(offset, std::move(before));
    if (end > file_->size) {
      file_->unsynced.grew(file_->size, end, UnsyncedWrites::Cut::at_sector);
      file_->size = end;
    }
    return owner_.end(IOStatus::OK());
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    const std::scoped_lock lock(owner_.mutex_);
    return owner_.sync_file(*file_);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }

 private:
  FaultyFileSystem& owner_;
  const std::shared_ptr<File> file_;
};

class FaultyFileSystem::Directory final : public rocksdb::FSDirectoryWrapper {
 public:
  Directory(FaultyFileSystem& owner, std::string path,
            std::unique_ptr<rocksdb::FSDirectory> directory)
      : FSDirectoryWrapper(std::move(directory)), owner_(owner), path_(std::move(path)) {}

  IOStatus Fsync(const IOOptions&, IODebugContext*) override {
    const std::scoped_lock lock(owner_.mutex_);
    return owner_.sync_directory(path_);
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions&) override {
    return Fsync(options, debug);
  }

 private:
  FaultyFileSystem& owner_;
  const std::string path_;
};

bool FaultyFileSystem::Fault::hits(const std::string& path) {
  return countdown > 0 && path.ends_with(suffix) && --countdown == 0;
}

FaultyFileSystem::FaultyFileSystem(std::shared_ptr<rocksdb::FileSystem> base)
    : FileSystemWrapper(std::move(base)) {}

void FaultyFileSystem::crash(Loss loss, std::uint64_t seed) {
  const std::scoped_lock lock(mutex_);
  SeededRandom random(seed);
  power_ = false;
  const std::size_t names_kept = loss == Loss::all ? 0 : random.below(names_.size() + 1);
  while (names_.size() > names_kept) {
    NameChange last = std::move(names_.back());
    names_.pop_back();
    take_back(std::move(last));
  }
  lose_bytes(loss, random);
  files_.clear();
  names_.clear();
  crash_at_ = 0;
  sync_fault_ = {};
  write_fault_ = {};
  full_for_.reset();
}

void FaultyFileSystem::restart() {
  const std::scoped_lock lock(mutex_);
  power_ = true;
  ++boot_;
}

void FaultyFileSystem::crash_at(std::uint64_t nth) {
  const std::scoped_lock lock(mutex_);
  crash_at_ = nth == 0 ? 0 : operations_ + nth;
}

std::uint64_t FaultyFileSystem::operations() const {
  const std::scoped_lock lock(mutex_);
  return operations_;
}

void FaultyFileSystem::fail_sync(std::uint64_t nth, std::string suffix) {
  const std::scoped_lock lock(mutex_);
  sync_fault_ = {.countdown = nth, .suffix = std::move(suffix)};
}

void FaultyFileSystem::fail_write(std::uint64_t nth, std::string suffix) {
  const std::scoped_lock lock(mutex_);
  write_fault_ = {.countdown = nth, .suffix = std::move(suffix)};
  write_failed_ = false;
}

bool FaultyFileSystem::write_failed() const {
  const std::scoped_lock lock(mutex_);
  return write_failed_;
}

void FaultyFileSystem::fill_disk(std::optional<std::string> suffix) {
  const std::scoped_lock lock(mutex_);
  full_for_ = std::move(suffix);
}

std::uint64_t FaultyFileSystem::syncs(const std::string& suffix) const {
  const std::scoped_lock lock(mutex_);
  std::uint64_t total = 0;
  for (const auto& [path, count] : sync_counts_) total += path.ends_with(suffix) ? count : 0;
  return total;
}

IOStatus FaultyFileSystem::begin(WhenCut when_cut) {
  if (auto status = check_power(); !status.ok()) return status;
  power_ = ++operations_ != crash_at_;
  return when_cut == WhenCut::leave_out ? check_power() : IOStatus::OK();
}

IOStatus FaultyFileSystem::begin(const File& file, WhenCut when_cut) {
  if (file.boot != boot_) return IOStatus::IOError("opened before the power cut", file.path);
  return begin(when_cut);
}

IOStatus FaultyFileSystem::end(IOStatus status) const { return power_ ? status : check_power(); }

IOStatus FaultyFileSystem::check_power() const {
  return power_ ? IOStatus::OK() : IOStatus::IOError("the power is off");
}

IOStatus FaultyFileSystem::begin_write(const File& file) {
  if (auto status = begin(file, WhenCut::make); !status.ok()) return status;
  const bool hit = write_fault_.hits(file.path);
  write_failed_ |= hit;
  if (!hit && !(full_for_ && file.path.ends_with(*full_for_))) return IOStatus::OK();
  return IOStatus::NoSpace("disk full, as told", file.path);
}

IOStatus FaultyFileSystem::sync_file(File& file) {
  if (auto status = begin(file, WhenCut::leave_out); !status.ok()) return status;
  ++sync_counts_[file.path];
  if (sync_fault_.hits(file.path)) {
    file.unsynced.sync_failed();
    return IOStatus::IOError("sync failed, as told", file.path);
  }
  file.unsynced.synced();
  return IOStatus::OK();
}

IOStatus FaultyFileSystem::sync_directory(const std::string& path) {
  if (auto status = begin(WhenCut::leave_out); !status.ok()) return status;
  settle_names([&](const std::string& name) { return parent_of(name) == path; });
  return IOStatus::OK();
}

// With a name goes what happened earlier to the one that it was moved from: otherwise the log could
// no longer be undone backwards.
void FaultyFileSystem::settle_names(const std::function<bool(const std::string&)>& is_settled) {
  std::set<std::string> settled;
  const auto check_name = [&](const std::string& name) {
    return settled.contains(name) || is_settled(name);
  };
  std::vector<NameChange> left;
  for (auto at = names_.rbegin(); at != names_.rend(); ++at) {
    const bool is_renamed = at->kind == NameChange::Kind::renamed;
    if (check_name(at->path) || (is_renamed && check_name(at->from))) {
      settled.insert(at->path);
      if (is_renamed) settled.insert(at->from);
    } else {
      left.push_back(std::move(*at));
    }
  }
  std::reverse(left.begin(), left.end());
  names_ = std::move(left);
}

void FaultyFileSystem::note(NameChange::Kind kind, std::string path, std::string from,
                            Nameless previous) {
  names_.push_back({.kind = kind,
                    .path = std::move(path),
                    .from = std::move(from),
                    .previous = std::move(previous)});
}

void FaultyFileSystem::note_truncation(File& file, std::uint64_t size) {
  if (size < file.size) {
    file.unsynced.shrank(size);
  } else {
    file.unsynced.grew(file.size, size, UnsyncedWrites::Cut::at_sector);
  }
  file.size = size;
}

// What was there before is durable.
const std::shared_ptr<FaultyFileSystem::File>& FaultyFileSystem::track(const std::string& path) {
  const auto found = files_.find(path);
  if (found != files_.end()) return found->second;
  const auto& file = track_new(path);
  file->size = size_of(path);
  return file;
}

const std::shared_ptr<FaultyFileSystem::File>& FaultyFileSystem::track_new(
    const std::string& path) {
  auto& file = files_[path];
  file = std::make_shared<File>();
  file->path = path;
  file->boot = boot_;
  return file;
}

// A file or a directory has a new name, and so has what is below it.
void FaultyFileSystem::relocate(const std::string& from, const std::string& to) {
  const auto moved = [&](const std::string& path) { return to + path.substr(from.size()); };
  std::vector<std::pair<std::string, std::shared_ptr<File>>> files;
  for (auto at = files_.lower_bound(from); at != files_.end() && at->first.starts_with(from);) {
    if (at->first != from && !is_below(at->first, from)) {
      ++at;
      continue;
    }
    files.emplace_back(moved(at->first), std::move(at->second));
    at = files_.erase(at);
  }
  for (auto& [path, file] : files) {
    file->path = path;
    files_[path] = std::move(file);
  }
  for (NameChange& change : names_) {
    if (is_below(change.path, from)) change.path = moved(change.path);
    if (is_below(change.from, from)) change.from = moved(change.from);
  }
}

FaultyFileSystem::Nameless FaultyFileSystem::keep(const std::string& path) {
  Nameless result;
  if (!exists(path)) return result;
  check(target()->NewRandomAccessFile(path, FileOptions(), &result.content, nullptr));
  result.file = track(path);
  return result;
}

void FaultyFileSystem::take_back(NameChange change) {
  switch (change.kind) {
    case NameChange::Kind::made:
      check(target()->DeleteFile(change.path, IOOptions(), nullptr));
      files_.erase(change.path);
      break;
    case NameChange::Kind::made_directory:
      remove_tree(change.path);
      std::erase_if(files_, [&](const auto& entry) { return is_below(entry.first, change.path); });
      break;
    case NameChange::Kind::renamed:
      check(target()->RenameFile(change.path, change.from, IOOptions(), nullptr));
      relocate(change.path, change.from);
      break;
    case NameChange::Kind::deleted:
      break;
  }
  if (change.previous.file) give_name(change.path, std::move(change.previous));
}

void FaultyFileSystem::give_name(const std::string& path, Nameless file) {
  const auto other = std::find_if(files_.begin(), files_.end(),
                                  [&](const auto& entry) { return entry.second == file.file; });
  if (other != files_.end()) {
    bool linked = false;
    check(link_or_copy(other->first, path, linked));
  } else {
    create(path, read_all(*file.content));
  }
  files_[path] = std::move(file.file);
}

// Into new files: handles that the crashed process still has must not reach them.
void FaultyFileSystem::lose_bytes(Loss loss, SeededRandom& random) {
  std::map<const File*, std::string> done;  // by its first name
  for (const auto& [path, file] : files_) {
    if (file->unsynced.empty()) continue;
    const auto [first, is_first] = done.try_emplace(file.get(), path);
    if (is_first) {
      const auto left = file->unsynced.after_power_cut(read(path), loss, random);
      check(target()->DeleteFile(path, IOOptions(), nullptr));
      create(path, left);
    } else {
      check(target()->DeleteFile(path, IOOptions(), nullptr));
      bool linked = false;
      check(link_or_copy(first->second, path, linked));
    }
  }
}

bool FaultyFileSystem::exists(const std::string& path) const {
  return target()->FileExists(path, IOOptions(), nullptr).ok();
}

std::uint64_t FaultyFileSystem::size_of(const std::string& path) const {
  std::uint64_t size = 0;
  check(target()->GetFileSize(path, IOOptions(), &size, nullptr));
  return size;
}

std::string FaultyFileSystem::read(const std::string& path) const {
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  check(target()->NewRandomAccessFile(path, FileOptions(), &file, nullptr));
  return read_all(*file);
}

void FaultyFileSystem::create(const std::string& path, std::string_view content) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  check(target()->NewWritableFile(path, FileOptions(), &file, nullptr));
  check(file->Append({content.data(), content.size()}, IOOptions(), nullptr));
  check(file->Close(IOOptions(), nullptr));
}

void FaultyFileSystem::grow(const std::string& path, std::uint64_t size) {
  const std::uint64_t now = size_of(path);
  if (now >= size) return;
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  check(target()->NewRandomRWFile(path, FileOptions(), &file, nullptr));
  check(file->Write(now, std::string(size - now, '\0'), IOOptions(), nullptr));
  check(file->Close(IOOptions(), nullptr));
}

IOStatus FaultyFileSystem::link_or_copy(const std::string& from, const std::string& to,
                                        bool& linked) {
  const auto status = target()->LinkFile(from, to, IOOptions(), nullptr);
  linked = status.ok();
  if (!status.IsNotSupported()) return status;
  create(to, read(from));
  return IOStatus::OK();
}

// In memory a file looks like an empty directory, and children of what is deleted stay.
void FaultyFileSystem::remove_tree(const std::string& path) {
  std::vector<std::string> names;
  if (!target()->GetChildren(path, IOOptions(), &names, nullptr).ok()) {
    check(target()->DeleteFile(path, IOOptions(), nullptr));
    return;
  }
  for (const std::string& name : names) {
    if (name != "." && name != "..") remove_tree(path + "/" + name);
  }
  check(target()->DeleteDir(path, IOOptions(), nullptr));
}

IOStatus FaultyFileSystem::NewWritableFile(const std::string& path, const FileOptions& options,
                                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                                           IODebugContext* debug) {
  const std::scoped_lock lock(mutex_);
  const std::string name = normal(path);
  const bool is_new = !exists(name);
  if (auto status = begin(is_new ? WhenCut::make : WhenCut::leave_out); !status.ok()) return status;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  if (auto status = target()->NewWritableFile(path, options, &file, debug); !status.ok()) {
    return status;
  }
  if (is_new) note(NameChange::Kind::made, name);
  auto opened = std::make_unique<WritableFile>(*this, track_new(name), std::move(file));
  if (auto status = end(IOStatus::OK()); !status.ok()) return status;
  *result = std::move(opened);
  return IOStatus::OK();
}

IOStatus FaultyFileSystem::ReopenWritableFile(const std::string& path, const FileOptions& options,
                                              std::unique_ptr<rocksdb::FSWritableFile>* result,
                                              IODebugContext* debug) {
  if (!exists(path)) return NewWritableFile(path, options, result, debug);
  const std::scoped_lock lock(mutex_);
  if (auto status = check_power(); !status.ok()) return status;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  const auto status = target()->ReopenWritableFile(path, options, &file, debug);
  if (status.ok()) {
    *result = std::make_unique<WritableFile>(*this, track(normal(path)), std::move(file));
  }
  return status;
}

// As FileSystem has it by default; the wrapper would pass us by.
IOStatus FaultyFileSystem::ReuseWritableFile(const std::string& path, const std::string& old_path,
                                             const FileOptions& options,
                                             std::unique_ptr<rocksdb::FSWritableFile>* result,
                                             IODebugContext* debug) {
  const auto status = RenameFile(old_path, path, options.io_options, debug);
  return status.ok() ? NewWritableFile(path, options, result, debug) : status;
}

IOStatus FaultyFileSystem::NewRandomRWFile(const std::string& path, const FileOptions& options,
                                           std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                                           IODebugContext* debug) {
  const std::scoped_lock lock(mutex_);
  if (auto status = check_power(); !status.ok()) return status;
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  const auto status = target()->NewRandomRWFile(path, options, &file, debug);
  if (status.ok()) {
    *result = std::make_unique<RandomRWFile>(*this, track(normal(path)), std::move(file));
  }
  return status;
}

IOStatus FaultyFileSystem::NewDirectory(const std::string& path, const IOOptions& options,
                                        std::unique_ptr<rocksdb::FSDirectory>* result,
                                        IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSDirectory> directory;
  const auto status = target()->NewDirectory(path, options, &directory, debug);
  if (status.ok()) *result = std::make_unique<Directory>(*this, normal(path), std::move(directory));
  return status;
}

IOStatus FaultyFileSystem::DeleteFile(const std::string& path, const IOOptions& options,
                                      IODebugContext* debug) {
  const std::scoped_lock lock(mutex_);
  if (auto status = begin(WhenCut::make); !status.ok()) return status;
  const std::string name = normal(path);
  Nameless previous = keep(name);
  const auto status = target()->DeleteFile(path, options, debug);
  if (status.ok()) {
    files_.erase(name);
    note(NameChange::Kind::deleted, name, {}, std::move(previous));
  }
  return end(status);
}

IOStatus FaultyFileSystem::RenameFile(const std::string& from, const std::string& to,
                                      const IOOptions& options, IODebugContext* debug) {
  const std::scoped_lock lock(mutex_);
  const std::string source = normal(from);
  const std::string name = normal(to);
  if (source == name) return check_power();
  if (auto status = begin(WhenCut::make); !status.ok()) return status;
  Nameless previous = keep(name);
  const auto status = target()->RenameFile(from, to, options, debug);
  if (status.ok()) {
    files_.erase(name);
    relocate(source, name);
    note(NameChange::Kind::renamed, name, source, std::move(previous));
  }
  return end(status);
}

IOStatus FaultyFileSystem::LinkFile(const std::string& from, const std::string& to,
                                    const IOOptions&, IODebugContext*) {
  const std::scoped_lock lock(mutex_);
  if (auto status = begin(WhenCut::make); !status.ok()) return status;
  const std::string source = normal(from);
  const std::string name = normal(to);
  if (!exists(source)) return IOStatus::PathNotFound("link to nothing", source);
  if (exists(name)) return IOStatus::IOError("link over a file", name);  // in memory it would do
  bool linked = false;
  const auto status = link_or_copy(source, name, linked);
  if (status.ok()) {
    const auto file = track(source);
    files_[name] = linked ? file : std::make_shared<File>(*file);
    note(NameChange::Kind::made, name);
  }
  return end(status);
}

IOStatus FaultyFileSystem::Truncate(const std::string& path, std::size_t size,
                                    const IOOptions& options, IODebugContext* debug) {
  const std::scoped_lock lock(mutex_);
  if (auto status = begin(WhenCut::leave_out); !status.ok()) return status;
  const std::string name = normal(path);
  if (!exists(name)) return IOStatus::PathNotFound(name);
  const auto file = track(name);
  const auto status = target()->Truncate(path, size, options, debug);
  if (status.ok()) {
    grow(name, size);  // in memory it does not
    note_truncation(*file, size);
  }
  return status;
}

IOStatus FaultyFileSystem::CreateDir(const std::string& path, const IOOptions& options,
                                     IODebugContext* debug) {
  const std::scoped_lock lock(mutex_);
  if (auto status = begin(WhenCut::make); !status.ok()) return status;
  const auto status = target()->CreateDir(path, options, debug);
  if (status.ok()) note(NameChange::Kind::made_directory, normal(path));
  return end(status);
}

IOStatus FaultyFileSystem::CreateDirIfMissing(const std::string& path, const IOOptions& options,
                                              IODebugContext* debug) {
  const std::scoped_lock lock(mutex_);
  if (exists(path)) return check_power();
  if (auto status = begin(WhenCut::make); !status.ok()) return status;
  const auto status = target()->CreateDirIfMissing(path, options, debug);
  if (status.ok()) note(NameChange::Kind::made_directory, normal(path));
  return end(status);
}

IOStatus FaultyFileSystem::DeleteDir(const std::string& path, const IOOptions& options,
                                     IODebugContext* debug) {
  const std::scoped_lock lock(mutex_);
  if (auto status = begin(WhenCut::leave_out); !status.ok()) return status;
  const auto status = target()->DeleteDir(path, options, debug);
  if (status.ok()) {
    const std::string name = normal(path);
    std::erase_if(files_, [&](const auto& entry) { return is_below(entry.first, name); });
    settle_names([&](const std::string& other) { return other == name || is_below(other, name); });
  }
  return status;
}

namespace {

class SleeplessClock final : public rocksdb::SystemClockWrapper {
 public:
  using SystemClockWrapper::SystemClockWrapper;
  const char* Name() const override { return "SleeplessClock"; }
  void SleepForMicroseconds(int) override {}
};

class SleeplessEnv final : public rocksdb::EnvWrapper {
 public:
  explicit SleeplessEnv(const std::shared_ptr<rocksdb::FileSystem>& files)
      : EnvWrapper(rocksdb::NewCompositeEnv(files)) {
    file_system_ = files;
    system_clock_ = std::make_shared<SleeplessClock>(rocksdb::SystemClock::Default());
  }
};

}  // namespace

std::unique_ptr<rocksdb::Env> make_env(const std::shared_ptr<FaultyFileSystem>& files) {
  return std::make_unique<SleeplessEnv>(files);
}

}  // namespace reprise::test
