// GatedFileSystem: a file system on which making a new file can be held up, so that a test sees
// what goes on meanwhile.
// Threads: any.
#pragma once

#include <rocksdb/file_system.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace reprise::test {

class GatedFileSystem final : public ::rocksdb::FileSystemWrapper {
 public:
  explicit GatedFileSystem(std::shared_ptr<::rocksdb::FileSystem> files)
      : FileSystemWrapper(std::move(files)) {}
  const char* Name() const override { return "GatedFileSystem"; }

  // From now on whoever makes a file with this in its path waits.
  void hold(std::string part_of_path) {
    const std::lock_guard lock(mutex_);
    held_ = std::move(part_of_path);
  }
  void let_go() {
    {
      const std::lock_guard lock(mutex_);
      held_.clear();
    }
    changed_.notify_all();
  }
  bool somebody_waits() const {
    const std::lock_guard lock(mutex_);
    return waiting_ > 0;
  }

  ::rocksdb::IOStatus NewWritableFile(const std::string& path,
                                      const ::rocksdb::FileOptions& options,
                                      std::unique_ptr<::rocksdb::FSWritableFile>* made,
                                      ::rocksdb::IODebugContext* context) override {
    {
      std::unique_lock lock(mutex_);
      ++waiting_;
      changed_.wait(lock, [&] { return held_.empty() || path.find(held_) == std::string::npos; });
      --waiting_;
    }
    return FileSystemWrapper::NewWritableFile(path, options, made, context);
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Protected by mutex_.
  std::string held_;  // empty: nobody is held up
  int waiting_ = 0;
};

}  // namespace reprise::test
