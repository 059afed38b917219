#include "storage/gradual_deletion.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/thread_name.h"
#include "base/unique_fd.h"

namespace reprise::storage {
namespace {

using std::chrono::steady_clock;

// Cut off at once: 3 ms on a disk that is told of it, half of that however small the step.
constexpr std::int64_t kStepBytes = 1LL << 20;
constexpr std::int64_t kSmallBytes = 64LL << 10;
// A pause is so many times as long as the step before it. The more waits the shorter pauses become,
// and then there are none, so that deletion keeps up with what is to be deleted.
constexpr double kPauseShare = 60;
constexpr std::int64_t kCalmBytes = 256LL << 20;
constexpr std::int64_t kMuchBytes = 1LL << 30;
constexpr std::chrono::milliseconds kLookInterval{20};

struct FileSize {
  std::int64_t bytes = 0;
  bool is_only_name = false;
};

FileSize size_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
  return {.bytes = found.st_size, .is_only_name = found.st_nlink == 1};
}

}  // namespace

GradualDeletion::GradualDeletion(std::string directory, std::string_view extension)
    : directory_(std::move(directory)), thread_([this] { run(); }) {
  // What an earlier run has left.
  const std::string ending = std::string(extension).append(kSuffix);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(directory_.c_str()), ::closedir);
  if (!listing) return;
  while (const dirent* entry = ::readdir(listing.get())) {
    if (!std::string_view(entry->d_name).ends_with(ending)) continue;
    std::string path = directory_ + "/" + entry->d_name;
    const std::int64_t bytes = size_of(path).bytes;
    add({std::move(path), bytes});
  }
}

GradualDeletion::~GradualDeletion() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool GradualDeletion::take(const std::string& path) {
  const FileSize size = size_of(path);
  if (!size.is_only_name || size.bytes <= kSmallBytes) return false;
  std::string gone = path + kSuffix;
  if (::rename(path.c_str(), gone.c_str()) != 0) return false;
  add({std::move(gone), size.bytes});
  return true;
}

void GradualDeletion::finish(const std::atomic<bool>& interrupted) {
  std::unique_lock lock(mutex_);
  ++hurries_;
  changed_.notify_all();
  // Whoever interrupts has no way to wake us.
  while (!waiting_.empty() && !interrupted) changed_.wait_for(lock, kLookInterval);
  --hurries_;
}

void GradualDeletion::add(Doomed file) {
  {
    const std::lock_guard lock(mutex_);
    bytes_ += file.bytes;
    waiting_.push_back(std::move(file));
  }
  changed_.notify_all();
}

void GradualDeletion::run() {
  name_this_thread("deletion");
  lower_this_thread_priority();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    delete_first(lock);
  }
}

// The file stays in line until it is gone.
void GradualDeletion::delete_first(std::unique_lock<std::mutex>& lock) {
  const std::string path = waiting_.front().path;
  std::int64_t left = waiting_.front().bytes;
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  while (left > kStepBytes && !stopping_) {
    const auto began = steady_clock::now();
    lock.unlock();
    const bool cut = file && TEMP_FAILURE_RETRY(::ftruncate(file.get(), left - kStepBytes)) == 0;
    lock.lock();
    if (!cut) break;  // then all at once
    left -= kStepBytes;
    bytes_ -= kStepBytes;
    pause(lock, steady_clock::now() - began);
  }
  if (stopping_) return;
  const auto began = steady_clock::now();
  lock.unlock();
  (void)::unlink(path.c_str());
  lock.lock();
  bytes_ -= left;
  waiting_.pop_front();
  changed_.notify_all();
  pause(lock, steady_clock::now() - began);
}

void GradualDeletion::pause(std::unique_lock<std::mutex>& lock, steady_clock::duration step) {
  const double much = static_cast<double>(bytes_ - kCalmBytes) / (kMuchBytes - kCalmBytes);
  const double share = kPauseShare * std::clamp(1 - much, 0.0, 1.0);
  if (share == 0 || disk_wants_it()) return;
  const auto time = std::chrono::duration_cast<steady_clock::duration>(step * share);
  changed_.wait_for(lock, time, [this] { return stopping_ || hurries_ > 0; });
}

bool GradualDeletion::disk_wants_it() const {
  struct statvfs disk {};
  if (::statvfs(directory_.c_str(), &disk) != 0) return false;
  return static_cast<std::int64_t>(disk.f_bavail * disk.f_frsize) < bytes_;
}

}  // namespace reprise::storage
