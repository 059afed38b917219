#include "support/faulty_file_system.h"

#include <rocksdb/system_clock.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/check.h"

namespace reprise::test {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

constexpr std::uint64_t kPageBytes = 4096;

// One spelling for each file, whatever slashes came.
std::string normal(const std::string& path) {
  std::string result = std::filesystem::path(path).lexically_normal().string();
  if (result.size() > 1 && result.ends_with('/')) result.pop_back();
  return result;
}

std::string parent_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

void check(const IOStatus& status) { REPRISE_CHECK(status.ok()); }

bool coin(SeededRandom& random) { return random.below(2) == 0; }

// Makes each page of `content` from `from` on read as zeros, or not.
void lose_pages(std::string& content, std::uint64_t from, SeededRandom& random) {
  while (from < content.size()) {
    const std::uint64_t end = std::min((from / kPageBytes + 1) * kPageBytes, content.size());
    if (coin(random)) std::fill(content.begin() + from, content.begin() + end, '\0');
    from = end;
  }
}

}  // namespace

class FaultyFileSystem::WritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  WritableFile(FaultyFileSystem& owner, std::string path,
               std::unique_ptr<rocksdb::FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)), owner_(owner), path_(std::move(path)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    const std::scoped_lock lock(owner_.mutex_);
    if (auto status = owner_.check_write(path_); !status.ok()) return status;
    owner_.files_[path_].written += data.size();
    return target()->Append(data, options, debug);
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Truncate(std::uint64_t size, const IOOptions& options, IODebugContext* debug) override {
    const std::scoped_lock lock(owner_.mutex_);
    if (auto status = owner_.check_power(); !status.ok()) return status;
    auto& state = owner_.files_[path_];
    state.written = size;
    state.synced = std::min(state.synced, size);
    return target()->Truncate(size, options, debug);
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    const std::scoped_lock lock(owner_.mutex_);
    return owner_.sync_file(path_);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }
  IOStatus RangeSync(std::uint64_t, std::uint64_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();  // promises nothing
  }

 private:
  FaultyFileSystem& owner_;
  const std::string path_;
};

// Of this kind of file only sync is used; writes are not.
class FaultyFileSystem::RandomRWFile final : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  RandomRWFile(FaultyFileSystem& owner, std::string path,
               std::unique_ptr<rocksdb::FSRandomRWFile> file)
      : FSRandomRWFileOwnerWrapper(std::move(file)), owner_(owner), path_(std::move(path)) {}

  IOStatus Write(std::uint64_t, const Slice&, const IOOptions&, IODebugContext*) override {
    return IOStatus::NotSupported("FaultyFileSystem does not write in place");
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    const std::scoped_lock lock(owner_.mutex_);
    return owner_.sync_file(path_);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }

 private:
  FaultyFileSystem& owner_;
  const std::string path_;
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
  for (const auto& [path, state] : files_) lose_bytes(path, state, loss, random);
  const std::uint64_t names_kept = loss == Loss::all ? 0 : random.below(names_made_ + 1);
  // Backwards: what is in a directory before the directory itself.
  for (auto at = new_names_.rbegin(); at != new_names_.rend(); ++at) {
    if (at->second.number >= names_kept) lose_name(at->first, at->second);
  }
  files_.clear();
  new_names_.clear();
  names_made_ = 0;
  sync_fault_ = {};
  write_fault_ = {};
}

void FaultyFileSystem::restart() {
  const std::scoped_lock lock(mutex_);
  power_ = true;
}

void FaultyFileSystem::fail_sync(std::uint64_t nth, std::string suffix) {
  const std::scoped_lock lock(mutex_);
  sync_fault_ = {.countdown = nth, .suffix = std::move(suffix)};
}

void FaultyFileSystem::fail_write(std::uint64_t nth, std::string suffix) {
  const std::scoped_lock lock(mutex_);
  write_fault_ = {.countdown = nth, .suffix = std::move(suffix)};
}

std::uint64_t FaultyFileSystem::syncs(const std::string& suffix) const {
  const std::scoped_lock lock(mutex_);
  std::uint64_t total = 0;
  for (const auto& [path, count] : sync_counts_) total += path.ends_with(suffix) ? count : 0;
  return total;
}

IOStatus FaultyFileSystem::check_power() const {
  return power_ ? IOStatus::OK() : IOStatus::IOError("the power is off");
}

IOStatus FaultyFileSystem::check_write(const std::string& path) {
  if (auto status = check_power(); !status.ok()) return status;
  return write_fault_.hits(path) ? IOStatus::NoSpace("disk full, as told", path) : IOStatus::OK();
}

IOStatus FaultyFileSystem::sync_file(const std::string& path) {
  if (auto status = check_power(); !status.ok()) return status;
  ++sync_counts_[path];
  const auto found = files_.find(path);
  if (sync_fault_.hits(path)) {
    if (found != files_.end()) found->second.sync_failed = true;
    return IOStatus::IOError("sync failed, as told", path);
  }
  if (found != files_.end() && !found->second.sync_failed) {
    found->second.synced = found->second.written;
  }
  return IOStatus::OK();
}

IOStatus FaultyFileSystem::sync_directory(const std::string& path) {
  if (auto status = check_power(); !status.ok()) return status;
  std::erase_if(new_names_, [&](const auto& entry) { return parent_of(entry.first) == path; });
  return IOStatus::OK();
}

// A name that is new twice goes back to what it was at first.
void FaultyFileSystem::note_new_name(const std::string& path, NewName name) {
  name.number = names_made_++;
  new_names_.try_emplace(path, std::move(name));
}

void FaultyFileSystem::lose_bytes(const std::string& path, const FileState& state, Loss loss,
                                  SeededRandom& random) {
  if (state.synced >= state.written) return;
  std::string content = read(path);
  const std::uint64_t unsynced = content.size() - std::min(state.synced, content.size());
  const std::uint64_t kept = loss == Loss::all ? 0 : random.below(unsynced + 1);
  content.resize(content.size() - unsynced + kept);
  if (loss == Loss::pages) lose_pages(content, state.synced, random);
  replace(path, content);
}

void FaultyFileSystem::lose_name(const std::string& path, const NewName& name) {
  if (name.replaced) {
    replace(path, *name.replaced);
  } else {
    remove(path, name.is_directory);
  }
}

bool FaultyFileSystem::exists(const std::string& path) const {
  return target()->FileExists(path, IOOptions(), nullptr).ok();
}

std::string FaultyFileSystem::read(const std::string& path) const {
  std::uint64_t size = 0;
  check(target()->GetFileSize(path, IOOptions(), &size, nullptr));
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  check(target()->NewSequentialFile(path, FileOptions(), &file, nullptr));
  std::string content(size, '\0');
  Slice got;
  check(file->Read(size, IOOptions(), &got, content.data(), nullptr));
  return std::string(got.data(), got.size());
}

// As a new file: handles that the crashed process still has must not reach it.
void FaultyFileSystem::replace(const std::string& path, std::string_view content) {
  check(target()->DeleteFile(path, IOOptions(), nullptr));
  std::unique_ptr<rocksdb::FSWritableFile> file;
  check(target()->NewWritableFile(path, FileOptions(), &file, nullptr));
  check(file->Append({content.data(), content.size()}, IOOptions(), nullptr));
  check(file->Close(IOOptions(), nullptr));
}

void FaultyFileSystem::remove(const std::string& path, bool is_directory) {
  if (!is_directory) {
    check(target()->DeleteFile(path, IOOptions(), nullptr));
    return;
  }
  std::vector<std::string> names;
  check(target()->GetChildren(path, IOOptions(), &names, nullptr));
  for (const std::string& name : names) {
    if (name != "." && name != "..")
      check(target()->DeleteFile(path + "/" + name, IOOptions(), nullptr));
  }
  check(target()->DeleteDir(path, IOOptions(), nullptr));
}

IOStatus FaultyFileSystem::NewWritableFile(const std::string& path, const FileOptions& options,
                                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                                           IODebugContext* debug) {
  const std::scoped_lock lock(mutex_);
  if (auto status = check_power(); !status.ok()) return status;
  const std::string name = normal(path);
  const bool is_new = !exists(name);
  std::unique_ptr<rocksdb::FSWritableFile> file;
  if (auto status = target()->NewWritableFile(path, options, &file, debug); !status.ok()) {
    return status;
  }
  files_[name] = {};
  if (is_new) note_new_name(name, {});
  *result = std::make_unique<WritableFile>(*this, name, std::move(file));
  return IOStatus::OK();
}

IOStatus FaultyFileSystem::ReopenWritableFile(const std::string& path, const FileOptions& options,
                                              std::unique_ptr<rocksdb::FSWritableFile>* result,
                                              IODebugContext* debug) {
  const std::scoped_lock lock(mutex_);
  if (auto status = check_power(); !status.ok()) return status;
  const std::string name = normal(path);
  if (!exists(name)) note_new_name(name, {});
  std::unique_ptr<rocksdb::FSWritableFile> file;
  if (auto status = target()->ReopenWritableFile(path, options, &file, debug); !status.ok()) {
    return status;
  }
  if (!files_.contains(name)) {
    std::uint64_t size = 0;
    check(target()->GetFileSize(name, IOOptions(), &size, nullptr));
    files_[name] = {.written = size, .synced = size};
  }
  *result = std::make_unique<WritableFile>(*this, name, std::move(file));
  return IOStatus::OK();
}

IOStatus FaultyFileSystem::NewRandomRWFile(const std::string& path, const FileOptions& options,
                                           std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                                           IODebugContext* debug) {
  const std::scoped_lock lock(mutex_);
  if (auto status = check_power(); !status.ok()) return status;
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  const auto status = target()->NewRandomRWFile(path, options, &file, debug);
  if (status.ok()) *result = std::make_unique<RandomRWFile>(*this, normal(path), std::move(file));
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
  if (auto status = check_power(); !status.ok()) return status;
  const auto status = target()->DeleteFile(path, options, debug);
  if (status.ok()) {
    files_.erase(normal(path));
    new_names_.erase(normal(path));
  }
  return status;
}

IOStatus FaultyFileSystem::RenameFile(const std::string& from, const std::string& to,
                                      const IOOptions& options, IODebugContext* debug) {
  const std::scoped_lock lock(mutex_);
  if (auto status = check_power(); !status.ok()) return status;
  const std::string source = normal(from);
  const std::string name = normal(to);
  NewName replaced;
  if (exists(name)) replaced.replaced = read(name);
  if (auto status = target()->RenameFile(from, to, options, debug); !status.ok()) return status;
  note_new_name(name, std::move(replaced));
  new_names_.erase(source);
  files_.erase(name);
  if (auto state = files_.extract(source)) {
    state.key() = name;
    files_.insert(std::move(state));
  }
  return IOStatus::OK();
}

IOStatus FaultyFileSystem::CreateDir(const std::string& path, const IOOptions& options,
                                     IODebugContext* debug) {
  const std::scoped_lock lock(mutex_);
  if (auto status = check_power(); !status.ok()) return status;
  const auto status = target()->CreateDir(path, options, debug);
  if (status.ok()) note_new_name(normal(path), {.is_directory = true});
  return status;
}

IOStatus FaultyFileSystem::CreateDirIfMissing(const std::string& path, const IOOptions& options,
                                              IODebugContext* debug) {
  const std::scoped_lock lock(mutex_);
  if (auto status = check_power(); !status.ok()) return status;
  const bool is_new = !exists(path);
  const auto status = target()->CreateDirIfMissing(path, options, debug);
  if (status.ok() && is_new) note_new_name(normal(path), {.is_directory = true});
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
